// A latency by percentile: each step to the right is a tenth of the messages that are left, as HdrHistogram plots it.
// Lines, and a table with the most important numbers.
import { addressWith } from "./address.js";
import { h, s } from "./dom.js";
import { count, milliseconds } from "./format.js";

const COLUMNS = [[0.5, "p50"], [0.9, "p90"], [0.99, "p99"], [0.999, "p99.9"], [0.9999, "p99.99"], [1, "longest"]];
const TICKS = [[0.5, "50 %"], [0.9, "90 %"], [0.99, "99 %"], [0.999, "99.9 %"], [0.9999, "99.99 %"], [0.99999, "99.999 %"]];
const SIZE = 1000;

/** The curve of the sink of that name, else of the one with most messages. `why`: the text if there is none. */
export function latencyByPercentile(view, name, why) {
  const curves = view ? view.latency_curves : [];
  const found = curves.find((each) => each.sink === name) ?? curves.toSorted((a, b) => b.messages - a.messages)[0];
  return h("section", { class: "card percentiles" },
    h("header", {}, h("h2", {}, "Latency by percentile"), h("span", { class: "quiet small" }, "client to delivery, of the last minute"),
      curves.length > 1 && h("nav", { class: "spans end", "aria-label": "Sink" }, curves.map(({ sink }) =>
        h("a", { href: addressWith({ sink }), "data-go": true, "aria-current": sink === found.sink && "true" }, sink)))),
    found ? h("div", { class: "body ages" }, plot(found, view.latency_shares), table(found, view.latency_shares)) : h("p", { class: "body empty" }, why));
}

const lines = (curve) => [["end to end", curve.within_ms], ...curve.parts.map((each) => [each.part, each.within_ms])];

function plot(curve, shares) {
  // Beyond the resolution of so many messages, all values are the longest one.
  const right = Math.min(5, Math.max(1, Math.log10(curve.messages)));
  const x = (share) => Math.min(1, -Math.log10(Math.max(1 - share, 1e-9)) / right);
  const known = lines(curve).flatMap(([, values]) => values).filter((value) => value > 0);
  const top = Math.ceil(Math.log10(Math.max(...curve.within_ms, 1e-3)) - 1e-9);
  const bottom = Math.min(top - 1, Math.max(top - 5, Math.floor(Math.log10(Math.min(...known)))));
  const y = (value) => Math.min(1, Math.max(0, (Math.log10(Math.max(value, 1e-9)) - bottom) / (top - bottom)));
  const decades = Array.from({ length: top - bottom + 1 }, (_, index) => bottom + index);
  const path = (values) => values.map((value, index) => `${index ? "L" : "M"}${(x(shares[index]) * SIZE).toFixed(1)} ${((1 - y(value)) * SIZE).toFixed(1)}`).join("");
  const at = (index) => curve.within_ms[shares.indexOf(index)].toFixed(2);
  return h("div", { class: "curve", role: "img", "aria-label": `Latency of ${curve.sink} by percentile: half of the messages within ${at(0.5)} ms, 99 of 100 within ${at(0.99)} ms, all within ${at(1)} ms` },
    s("svg", { "aria-hidden": "true", viewBox: `0 0 ${SIZE} ${SIZE}`, preserveAspectRatio: "none" },
      decades.map((decade) => s("path", { class: "rule", d: `M0 ${(1 - y(10 ** decade)) * SIZE}H${SIZE}` })),
      lines(curve).map(([, values], index) => s("path", { class: `line line-${index}`, d: path(values) })).reverse()),
    decades.map((decade) => h("span", { class: "y", vars: { top: `${(1 - y(10 ** decade)) * 100}%` } }, decade >= 3 ? `${10 ** (decade - 3)} s` : `${+(10 ** decade).toFixed(3)} ms`)),
    TICKS.filter(([share]) => x(share) < 1).map(([share, text]) => h("span", { class: "x", vars: { left: `${x(share) * 100}%` } }, text)));
}

function table(curve, shares) {
  return h("div", { class: "scroll" }, h("table", { class: "pinned" },
    h("caption", { class: "unseen" }, `Latency of ${curve.sink} by percentile`),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, curve.sink, h("small", {}, count(curve.messages, "messages"))), COLUMNS.map(([, text]) => h("th", { scope: "col", class: "number" }, text)))),
    h("tbody", {}, lines(curve).map(([name, values], index) => h("tr", {},
      h("td", { class: "name", title: name }, h("span", { class: `line-key line-${index}`, "aria-hidden": "true" }), name),
      COLUMNS.map(([share]) => h("td", { class: "number" }, milliseconds(values[shares.indexOf(share)]))))))));
}
