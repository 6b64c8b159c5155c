// Where is it slow? The graph with its numbers, the slowest part with the reason, and the history.
import { addressWith, chosen } from "../address.js";
import { Chart } from "../chart.js";
import { h, morphChildren } from "../dom.js";
import { bytes, compact, count, digits, duration, durationText, milliseconds, moment, percent, rate } from "../format.js";
import { accountOf, computationOf, drawn, heldShare, placed } from "../graph.js";
import { chosenSpan, Histories, spanChoice } from "../histories.js";
import { latencyByPercentile } from "../percentiles.js";

const NARROW_PX = 720;

const per_s = (value) => `${digits(value, { whole: value >= 100 })}/s`;
const ms = (value) => (value >= 10_000 ? durationText(value / 1000) : `${digits(value)} ms`);

// The series of a chart: of the stage of a chosen computation, of a chosen sink, else of the whole application.
const seriesOf = {
  throughput: (box) => (box && box.stage ? [`stage/${box.stage}/messages_per_s`, `stage/${box.stage}/results_per_s`] : box && box.kind === "sink" ? ["", `sink/${box.name}/messages_per_s`] : ["in_per_s", "out_per_s"]),
  latency: (box) => ["p50_ms", "p99_ms", "max_ms"].map((name) => (box && box.stage ? `stage/${box.stage}/${name}` : box && box.kind === "sink" ? `sink/${box.name}/${name}` : name)),
  lag: (box) => [box && box.stage ? `stage/${box.stage}/lag_records` : box && box.kind === "sink" ? "" : "lag_records"],
};
const historyOf = (box) => (box && box.stage ? `History of stage ${box.stage}` : box && box.kind === "sink" ? `History of sink ${box.name}` : "History of the application");

export function applicationPlace(root, description) {
  let view = null;
  let layout = null;
  let laid_px = 0;
  const charts = [
    [new Chart({ title: "Throughput", note: "messages and results", show: per_s, axis: (value) => `${compact(value)}/s`, lines: [{ label: "in", ink: "--series-1" }, { label: "out", ink: "--series-2" }] }), seriesOf.throughput],
    [new Chart({ title: "Latency", note: "to durable output or delivery", show: ms, axis: (value) => (value >= 10_000 ? `${compact(value / 1000)} s` : `${compact(value)} ms`), lines: [{ label: "p50", ink: "--series-3" }, { label: "p99", ink: "--series-1" }, { label: "worst", ink: "--series-2" }] }), seriesOf.latency],
    [new Chart({ title: "Lag", note: "in records", show: (value) => `${digits(value, { whole: true })} records`, axis: compact, lines: [{ label: "in the log", ink: "--series-1" }] }), seriesOf.lag],
  ];
  const histories = new Histories(drawHistory);
  const resized = () => {
    if (Math.abs(root.clientWidth - laid_px) < 20) return;
    fit();
    draw();
  };
  addEventListener("resize", resized);
  fit();
  draw();
  for (const [chart] of charts) chart.begin();
  histories.follow(chosenSpan(), drawnSeries());

  function drawnSeries() {
    const box = chosenBox();
    // The lag shows since when there is a history.
    return [...new Set([...charts.flatMap(([, names]) => names(box)).filter(Boolean), "lag_records"])];
  }

  function fit() {
    laid_px = root.clientWidth;
    layout = placed(description, innerWidth < NARROW_PX, laid_px - (innerWidth < NARROW_PX ? 50 : 84));
  }

  function chosenBox() {
    return description.boxes.find((each) => each.id === chosen("box", null));
  }

  function draw() {
    const box = chosenBox();
    morphChildren(root, h("div", {},
      slowest(view),
      h("section", { class: "card" },
        h("header", {}, h("h2", {}, "Graph"), h("span", { class: "quiet small" }, `${description.stages.length} ${description.stages.length === 1 ? "stage" : "stages"}; choose a box for what it does`)),
        h("div", { class: "body graph" }, drawn(description, layout, view, box ? box.id : null))),
      box && details(box, view),
      latencyByPercentile(view, box && box.kind === "sink" ? box.name : chosen("sink", null), view ? "Nothing was delivered in the last minute." : "Loading …"),
      h("div", { class: "controls" }, h("h2", { class: "wrap" }, historyOf(box)),
        spanChoice(),
        h("span", { class: "quiet small" }, histories.fault || since(histories.data))),
      h("div", { class: "charts" }, charts.map(([chart]) => (chart.element.isConnected ? h("section", { "data-keep": chart.element.dataset.keep }) : chart.element)))));
  }

  function drawHistory() {
    draw();
    drawCharts();
  }

  function drawCharts() {
    const times = histories.times();
    const box = chosenBox();
    for (const [chart, names] of charts) chart.draw(times, names(box).map((name) => histories.series(name)));
  }

  return {
    show(fresh) {
      view = fresh;
      draw();
    },
    addressChanged() {
      histories.follow(chosenSpan(), drawnSeries());
      draw();
      drawCharts();
    },
    end() {
      removeEventListener("resize", resized);
      histories.close();
      for (const [chart] of charts) chart.end();
    },
  };
}

function since(data) {
  if (!data) return "";
  const first = (data.series.lag_records || []).findIndex((value) => value !== null);
  const steps = data.step_s === 1 ? "a value per second" : data.step_s === 10 ? "each 10 s: rates are means, the rest maxima" : "each minute: rates are means, the rest maxima";
  return first > 0 ? h("span", {}, `${steps}; kept since `, moment(data.first_s + first * data.step_s, { day: true }), ", when a console started or a gap ended") : steps;
}

function slowest(view) {
  if (!view) return h("div", { class: "card callout" }, h("span", { class: "quiet" }, "Loading …"));
  const found = view.slowest;
  if (!found) return h("div", { class: "card callout" }, h("p", { class: "quiet" }, "No messages were processed recently, so there is no slowest part. Once there are, it is shown here with the reason."));
  const wrong = found.remedy !== "";
  return h("div", { class: `card callout ages ${wrong ? "notice" : ""}` },
    h("div", {}, h("p", {}, h("span", { class: "quiet" }, "Slowest part: "), h("strong", {}, `${found.kind} ${found.name}`)),
      h("p", { class: "quiet wrap" }, found.why, wrong && `. Remedy: ${found.remedy}.`)));
}

function details(box, view) {
  const stage = view && view.stages.find((each) => each.stage === box.stage);
  const [now, account] = [computationOf(box, view), accountOf(box, view)];
  const sink = view && box.kind === "sink" && view.sinks.find((each) => each.sink === box.name);
  const source = view && box.kind === "source" && view.sources.find((each) => each.source === box.name);
  return h("section", { class: "card" },
    h("header", {}, h("h2", { class: "wrap" }, box.name), h("span", { class: "badge" }, box.kind === "computation" ? box.method.replaceAll("_", " ") : box.kind),
      h("a", { class: "end small", href: addressWith({ box: null }), "data-go": true }, "Close")),
    h("div", { class: "body" },
      stage && numbers({ "Messages into its stage": rate(stage.messages_per_s), "Results of its stage": rate(stage.results_per_s), "p50": milliseconds(stage.p50_ms), "p99": milliseconds(stage.p99_ms), Lag: count(stage.lag, "records"), Keys: count(stage.keys, "keys"), State: bytes(stage.state_bytes) }),
      account && numbers({ Taken: rate(account.taken_per_s), Given: rate(account.given_per_s), Late: count(account.late, "messages"), "Partly late": count(account.partly_late, "messages"), "Dead letters": count(account.dead_letters), Skipped: count(account.skipped, "messages"), "Held by Kafka": h("span", { title: "back-pressure: the part of the time in which a slot of the stage waited for its output to be taken" }, percent(heldShare(box, view))) }),
      now && numbers({ Busy: h("span", { title: "recent share of a core, over all partitions" }, percent(now.busy_share)), "A frame takes, p50": milliseconds(now.p50_us / 1000), "p99": milliseconds(now.p99_us / 1000), "p99.9": milliseconds(now.p999_us / 1000), Longest: milliseconds(now.max_us / 1000) }),
      view && !now && box.kind === "computation" && !view.computations_measured && h("p", { class: "quiet" }, "How busy it is is not measured (BETTONG_MEASURES=off)."),
      sink && numbers({ Delivered: rate(sink.messages_per_s), "In total": count(sink.messages, "messages"), "p50": milliseconds(sink.p50_ms), "p99": milliseconds(sink.p99_ms), "p99.9": milliseconds(sink.p999_ms), Worst: milliseconds(sink.max_ms), ...(sink.lag === null ? {} : { Lag: count(sink.lag, "records") }),
        "Not stored yet": h("span", { title: "frames that a receiver has passed to it" }, count(sink.delivering, "frames")),
        "Held by the sink": h("span", { title: "back-pressure: the share of the time in which a receiver waited for it" }, percent(sink.held_share)),
        "Subscribers that do not read": count(sink.subscribers_stalled) }),
      source && numbers({ ...(source.lag === null ? {} : { "Not yet read": count(source.lag, "records") }), ...(source.watermark_lag_s === null ? {} : { "Event time behind": duration(source.watermark_lag_s) }),
        "To be decoded": h("span", { title: "frames that wait to be decoded in senders" }, count(source.decoding, "frames")),
        "Held by senders": h("span", { title: "back-pressure: the share of the time in which a sender had no room for frames of clients, or of this source" }, percent(heldShare(box, view))) }),
      h("dl", { class: "facts" }, h("dt", {}, "What it does"), h("dd", { class: "mono" }, box.text),
        box.stage && [h("dt", {}, "Runs in stage"), h("dd", {}, h("a", { href: `/partitions?stage=${encodeURIComponent(box.stage)}`, "data-go": true }, box.stage))],
        box.detail && [h("dt", {}, box.kind === "sink" ? "Stored in" : "How"), h("dd", {}, box.detail)])));
}

function numbers(found) {
  return h("dl", { class: "numbers ages" }, Object.entries(found).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}
