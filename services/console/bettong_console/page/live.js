// The newest view of the server, and how old it is. A connection that ends is made again, at growing intervals.

const AGAIN_MS_MAX = 15_000;
// A look takes a second, and one may be late.
export const OLD_S = 4;

export class Live {
  constructor(view, onView, onAge) {
    this._view = view;
    this._onView = onView;
    this._onAge = onAge;
    this._again_ms = 500;
    this._received_ms = null;
    this._lag_s = 0;
    this._fault = "";
    this._timer = setInterval(() => this._age(), 1000);
    this._connect();
  }

  close() {
    clearInterval(this._timer);
    clearTimeout(this._retry);
    if (this._source) this._source.close();
    this._source = null;
  }

  _connect() {
    const source = new EventSource(`/api/live?view=${encodeURIComponent(this._view)}`);
    this._source = source;
    source.onmessage = (event) => {
      const view = JSON.parse(event.data);
      this._again_ms = 500;
      this._fault = "";
      this._received_ms = performance.now();
      this._lag_s = Math.max(0, view.status.now_s - view.status.time_s);
      this._onView(view);
      this._age();
    };
    source.onerror = () => {
      source.close();
      this._why();
      this._retry = setTimeout(() => this._connect(), this._again_ms);
      this._again_ms = Math.min(AGAIN_MS_MAX, this._again_ms * 2);
    };
  }

  async _why() {
    // An EventSource does not tell why it was refused.
    try {
      const answer = await fetch(`/api/now?view=${encodeURIComponent(this._view)}`);
      if (answer.status === 401) location.assign(`/sign-in?then=${encodeURIComponent(location.pathname + location.search)}`);
      else this._fault = answer.ok ? "no room for another open page" : (await answer.json()).error;
    } catch {
      this._fault = "the console does not answer";
    }
    this._age();
  }

  _age() {
    const age_s = this._received_ms === null ? null : (performance.now() - this._received_ms) / 1000 + this._lag_s;
    this._onAge(age_s, this._fault);
  }
}

/** Keeps an integer that JavaScript has no number for as it was written: a time in ns, a large key. */
function exact(_, value, context) {
  const rounded = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return rounded && context && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
}

/** JSON of an address. Throws an Error with the server's reason. */
export async function ask(path, signal) {
  const answer = await fetch(path, { signal });
  if (answer.status === 401) location.assign(`/sign-in?then=${encodeURIComponent(location.pathname + location.search)}`);
  const values = JSON.parse(await answer.text(), exact);
  if (!answer.ok) throw new Error(values.error || `HTTP ${answer.status}`);
  return values;
}
