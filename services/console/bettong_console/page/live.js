// The newest view of the server, and its age. Reconnects with growing intervals.

const AGAIN_MS_MAX = 15_000;
// The server inspects once a second, and one inspection may be late.
export const OLD_S = 4;
// For the title of a hidden page, which keeps no connection: browsers have six for all pages of a site.
const GLANCE_MS = 30_000;
const ANSWER_MS_MAX = 15_000;
// Answers for which the server folds or reads a log take up to 60 s.
export const QUESTION_MS_MAX = 75_000;

/** Whether the page may be visible. */
export const seen = () => document.visibilityState !== "hidden";

export class Live {
  constructor(view, onView, onAge) {
    this._view = view;
    this._onView = onView;
    this._onAge = onAge;
    this._again_ms = 500;
    this._received_ms = null;
    this._lag_s = 0;
    this._fault = "";
    this._source = null;
    this._ended = new AbortController();
    this._timer = setInterval(() => this._age(), 1000);
    document.addEventListener("visibilitychange", () => this._turn(), { signal: this._ended.signal });
    this._turn();
  }

  close() {
    this._ended.abort();
    clearInterval(this._timer);
    this._disconnect();
  }

  /** A stream while the page is visible, else an occasional request. */
  _turn() {
    this._disconnect();
    if (seen()) this._connect();
    else this._again = setTimeout(() => this._glance(), this._received_ms === null ? 0 : GLANCE_MS);
  }

  _disconnect() {
    clearTimeout(this._again);
    if (this._source) this._source.close();
    this._source = null;
  }

  _connect() {
    const source = new EventSource(`/api/live?view=${encodeURIComponent(this._view)}`);
    this._source = source;
    source.onmessage = (event) => this._receive(JSON.parse(event.data));
    source.onerror = () => {
      source.close();
      this._why();
      this._again = setTimeout(() => this._connect(), this._again_ms);
      this._again_ms = Math.min(AGAIN_MS_MAX, this._again_ms * 2);
    };
  }

  async _glance() {
    try {
      const view = await ask(`/api/now?view=${encodeURIComponent(this._view)}`, this._ended.signal);
      if (!this._ended.signal.aborted && !seen()) this._receive(view);
    } catch (fault) {
      this._fault = fault.message;
    }
    if (!this._ended.signal.aborted && !seen()) this._again = setTimeout(() => this._glance(), GLANCE_MS);
  }

  _receive(view) {
    this._again_ms = 500;
    this._fault = "";
    this._received_ms = performance.now();
    this._lag_s = Math.max(0, view.status.now_s - view.status.time_s);
    this._onView(view);
    this._age();
  }

  async _why() {
    // An EventSource does not report why it was refused.
    try {
      const answer = await fetch(`/api/now?view=${encodeURIComponent(this._view)}`, { signal: limited(this._ended.signal, ANSWER_MS_MAX) });
      if (answer.status === 401) location.assign(`/sign-in?then=${encodeURIComponent(location.pathname + location.search)}`);
      else this._fault = answer.ok ? "no room for another open page" : (await answer.json()).error;
    } catch {
      this._fault = "the console does not answer";
    }
    if (!this._ended.signal.aborted) this._age();
  }

  _age() {
    const age_s = this._received_ms === null ? null : (performance.now() - this._received_ms) / 1000 + this._lag_s;
    this._onAge(age_s, this._fault);
  }
}

/** Keeps integers that JavaScript numbers cannot represent as text: a time in ns, a large key. */
function exact(_, value, context) {
  const rounded = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return rounded && context && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
}

function limited(signal, within_ms) {
  return AbortSignal.any([...(signal ? [signal] : []), AbortSignal.timeout(within_ms)]);
}

/** JSON from an address. Throws an Error with the server's reason, or if there is no answer in time. */
export const ask = (path, signal, within_ms = ANSWER_MS_MAX) => answerOf(path, { signal: limited(signal, within_ms) }, within_ms);

/** The same for a POST of JSON, to make a change. */
export const send = (path, values, within_ms) =>
  answerOf(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(values), signal: limited(null, within_ms) }, within_ms);

async function answerOf(path, options, within_ms) {
  let answer;
  let text;
  try {
    answer = await fetch(path, options);
    text = await answer.text();
  } catch (fault) {
    throw fault.name === "TimeoutError" ? new Error(`the console does not answer within ${within_ms / 1000} s`) : fault;
  }
  if (answer.status === 401) location.assign(`/sign-in?then=${encodeURIComponent(location.pathname + location.search)}`);
  const values = JSON.parse(text, exact);
  if (!answer.ok) throw new Error(values.error || `HTTP ${answer.status}`);
  return values;
}
