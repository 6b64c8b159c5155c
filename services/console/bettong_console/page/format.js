// The format of numbers and times: a unit with each number, significant digits, and a dash for unknown values.
import { h } from "./dom.js";

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const TENTHS = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const HUNDREDTHS = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const LARGE = [[1e12, "T"], [1e9, "G"], [1e6, "M"]];

/** A number as text, without its unit; "–" for an unknown one. */
export function digits(value, { whole = false } = {}) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  for (const [size, letter] of LARGE) {
    if (Math.abs(value) >= size) return `${HUNDREDTHS.format(value / size)} ${letter}`;
  }
  if (whole || value === 0 || Math.abs(value) >= 100) return WHOLE.format(value);
  return Math.abs(value) >= 10 ? TENTHS.format(value) : HUNDREDTHS.format(value);
}

/** A short round number, for an axis. */
export function compact(value) {
  if (Math.abs(value) >= 1e6) return `${+(value / 1e6).toFixed(2)} M`;
  return Math.abs(value) >= 1e4 ? `${+(value / 1e3).toFixed(1)} k` : String(+value.toFixed(3));
}

/** A number and its unit, as elements. */
export function amount(value, unit, options) {
  if (value === null || value === undefined) return h("span", { class: "nothing", title: "unknown" }, "–");
  const exact = Number.isInteger(value) && Math.abs(value) >= 1e6 ? WHOLE.format(value) : null;
  return h("span", { title: exact && `${exact} ${unit}` }, digits(value, options), unit && h("span", { class: "unit" }, unit));
}

const SIZES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];

/** Bytes in a suitable unit; the exact number on hover. */
export function bytes(value) {
  if (value === null || value === undefined) return amount(null);
  const [size, unit] = SIZES.find(([least]) => value >= least) ?? [1, "B"];
  const shown = amount(value / size, unit, { whole: size === 1 });
  shown.title = `${WHOLE.format(value)} bytes`;
  return shown;
}

export const count = (value, unit) => amount(value, unit, { whole: true });
export const rate = (value) => amount(value === null ? null : Number(value), "/s", { whole: value !== null && value >= 100 });

/** A duration in a suitable unit: [number, unit]. */
export function durationParts(seconds) {
  if (Math.abs(seconds) < 0.0995) return [digits(seconds * 1000), "ms"];
  if (seconds < 120) return [digits(seconds), "s"];
  if (seconds < 7200) return [WHOLE.format(seconds / 60), "min"];
  return seconds < 172_800 ? [digits(seconds / 3600), "h"] : [digits(seconds / 86_400), "d"];
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return amount(null);
  if (seconds === 0) return amount(0, "s");
  const [number, unit] = durationParts(seconds);
  return h("span", {}, number, h("span", { class: "unit" }, unit));
}

export const durationText = (seconds) => durationParts(seconds).join(" ");

export function milliseconds(value) {
  return value === null || value === undefined ? amount(null) : value >= 10_000 ? duration(value / 1000) : amount(value, "ms");
}

/** A share, 0 to 1, of a core or of a whole, in percent. */
export const percent = (share) => amount(share === null ? null : share * 100, "%");

/** Seconds of a time in ns, which may be a text: see `live.js`. Exact to the µs, which is enough for people. */
export const secondsOf = (ns) => Number(ns.rawJSON ?? ns) / 1e9;

/** A moment in local time; UTC on hover, and for machines. */
export function moment(seconds, { day = false } = {}) {
  const at = new Date(seconds * 1000);
  const time = at.toLocaleTimeString("en-GB");
  const shown = day && at.toDateString() !== new Date().toDateString() ? `${at.toLocaleDateString("en-CA")} ${time}` : time;
  return h("time", { datetime: at.toISOString(), title: utc(seconds) }, shown);
}

export const utc = (seconds) => `${new Date(seconds * 1000).toISOString().replace("T", " ").replace(/\.\d+Z$/, "")} UTC`;

/** The time since a moment, with that moment on hover. */
export function since(seconds, now) {
  if (seconds === null || seconds === undefined) return amount(null);
  const found = duration(Math.max(0, now - seconds));
  found.title = `since ${utc(seconds)}`;
  return found;
}
