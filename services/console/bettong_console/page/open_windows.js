// Which windows are open, and which origin of which source holds each of them open, since when.
import { h } from "./dom.js";
import { amount, count, duration, moment, secondsOf } from "./format.js";

const at = (seconds) => moment(seconds, { day: true });
const HEADS = [["Computation"], ["Window"], ["Until", "the watermark is at"], ["In", "partitions", true], ["Watermark", "of the slowest"], ["Short", "of event time", true], ["Held by"]];

export function openWindows(found) {
  if (found.length === 0) return null;
  return h("section", { class: "card" },
    h("header", {}, h("h2", {}, "Open windows"), h("span", { class: "quiet small" }, "the oldest of each computation; what holds them open, and since when")),
    h("div", { class: "scroll" }, h("table", { class: "ages windows" },
      h("thead", {}, h("tr", {}, HEADS.map(([head, small, numeric]) => h("th", { scope: "col", class: numeric ? "number" : "" }, head, small && h("small", {}, small))))),
      h("tbody", {}, found.map((each) => h("tr", {},
        h("td", { class: "name", title: `${each.computation}, stage ${each.stage}` }, each.computation),
        h("td", {}, what(each)),
        h("td", {}, at(secondsOf(each.due_ns))),
        h("td", { class: "number" }, count(each.partitions)),
        h("td", {}, each.watermark_ns === null ? amount(null) : at(secondsOf(each.watermark_ns)), h("span", { class: "unit" }, `${each.stage}/${each.partition}`)),
        h("td", { class: "number" }, duration(each.short_s)),
        h("td", { class: "text quiet" }, held(each))))))));
}

function what(each) {
  if (each.kind !== "window") return { session: "at the earliest", join: "none: a join", timer: "none: a timer" }[each.kind];
  const day = (seconds) => new Date(seconds * 1000).toDateString();
  const [start_s, end_s] = [secondsOf(each.start_ns), secondsOf(each.end_ns)];
  return h("span", {}, at(start_s), " to ", day(start_s) === day(end_s) ? moment(end_s) : at(end_s));
}

function held(each) {
  const waiting = each.waiting_records && h("span", {}, count(each.waiting_records, "records"), " of its log are not folded yet");
  if (each.waits_for === "records") return h("span", {}, waiting, each.held_by && h("span", {}, "; its slowest input: ", origin(each.held_by)));
  return h("span", {}, holder(each, each.held_by), waiting && "; ", waiting);
}

function holder(each, own) {
  if (!own) return each.waits_for === "clock" ? "No origin is live, so event time follows the clock" : "No message has arrived yet";
  if (each.waits_for === "partition") return h("span", {}, origin(own), " has reported no event time yet", own.awaited_partitions > 1 && `, nor have ${own.awaited_partitions - 1} more`, "; it is waited for");
  if (each.waits_for === "event time") return h("span", {}, origin(own), " has sent no event time yet", idle(own));
  return h("span", {}, origin(own), " has not moved since ", at(own.since_unix_s), own.since_at_least && " or before", ", silent for ", duration(own.silent_s), idle(own));
}

const origin = (own) => h("strong", {}, own.is_of_stage ? `partition ${own.stream} of stage ${own.input}` : `${own.stream} of source ${own.input}`);
const idle = (own) => (own.idle_at_unix_s === null ? "; it is waited for however long it is silent" : h("span", {}, "; idle after ", duration(own.idle_timeout_s), ", at ", at(own.idle_at_unix_s)));
