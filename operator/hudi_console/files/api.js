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

async function refusal(answer) {
  try {
    return new Refused(answer.status, (await answer.json()).error.message);
  } catch {
    return new Refused(answer.status, `the console answers with ${answer.status}`);
  }
}

async function* documents(path, signal) {
  const headers = held ? { Authorization: `Bearer ${held}` } : {};
  // A redirect is a proxy that wants its user to sign in again, which only a whole page can do.
  const answer = await fetch(path, { headers, signal, cache: 'no-store', credentials: 'same-origin', redirect: 'error' });
  if (!answer.ok) throw await refusal(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
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
  for (let wait = 1000; !signal.aborted; wait = Math.min(2 * wait, 30000)) {
    try {
      for await (const found of documents(whole, signal)) {
        if (signal.aborted) return;
        wait = 500;
        tell('live', 'good');
        show(found);
      }
      tell('reconnecting', 'busy');
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && error.status < 500 && error.status !== 429) throw error;
      tell(`not connected: ${error.message}`, 'bad');
    }
    await sleep(wait, signal);
  }
}
