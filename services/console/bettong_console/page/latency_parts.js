// Where the latency of results goes: a bar in parts, and a list of the parts. Numbers connect both, not only colours.
import { h } from "./dom.js";
import { milliseconds, percent } from "./format.js";

// Narrower parts have no room for their number; the list has it.
const NUMBERED_FROM = 0.06;

export function latencyParts(sinks, left_out, why) {
  return h("section", { class: "card" },
    h("header", {}, h("h2", {}, "Where the latency goes"), h("span", { class: "quiet small" }, "client to delivery, means of the last minute")),
    sinks.length === 0
      ? h("p", { class: "body empty" }, why)
      : h("div", { class: "body latencies ages" }, sinks.map(sinkParts), left_out > 0 && h("p", { class: "quiet small" }, `${left_out} more sinks: bettong status --latency`)));
}

/** Why there are none. */
export function noParts(measured, delivered) {
  if (!measured) return "The parts of the latency are not measured (BETTONG_MEASURES=off).";
  if (!delivered) return "Nothing was delivered in the last minute.";
  return "Results of the last minute carry no parts of their latency: they are dead letters of receivers, or come from an older version.";
}

function sinkParts(sink) {
  return h("div", { class: "latency" },
    h("p", { class: "wrap" }, h("strong", {}, sink.sink), " ", milliseconds(sink.mean_ms), h("span", { class: "quiet" }, `, most of it ${sink.largest}`)),
    h("div", { class: "parts", "aria-hidden": "true" }, sink.parts.map((each, index) =>
      h("i", { class: `part-${index + 1}`, title: each.part, vars: { "--part": String(each.share) } }, each.share >= NUMBERED_FROM ? String(index + 1) : ""))),
    h("ol", {}, sink.parts.map((each, index) =>
      h("li", { class: each.part === sink.largest ? "largest" : "", title: `99 of 100 take less than ${each.p99_ms.toFixed(2)} ms here` },
        h("span", { class: `number-of part-${index + 1}`, "aria-hidden": "true" }, String(index + 1)),
        h("span", {}, each.part), " ", h("span", { class: "quiet" }, milliseconds(each.mean_ms), ", ", percent(each.share))))));
}
