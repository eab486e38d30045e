// The console's own API: one JSON document, or one for each line while something changes.

// Of this document alone: what is stored would be there for whatever is served at this address next, behind another port-forward.
// A proxy that signs users in needs none of it.
let held = null;
export const token = {
  get: () => held,
  set: (value) => { held = value; },
  clear: () => { held = null; },
};

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// What the console itself says is final. Anything else comes from a proxy in front of it, and passes: 404 while the console is started, say.
async function refusal(answer) {
  try {
    return new Refused(answer.status, (await answer.json()).error.message);
  } catch {
    // A redirect, or a page of its own: a proxy that wants its user to sign in again, which only a whole page can do.
    if (answer.type === 'opaqueredirect' || answer.status === 401 || answer.status === 403) return new Refused(0, 'You are signed out.');
    return new Error(`the console answers with ${answer.status}`);
  }
}

const FIRST = 180e3;
const SILENT = 60e3; // the server says something at least every 23 s

async function* documents(path, outer) {
  const own = new AbortController();
  const signal = AbortSignal.any([outer, own.signal]);
  let timer;
  const heard = (most) => {
    clearTimeout(timer);
    timer = setTimeout(() => own.abort(new Error('the console is silent')), most);
  };
  heard(FIRST);
  try {
    yield* read(path, signal, () => heard(SILENT));
  } finally {
    clearTimeout(timer);
    own.abort();
  }
}

async function* read(path, signal, heard) {
  const headers = held ? { Authorization: `Bearer ${held}` } : {};
  const answer = await fetch(path, { headers, signal, cache: 'no-store', credentials: 'same-origin', redirect: 'manual' });
  if (!answer.ok) throw await refusal(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    heard();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    for (const line of lines.filter(Boolean)) {
      const found = JSON.parse(line);
      if (found.error) throw new Refused(found.error.status, found.error.message);
      yield found;
    }
  }
}

const sleep = (milliseconds, signal) => new Promise((done) => {
  const timer = setTimeout(done, milliseconds);
  signal.addEventListener('abort', () => { clearTimeout(timer); done(); }, { once: true });
});

// Shows every document until the signal; asks again when the connection ends. Throws what a user has to act on.
export async function follow(path, signal, show, tell) {
  const whole = `${path}${path.includes('?') ? '&' : '?'}watch=true`;
  let tries = 0; // a 401 after something was shown: a proxy may have a new token by now, or the API server has just begun
  for (let wait = 1000; !signal.aborted; wait = Math.min(2 * wait, 30000)) {
    try {
      for await (const found of documents(whole, signal)) {
        if (signal.aborted) return;
        wait = 500;
        tries = 3;
        tell('live', 'good');
        show(found);
      }
      tell('reconnecting', 'busy');
    } catch (error) {
      if (signal.aborted) return;
      const passes = error.status >= 500 || error.status === 429 || (error.status === 401 && tries-- > 0);
      if (error instanceof Refused && !passes) throw error;
      tell(`not connected: ${error.message}`, 'bad');
    }
    await sleep(wait, signal);
  }
}
