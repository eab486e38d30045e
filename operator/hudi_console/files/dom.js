// Elements, and times for people. Text is set as text, never as HTML: statuses have words of drivers, which nobody vouches for.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

export const h = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// How far the clock of the console is ahead of the browser's, in milliseconds.
let ahead = 0;
export const setNow = (at) => { ahead = Date.parse(at) - Date.now(); };
export const now = () => Date.now() + ahead;

// A length of time as kubectl writes ages: 42s, 3m20s, 5h, 2d.
export function span(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 600) return seconds % 60 ? `${Math.floor(seconds / 60)}m${seconds % 60}s` : `${seconds / 60}m`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86400)}d`;
}

export const utc = (moment) => new Date(moment).toISOString().slice(0, 19).replace('T', ' ');

// "3m20s ago", which goes on by itself; nothing for no time.
export function ago(text, otherwise = '') {
  if (!text) return h('span', {}, otherwise);
  return h('time', { datetime: text, title: `${utc(text)} UTC`, 'data-ago': true }, `${span(now() - Date.parse(text))} ago`);
}

setInterval(() => {
  if (document.hidden) return;
  for (const one of document.querySelectorAll('time[data-ago]')) {
    one.textContent = `${span(now() - Date.parse(one.dateTime))} ago`;
  }
}, 1000);

export const badge = (text, tone, title) => h('span', { class: `badge ${tone}`, title }, text);
export const link = (kind, namespace, name, text = name) =>
  h('a', { href: `#/${kind}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}` }, text);
export const section = (title, ...children) => h('section', {}, h('h2', {}, title), ...children);

// A cell that knows its column: on a small screen each row is a card. An empty one is left out there.
export const cell = (column, content, attributes = {}) =>
  h('td', { 'data-column': column, ...attributes }, content === '' || content === null || content === undefined ? [] : h('div', {}, content));

export function grid(columns, rows, attributes = {}) {
  return h('table', attributes,
    h('thead', {}, h('tr', {}, columns.map((one) => h('th', { scope: 'col' }, one)))),
    h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((content, n) => cell(columns[n], content))))));
}

export const fact = (name, value) =>
  (value === undefined || value === null || value === '' ? null : h('div', {}, h('dt', {}, name), h('dd', {}, value)));

// The chain of reasons of `kubectl hudi why`.
export function reasons(one) {
  return h('li', {}, one.fact, one.todo ? h('div', { class: 'todo' }, `→ ${one.todo}`) : null,
    one.causes.length ? h('ul', {}, one.causes.map(reasons)) : null);
}

export const conditions = (all) => grid(['Condition', 'Status', 'Reason', 'Since', 'Message'], all.map((one) => [
  one.type, badge(one.status, one.tone), one.reason, ago(one.since), one.message,
]));

export const history = (told, hidden) => [
  grid(['Time (UTC)', 'Who', 'What'], told.map((one) => [utc(one.time), one.who, one.what])),
  hidden ? h('p', { class: 'quiet' }, 'Events are left out: you may not list them here, or they are too long.') : null,
];

// Parts of a page. Each is drawn again only when what it shows has changed, so that focus and selection stay elsewhere.
export function parts(main) {
  const there = new Map();
  return (name, shown, make) => {
    const text = JSON.stringify(shown ?? null);
    const old = there.get(name);
    if (old?.text === text) return;
    const node = h('div', { 'data-part': name }, shown === null ? [] : make(shown));
    if (old) old.node.replaceWith(node);
    else main.append(node);
    there.set(name, { text, node });
  };
}
