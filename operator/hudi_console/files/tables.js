// All tables that the user may see: what needs a person comes first.

import { ago, badge, cell, h, link } from './dom.js';

const COLUMNS = ['Table', 'State', 'Writers', 'Last commit', 'Pending', 'Conflicts', 'What waits, and why'];
const AT_ONCE = 50;
const URGENCY = { bad: 0, busy: 1, quiet: 2, good: 2 };
const SPACES = 'hudi-console-namespaces';

const key = (row) => `${row.namespace}/${row.name}`;
const urgency = (row) => Math.min(URGENCY[row.tone], ...row.conditions.map((one) => URGENCY[one.tone]),
  ...row.writers.map((one) => (one.tone === 'bad' ? 0 : 2)), row.why ? 1 : 2);
const ORDERS = {
  'What needs a look': (a, b) => urgency(a) - urgency(b) || key(a).localeCompare(key(b)),
  Name: (a, b) => key(a).localeCompare(key(b)),
  'Last commit': (a, b) => String(b.lastCommit ?? '').localeCompare(String(a.lastCommit ?? '')),
  Conflicts: (a, b) => b.conflicts - a.conflicts || key(a).localeCompare(key(b)),
  Pending: (a, b) => (b.pending ?? 0) - (a.pending ?? 0) || key(a).localeCompare(key(b)),
};

function drawn(row) {
  const cells = [
    [h('span', { class: 'quiet' }, `${row.namespace}/`), row.orphan ? link('writers', row.namespace, row.orphan, row.name) : link('tables', row.namespace, row.name), h('div', { class: 'quiet small' }, row.type ?? '')],
    [badge(row.state, row.tone), ' ', row.conditions.map((one) => [badge(one.type, one.tone, `${one.type}=${one.status}, ${one.reason}: ${one.message}`), ' '])],
    row.writers.length ? row.writers.map((one) => [badge(`${one.count} ${one.state}`, one.tone), ' ']) : h('span', { class: 'quiet' }, 'none'),
    ago(row.lastCommit, 'none'),
    row.pending ?? '',
    row.conflicts,
    row.why,
  ];
  return h('tr', { 'data-key': key(row) }, cells.map((content, n) =>
    cell(COLUMNS[n], content, { class: n === 4 || n === 5 ? 'number' : n === 6 ? 'why' : undefined })));
}

export function tablesPage(main, { asked, go }) {
  const rows = new Map(); // key: the row, and what is drawn of it
  let words = '';
  let order = Object.keys(ORDERS)[0];
  let first = 0;
  let shown = [];

  const body = h('tbody');
  const count = h('p', { class: 'quiet', role: 'status' });
  const filter = h('input', { type: 'search', id: 'filter', placeholder: 'Filter: name, state, writer state, reason  ( / )', 'aria-label': 'Filter' });
  const sorted = h('select', { id: 'order', 'aria-label': 'Order' }, Object.keys(ORDERS).map((one) => h('option', {}, one)));
  const before = h('button', { type: 'button', onclick: () => turn(-AT_ONCE) }, '‹ Before');
  const after = h('button', { type: 'button', onclick: () => turn(AT_ONCE) }, 'More ›');
  const pages = h('div', { class: 'pages' }, before, h('span'), after);
  filter.addEventListener('input', () => { words = filter.value.toLowerCase(); first = 0; draw(); });
  sorted.addEventListener('change', () => { order = sorted.value; first = 0; draw(); });

  function turn(by) {
    first += by;
    draw();
    window.scrollTo(0, 0);
  }

  function text(row) {
    return [key(row), row.state, row.type, row.why, ...row.conditions.map((one) => `${one.type} ${one.reason}`), ...row.writers.map((one) => one.state)].join(' ').toLowerCase();
  }

  function draw() {
    const wanted = words.split(/\s+/).filter(Boolean);
    shown = [...rows.values()].filter((one) => wanted.every((word) => one.text.includes(word)));
    shown.sort((a, b) => ORDERS[order](a.row, b.row));
    first = Math.max(0, Math.min(first, Math.floor(Math.max(0, shown.length - 1) / AT_ONCE) * AT_ONCE));
    const held = document.activeElement?.closest?.('tr')?.dataset.key;
    body.replaceChildren(...shown.slice(first, first + AT_ONCE).map((one) => (one.node ??= drawn(one.row))));
    if (held && document.activeElement === document.body) body.querySelector(`tr[data-key="${CSS.escape(held)}"] a`)?.focus();
    const needs = [...rows.values()].filter((one) => urgency(one.row) === 0).length;
    count.textContent = rows.size
      ? `${rows.size} tables, ${needs} with something that needs a person${shown.length < rows.size ? `; ${shown.length} match` : ''}`
      : 'No HudiTables here.';
    pages.hidden = shown.length <= AT_ONCE;
    pages.children[1].textContent = ` ${first + 1}–${Math.min(first + AT_ONCE, shown.length)} of ${shown.length} `;
    before.disabled = first === 0;
    after.disabled = first + AT_ONCE >= shown.length;
  }

  function keys(event) {
    const typing = ['INPUT', 'SELECT', 'TEXTAREA'].includes(document.activeElement?.tagName);
    if (event.key === '/' && !typing) {
      event.preventDefault();
      filter.focus();
    } else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && document.activeElement?.tagName !== 'SELECT') {
      const links = [...body.querySelectorAll('tr > td:first-child a')];
      const at = links.indexOf(document.activeElement);
      if (at < 0 && document.activeElement !== filter) return;
      event.preventDefault();
      const to = at + (event.key === 'ArrowDown' ? 1 : -1);
      (to < 0 ? filter : links[to])?.focus();
    }
  }
  document.addEventListener('keydown', keys);

  function spaces(problem) {
    const field = h('input', { id: 'namespaces', value: asked || (problem && localStorage.getItem(SPACES)) || '', placeholder: 'team-a, team-b', spellcheck: 'false', autocapitalize: 'none' });
    const form = h('form', { class: 'spaces' }, problem ? h('p', { class: 'problem', role: 'alert' }, problem) : null,
      h('label', { for: 'namespaces' }, problem ? 'Namespaces that you may look into' : 'Namespaces'), field,
      h('button', { type: 'submit' }, 'Show'));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const names = field.value.split(/[\s,]+/).filter(Boolean).join(',');
      if (!names) localStorage.removeItem(SPACES);
      go(names ? `#/?namespace=${encodeURIComponent(names)}` : '#/');
    });
    return form;
  }

  let begun = false;
  return {
    show(found) {
      if (found.all) rows.clear();
      for (const [namespace, name] of found.gone ?? []) rows.delete(`${namespace}/${name}`);
      for (const row of found.rows) rows.set(key(row), { row, text: text(row) });
      if (!begun) {
        begun = true;
        if (asked) localStorage.setItem(SPACES, asked); // not before: a slip of the pen would be asked for ever after
        main.replaceChildren(
          h('div', { class: 'bar' }, h('h1', {}, 'Tables'), filter, sorted, spaces('')), count,
          h('table', { class: 'cards tables' }, h('thead', {}, h('tr', {}, COLUMNS.map((one) => h('th', { scope: 'col' }, one)))), body), pages);
      }
      if (found.all || found.rows.length || found.gone?.length) draw();
    },
    forbidden(message) {
      const kept = localStorage.getItem(SPACES);
      if (!asked && kept) go(`#/?namespace=${encodeURIComponent(kept)}`);
      else {
        if (asked === kept) localStorage.removeItem(SPACES);
        main.replaceChildren(h('h1', {}, 'Tables'), spaces(message));
        document.getElementById('namespaces').focus();
      }
    },
    end() { document.removeEventListener('keydown', keys); },
  };
}
