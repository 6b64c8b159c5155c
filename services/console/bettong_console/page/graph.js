// Boxes and arrows: laid out by dagre, drawn as elements that work with a keyboard and a screen reader.
import { Graph, layout } from "./vendor/dagre/dagre.mjs";
import { addressWith } from "./address.js";
import { h, s } from "./dom.js";
import { count, digits, duration, milliseconds, percent, rate, secondsOf } from "./format.js";

const HEAD = 50; // height of a stage's head: its name and two lines of numbers
const HEIGHTS = { source: 50, computation: 90, sink: 90 };
// From wide to narrow: the width of a box, and the gap between consecutive boxes, in which arrows have their labels.
const ACROSS = [[230, 130], [196, 108], [172, 100]];
const DOWNWARDS = [[230, HEAD + 92], [190, HEAD + 92], [172, HEAD + 88]];
// For a phone, on which two sources fit side by side.
const SOURCE_WIDTH_NARROW = 120;
// Share of the time. Less back-pressure than this has no noticeable effect.
const HELD_MIN = 0.01;

/** The layout of boxes: from left to right or, on a narrow page, from top to bottom; as wide as the width (px) allows. */
export function placed(description, narrow, width) {
  let found = null;
  for (const [box, between] of narrow ? DOWNWARDS : ACROSS) {
    const close = laidOut(description, { narrow, box, between, nodesep: narrow ? 20 : 26 });
    // The head of a stage needs room that dagre does not know about, where another stage or box is above it.
    found = collides(description, close) ? laidOut(description, { narrow, box, between, nodesep: narrow ? 34 : HEAD + 40 }) : close;
    if (found.graph.graph().width <= width) break;
  }
  return found;
}

function laidOut(description, { narrow, box: width, between, nodesep }) {
  const graph = new Graph({ compound: true });
  graph.setGraph({ rankdir: narrow ? "TB" : "LR", nodesep, ranksep: between, marginx: 4, marginy: 4 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const stage of description.stages) graph.setNode(`stage:${stage}`, {});
  for (const box of description.boxes) {
    graph.setNode(box.id, { width: narrow && box.kind === "source" ? SOURCE_WIDTH_NARROW : width, height: HEIGHTS[box.kind] });
    if (box.stage) graph.setParent(box.id, `stage:${box.stage}`);
  }
  for (const arrow of description.arrows) graph.setEdge(arrow.start, arrow.end, {});
  layout(graph);
  return { graph, stages: framed(description, graph) };
}

function collides(description, { graph, stages }) {
  const meets = (a, b) => a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
  const others = (stage) => description.boxes.filter((box) => box.stage !== stage).map((box) => {
    const { x, y, width, height } = graph.node(box.id);
    return { left: x - width / 2, top: y - height / 2, width, height };
  });
  return stages.some((frame, index) => others(frame.stage).some((box) => meets(frame, box)) || stages.slice(index + 1).some((each) => meets(frame, each)));
}

/** The outlines of stages: around their boxes, with room for the head. */
function framed(description, graph) {
  const frames = [];
  for (const stage of description.stages) {
    const own = description.boxes.filter((box) => box.stage === stage).map((box) => graph.node(box.id));
    if (own.length === 0) continue;
    const left = Math.min(...own.map((box) => box.x - box.width / 2)) - 12;
    const right = Math.max(...own.map((box) => box.x + box.width / 2)) + 12;
    const top = Math.min(...own.map((box) => box.y - box.height / 2)) - HEAD - 8;
    const bottom = Math.max(...own.map((box) => box.y + box.height / 2)) + 18;
    frames.push({ stage, left, top, width: right - left, height: bottom - top });
  }
  return frames;
}

/** The drawing. `view`: the current numbers; null before the first. `box`: the id of the chosen one. */
export function drawn(description, { graph, stages }, view, chosen) {
  const boxes = description.boxes.map((box) => ({ ...box, ...graph.node(box.id) }));
  const downwards = graph.graph().rankdir === "TB";
  const byId = Object.fromEntries(boxes.map((box) => [box.id, box]));
  const edges = description.arrows.map(({ start, end, log, stream }) => {
    const between = graph.edge(start, end).points.slice(1, -1);
    const frame = log && stages.find((each) => each.stage === byId[end].stage);
    return { start: byId[start], end: byId[end], log, stream, points: [ends(byId[start], null, downwards, true), ...(isBlocked(byId[start], byId[end], boxes) ? between : []), ends(byId[end], frame, downwards, false)] };
  });
  const top = Math.min(0, ...stages.map((each) => each.top));
  const left = Math.min(0, ...stages.map((each) => each.left));
  const right = Math.max(...boxes.map((box) => box.x + box.width / 2), ...stages.map((each) => each.left + each.width));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height / 2), ...stages.map((each) => each.top + each.height));
  const at = (x, y, width, height) => ({ left: `${x - left}px`, top: `${y - top}px`, width: `${width}px`, height: `${height}px` });
  const wrong = view && view.slowest && view.slowest.remedy !== "";
  return h("div", { class: `canvas ages${wrong ? " wrong" : ""}`, vars: { width: `${right - left + 8}px`, height: `${bottom - top + 8}px` } },
    stages.map((each) => stageFrame(each, view, at(each.left, each.top, each.width, each.height))),
    s("svg", { width: right - left + 8, height: bottom - top + 8, "aria-hidden": "true" },
      edges.map((edge) => arrow(edge.points, left, top, flowOf(edge, view) > 0, downwards))),
    edges.map((edge) => edgeLabel(edge, view, left, top)),
    boxes.map((box) => boxLink(box, view, chosen, at(box.x - box.width / 2, box.y - box.height / 2, box.width, box.height))));
}

/** A line from the side of one box to that of another; through dagre's own points where other boxes are between. */
function arrow(points, left, top, flows, downwards) {
  const moved = points.map(({ x, y }) => [x - left, y - top]);
  let line = `M${moved[0].join(" ")}`;
  for (let index = 1; index < moved.length; index += 1) {
    const [from_x, from_y] = moved[index - 1];
    const [x, y] = moved[index];
    const bend = downwards ? [from_x, (from_y + y) / 2, x, (from_y + y) / 2] : [(from_x + x) / 2, from_y, (from_x + x) / 2, y];
    line += `C${bend.join(" ")} ${x} ${y}`;
  }
  const [x, y] = moved.at(-1);
  return [s("path", { d: line, class: flows ? "flows" : "" }),
    s("path", { d: "M0 0L-8 -4.500L-8 4.500Z", class: flows ? "tip flows" : "tip", transform: `translate(${x} ${y}) rotate(${downwards ? 90 : 0})` })];
}

/** Whether another box is on the line from one to the other. */
function isBlocked(start, end, boxes) {
  return boxes.some((box) => {
    if (box === start || box === end) return false;
    const [across, along] = [end.x - start.x, end.y - start.y];
    const part = ((box.x - start.x) * across + (box.y - start.y) * along) / (across ** 2 + along ** 2 || 1);
    const [off_x, off_y] = [start.x + part * across - box.x, start.y + part * along - box.y];
    return part > 0 && part < 1 && Math.abs(off_x) < box.width / 2 && Math.abs(off_y) < box.height;
  });
}

function ends(box, frame, downwards, leaving) {
  if (!downwards) return { x: box.x + (leaving ? box.width / 2 : -box.width / 2), y: box.y };
  // Downwards an arrow would cross the head of the stage that it enters.
  return { x: box.x, y: leaving ? box.y + box.height / 2 : frame ? frame.top : box.y - box.height / 2 };
}

/** Messages a second on an arrow: those that enter a stage by it, or that are emitted into it. */
function flowOf({ start, log, stream }, view) {
  if (!view) return null;
  const account = log
    ? view.flows.find((each) => each.stage === log && each.kind === "input" && each.name === stream)
    : accountOf(start, view);
  return account ? (log ? account.taken_per_s : account.given_per_s) : null;
}

/** The account of a box's computation. */
export const accountOf = (box, view) => view && view.flows.find((each) => each.stage === box.stage && each.kind === "computation" && each.name === box.name);

function edgeLabel(edge, view, left, top) {
  if (!view) return null;
  const middle = edge.points.length > 2 ? edge.points[Math.floor(edge.points.length / 2)] : between(edge.points);
  const stage = edge.log && view.stages.find((each) => each.stage === edge.log);
  const held = heldShare(edge.start, view);
  const sink = edge.end.kind === "sink" ? view.sinks.find((each) => each.sink === edge.end.name) : undefined;
  const title = [heldText(edge.start, held), ...(sink ? [sinkText(sink)] : [])].join("; ");
  return h("div", { class: "edge-label", vars: { left: `${middle.x - left}px`, top: `${middle.y - top}px` }, title },
    h("span", { class: "unseen" }, `From ${edge.start.name} to ${edge.end.name}: `),
    h("span", {}, rate(flowOf(edge, view))),
    stage && h("span", { title: "records in the log that are not yet folded" }, "lag ", count(stage.lag)),
    sink && sink.lag !== null && h("span", { title: "results in the log that its destination has not stored" }, "lag ", count(sink.lag)),
    held >= HELD_MIN && h("span", { class: "held" }, "held ", percent(held)),
    sink && sink.held_share >= HELD_MIN && h("span", { class: "held" }, "sink holds ", percent(sink.held_share)));
}

const between = ([from, to]) => ({ x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 });

/** Back-pressure where messages leave a box: the share of the time in which its output was blocked. */
export function heldShare(box, view) {
  if (box.kind !== "source") return view.stages.find((each) => each.stage === box.stage)?.held_share ?? null;
  const known = [view.senders_held_share, view.sources.find((each) => each.source === box.name)?.held_share].filter((each) => each !== null && each !== undefined);
  return known.length > 0 ? Math.max(...known) : null;
}

/** Back-pressure of a sink: the share of the time in which its receiver waited for it. */
function sinkText({ held_share: held }) {
  if (held === null) return "of the sink: unknown";
  return held < HELD_MIN ? "the sink causes no back-pressure" : `a receiver waited ${(held * 100).toFixed(1)} % of the time for the sink`;
}

function heldText(box, held) {
  if (held === null) return "back-pressure: unknown";
  const who = box.kind === "source" ? "a sender had no room for frames of clients, or of this source, whose frames wait to be decoded" : `a slot of stage ${box.stage} waited for Kafka to take its output`;
  return held < HELD_MIN ? "no back-pressure" : `back-pressure: ${(held * 100).toFixed(1)} % of the time ${who}`;
}

function stageFrame({ stage }, view, place) {
  const now = view && view.stages.find((each) => each.stage === stage);
  const slowest = view && view.slowest && view.slowest.kind === "stage" && view.slowest.name === stage;
  return h("div", { class: `stage-box${slowest ? " slowest" : ""}`, vars: place },
    slowest && h("span", { class: "flag" }, "slowest"),
    h("div", { class: "line" }, h("strong", { class: "cut", title: `stage ${stage}` }, stage), h("span", {}, rate(now ? now.messages_per_s : null))),
    h("div", { class: "line quiet" },
      h("span", { class: "cut", title: "event time compared with the clock" }, now && now.watermark_ns ? ["watermark ", against(view.status.now_s - secondsOf(now.watermark_ns))] : ""),
      h("span", { title: "sender's stamp to durable output, of the slowest partition" }, "p99 ", milliseconds(now ? now.p99_ms : null))));
}

function boxLink(box, view, chosen, place) {
  const slowest = view && view.slowest && view.slowest.kind === box.kind && view.slowest.name === box.name;
  return h("a", {
    class: `box ${box.kind}${slowest ? " slowest" : ""}`, vars: place, "data-go": true,
    href: addressWith({ box: chosen === box.id ? null : box.id }), "aria-current": chosen === box.id && "true", title: box.name,
  }, h("span", { class: "name cut" }, box.name), h("span", { class: "what cut" }, subtitle(box, view)), times(box, view), marks(box, view));
}

/** The time of a frame in a computation; of a sink, from client to delivery. */
function times(box, view) {
  if (box.kind === "source") return null;
  const sink = box.kind === "sink" && view && view.sinks.find((each) => each.sink === box.name);
  const now = computationOf(box, view);
  const us = (value) => (value === undefined ? null : value / 1000);
  const [p50, p99, p999] = box.kind === "sink" ? [sink?.p50_ms, sink?.p99_ms, sink?.p999_ms] : [us(now?.p50_us), us(now?.p99_us), us(now?.p999_us)];
  return h("span", { class: "times", title: box.kind === "sink" ? "from client to delivery" : "time of a frame here, of the slowest partition" },
    [["p50", p50], ["p99", p99], ["p99.9", p999]].map(([name, value]) => h("span", {}, h("span", { class: "quiet" }, name), " ", milliseconds(value))));
}

/** The messages that a box has not passed on, if any. */
function marks(box, view) {
  const found = box.kind === "computation" ? accountOf(box, view) : view && view.flows.find((each) => each.name === box.name && each.kind === (box.kind === "sink" ? "output" : "input"));
  if (!found) return null;
  const shown = [[found.late, "late"], [found.partly_late, "partly late"], [found.dead_letters, found.dead_letters === 1 ? "dead letter" : "dead letters"]].filter(([value]) => value > 0);
  return shown.length > 0 && h("span", { class: "marks" }, shown.map(([value, name]) => h("span", { class: "badge notice", title: `${value.toLocaleString("en")} ${name}` }, digits(value, { whole: true }), ` ${name}`)));
}

/** The difference of event time from the clock; clients may be ahead of it. */
const against = (seconds) => [seconds < 0 ? "+" : "−", duration(Math.abs(seconds))];
const behind = (seconds) => [duration(Math.abs(seconds)), seconds < 0 ? " ahead" : " behind"];

/** How busy a box's computation is, and the time of a frame there; nothing while unknown. */
export const computationOf = (box, view) => view && view.computations.find((each) => each.stage === box.stage && each.name === box.name);

function subtitle(box, view) {
  if (box.kind === "sink") {
    const now = view && view.sinks.find((each) => each.sink === box.name);
    return now ? ["sink · ", rate(now.messages_per_s)] : "sink";
  }
  if (box.kind === "source") {
    const now = view && view.sources.find((each) => each.source === box.name);
    return now && now.watermark_lag_s !== null ? ["source · event time ", behind(now.watermark_lag_s)] : "source";
  }
  const method = box.method.replaceAll("_", " ");
  const now = computationOf(box, view);
  return now ? [`${method} · `, percent(now.busy_share), " busy"] : method;
}
