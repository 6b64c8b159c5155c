// Changes on a time axis: a row for each kind, a mark for each change; marks that would overlap are one.
import { addressWith } from "./address.js";
import { h } from "./dom.js";
import { moment, utc } from "./format.js";

const SPAN_S = { "5m": 300, "1h": 3600, "1d": 86_400 };
const TICK_S = { "5m": 60, "1h": 600, "1d": 14_400 };
const KINDS = { alert: "Alerts", service: "Services", states: "Workers and states", messages: "Messages" };
// The width of a mark on a phone, as a share of the axis.
const APART = 1 / 24;

/** The id of a change in the address: changes may share a time. */
export const nameOf = (change) => `${change.at_s}-${change.kind}`;

/** `since_s`: earlier changes are unknown, or incomplete. `at`: the id of the chosen one. */
export function eventStrip(changes, since_s, now_s, span, at) {
  const first_s = now_s - SPAN_S[span];
  const left = (seconds) => `${(Math.min(1, Math.max(0, (seconds - first_s) / SPAN_S[span])) * 100).toFixed(2)}%`;
  const inside = changes.filter((each) => each.at_s >= first_s && each.at_s <= now_s).toSorted((a, b) => b.at_s - a.at_s);
  return h("div", { class: "body strip ages" },
    h("div", { class: "kind-rows" },
      since_s > first_s && h("div", { class: "axis" }, h("span", { class: "unlooked", vars: { width: left(since_s) }, title: `incomplete before ${utc(since_s)}` })),
      h("div", { class: "axis rules", "aria-hidden": "true" }, ticks(first_s, now_s, TICK_S[span]).map((tick) => h("i", { vars: { left: left(tick) } }))),
      Object.entries(KINDS).map(([kind, name]) => kindRow(kind, name, clusters(inside.filter((each) => each.kind === kind), SPAN_S[span] * APART), left, at))),
    h("div", { class: "axis times" }, ticks(first_s, now_s, TICK_S[span]).map((tick) =>
      h("time", { datetime: new Date(tick * 1000).toISOString(), title: utc(tick), vars: { left: left(tick) } }, new Date(tick * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })))),
    h("p", { class: "quiet small" }, summary(inside.length, since_s > first_s ? since_s : null)));
}

function summary(found, since_s) {
  return [found === 0 ? "Nothing has changed in this time. " : `${found} ${found === 1 ? "change" : "changes"} in this time. `,
    since_s !== null && ["Hatched: before ", moment(since_s, { day: true }), ", incomplete."]];
}

function kindRow(kind, name, found, left, at) {
  return h("div", { class: "kind-row" }, h("span", { class: "label" }, name),
    h("div", { class: "track", role: "group", "aria-label": `${name}: ${found.length === 0 ? "none" : found.length} ${found.length === 1 ? "mark" : "marks"} in this time` }, found.map((each) => mark(kind, each, left, at))));
}

/** A link to the newest of its changes in the list. */
function mark(kind, changes, left, at) {
  const newest = changes[0];
  const text = `${new Date(newest.at_s * 1000).toLocaleTimeString("en-GB")} ${changes.length > 1 ? `${changes.length} changes, the last: ` : ""}${newest.what} ${newest.text}`;
  const look = changes.some((each) => each.what === "alert") ? "begun" : kind === "alert" ? "over" : kind;
  return h("a", { class: `mark ${look}`, href: addressWith({ at: nameOf(newest) }), "data-go": true, title: text, "aria-label": text, "aria-current": changes.some((each) => nameOf(each) === at) && "true", vars: { left: left(newest.at_s) } },
    changes.length > 1 ? String(changes.length) : null);
}

/** Groups of changes, the newest first, each with those within so many seconds before it. */
function clusters(changes, apart_s) {
  const found = [];
  for (const each of changes) {
    const last = found.at(-1);
    if (last && last[0].at_s - each.at_s < apart_s) last.push(each);
    else found.push([each]);
  }
  return found;
}

/** Round local times between two moments. */
function ticks(first_s, now_s, step_s) {
  const local_s = -60 * new Date(now_s * 1000).getTimezoneOffset();
  const found = [];
  for (let tick = Math.ceil((first_s + local_s) / step_s) * step_s - local_s; tick <= now_s; tick += step_s) found.push(tick);
  return found;
}
