// The history of the series that a place draws, over a span: fetched again at each step.
import { addressWith, chosen } from "./address.js";
import { h } from "./dom.js";
import { ask, seen } from "./live.js";

const SPANS = { "5m": "5 min", "1h": "1 hour", "1d": "1 day" };

/** The time span in the address. */
export const chosenSpan = () => chosen("span", "5m", Object.keys(SPANS));

/** The links that choose the time span. */
export function spanChoice() {
  return h("nav", { class: "spans", "aria-label": "Time span" }, Object.entries(SPANS).map(([name, text]) =>
    h("a", { href: addressWith({ span: name === "5m" ? null : name }), "data-go": true, "aria-current": name === chosenSpan() && "true" }, text)));
}

export class Histories {
  constructor(onChange) {
    this._onChange = onChange;
    this._abort = null;
    this._query = null;
    this.data = null;
    this.fault = "";
    this._ended = new AbortController();
    document.addEventListener("visibilitychange", () => this._turn(), { signal: this._ended.signal });
  }

  /** Fetches series over a span, and again whenever a new value is due. */
  follow(span, names) {
    const query = String(new URLSearchParams({ span, series: names.join(",") }));
    if (query === this._query) return;
    this._query = query;
    this._turn();
  }

  close() {
    this._ended.abort();
    this._stop();
  }

  /** Fetches again, or stops while the page is hidden. */
  _turn() {
    this._stop();
    if (seen()) this._ask();
  }

  _stop() {
    clearTimeout(this._timer);
    if (this._abort) this._abort.abort();
  }

  /** The times and values of a series; holes are null. */
  series(name) {
    return (this.data && this.data.series[name]) || [];
  }

  times() {
    if (!this.data) return [];
    const longest = Object.values(this.data.series)[0] || [];
    return longest.map((_, index) => this.data.first_s + index * this.data.step_s);
  }

  async _ask() {
    const own = new AbortController();
    this._abort = own;
    let again_ms = 5000;
    try {
      const found = await ask(`/api/history?${this._query}`, own.signal);
      if (own.signal.aborted) return;
      this.data = found;
      this.fault = "";
      again_ms = Math.max(2000, (found.step_s * 1000) / 2);
      this._onChange();
    } catch (fault) {
      if (own.signal.aborted) return;
      this.fault = fault.message;
      this._onChange();
    }
    this._timer = setTimeout(() => this._ask(), again_ms);
  }
}

/** A small line of a series, for a tile. `first`: draws from zero. */
export function sparkline(values, build) {
  const width = 120;
  const height = 28;
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return build("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const greatest = Math.max(...known, 1e-9);
  const x = (index) => ((index / (values.length - 1)) * width).toFixed(1);
  const y = (value) => (height - 1 - (value / greatest) * (height - 4)).toFixed(1);
  let line = "";
  let area = "";
  let open = null;
  values.forEach((value, index) => {
    if (value === null) {
      if (open !== null) area += `L${x(index - 1)} ${height}Z`;
      open = null;
      return;
    }
    line += `${open === null ? "M" : "L"}${x(index)} ${y(value)}`;
    area += open === null ? `M${x(index)} ${height}L${x(index)} ${y(value)}` : `L${x(index)} ${y(value)}`;
    open = index;
  });
  if (open !== null) area += `L${x(open)} ${height}Z`;
  return build("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    build("path", { class: "area", d: area }), build("path", { d: line }));
}
