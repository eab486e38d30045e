// Which page is shown: the part of the address behind the #. One stream is open at a time, that of the page.

import { follow, Refused, token } from './api.js';
import { h, setNow } from './dom.js';
import { tablesPage } from './tables.js';
import { tablePage } from './table.js';
import { writerPage } from './writer.js';

const main = document.getElementById('main');
const trail = document.getElementById('trail');
const live = document.getElementById('live');
const out = document.getElementById('out');
let stop = new AbortController();

function tell(text, tone) {
  if (live.textContent === text) return;
  live.textContent = text;
  live.className = `badge ${tone}`;
}

function route() {
  const [path, query = ''] = location.hash.slice(1).split('?');
  const [kind, namespace, name] = path.split('/').slice(1).map(decodeURIComponent);
  const asked = new URLSearchParams(query).get('namespace') ?? '';
  if (kind === 'tables' && name) return { kind, namespace, name, page: tablePage };
  if (kind === 'writers' && name) return { kind, namespace, name, page: writerPage };
  return { kind: '', asked, page: tablesPage };
}

function path(to) {
  if (to.kind) return `api/v1/${to.kind}/${encodeURIComponent(to.namespace)}/${encodeURIComponent(to.name)}`;
  return to.asked ? `api/v1/tables?namespace=${encodeURIComponent(to.asked)}` : 'api/v1/tables';
}

async function show() {
  stop.abort();
  const mine = new AbortController();
  stop = mine;
  const to = route();
  const where = to.kind ? `${to.namespace}/${to.name}` : '';
  document.title = where ? `${where}: Hudi` : 'Hudi tables';
  out.hidden = !token.get();
  trail.replaceChildren(h('a', { href: '#/' }, 'Tables'), ...(where ? [' / ', h('b', {}, where)] : []));
  main.replaceChildren(h('p', { class: 'quiet' }, 'Loading …'));
  tell('connecting', 'quiet');
  const page = to.page(main, { ...to, go, trail });
  try {
    await follow(path(to), mine.signal, (found) => {
      if (found.at) setNow(found.at);
      page.show(found);
    }, tell);
  } catch (error) {
    if (mine.signal.aborted) return;
    tell('not connected', 'bad');
    if (error instanceof Refused && error.status === 401) signIn(token.get() ? error.message : '');
    else if (error instanceof Refused && [400, 403].includes(error.status) && !to.kind) page.forbidden(error.message);
    else main.replaceChildren(h('p', { class: 'problem', role: 'alert' }, error.message), h('p', {}, error.status === 0
      ? h('button', { type: 'button', onclick: () => location.reload() }, 'Load the page again')
      : h('a', { href: '#/' }, 'All tables')));
  } finally {
    if (mine.signal.aborted || stop === mine) page.end?.();
  }
}

function go(hash) {
  if (location.hash === hash) show();
  else location.hash = hash;
}

function signIn(problem) {
  token.clear();
  out.hidden = true;
  if (!window.isSecureContext) {
    main.replaceChildren(h('p', { class: 'problem', role: 'alert' },
      'A token is not asked for over plain http: whoever is on the way could read it. Use https, or kubectl port-forward and http://hudi-console.localhost:8080.'));
    return;
  }
  const field = h('input', { type: 'password', id: 'token', required: true, autocomplete: 'off', spellcheck: 'false' });
  const form = h('form', { class: 'sign-in' },
    h('h1', {}, 'Sign in'),
    problem ? h('p', { class: 'problem', role: 'alert' }, problem) : null,
    h('label', { for: 'token' }, 'Bearer token of the cluster'), field,
    h('button', { type: 'submit' }, 'Sign in'),
    h('p', { class: 'quiet' }, 'You see what your own rights in the cluster allow. The token stays in this page, until it is closed or loaded again, and goes to the API server; ',
      'the console keeps none. One of a ServiceAccount: ', h('code', {}, 'kubectl create token NAME -n NAMESPACE'), '.'));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    token.set(field.value.trim());
    show();
  });
  main.replaceChildren(form);
  field.focus();
}

out.addEventListener('click', () => {
  token.clear();
  stop.abort();
  signIn('');
  tell('', 'quiet');
});
window.addEventListener('hashchange', () => {
  if (location.hash === '#main') return;
  show();
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
});
show();
