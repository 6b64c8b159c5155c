// What happened to this key? Each of its messages, the state before and after it, and its results.
import { choose, chosen } from "../address.js";
import { h, morphChildren, on } from "../dom.js";
import { moment } from "../format.js";
import { ask, QUESTION_MS_MAX } from "../live.js";

const KINDS = { taken: null, duplicate: "skipped: seen before", gap: "skipped: an earlier frame was lost", "time-passed": "time passed: a state expired, or a timer fired" };

export function keyPlace(root, description) {
  let found = null;
  let fault = "";
  let asking = null;
  // The key as a test: requested, its text, or why there is none.
  let test = { asked: false, text: null, fault: "" };
  const ended = new AbortController();
  on(root, "click", "[data-case]", makeTest, ended.signal);
  on(root, "click", "[data-copy]", () => navigator.clipboard.writeText(test.text), ended.signal);
  on(root, "submit", "form", (form, event) => {
    event.preventDefault();
    const fields = new FormData(form);
    choose({ key: fields.get("key"), stage: fields.get("stage"), from: fields.get("from") === "beginning" ? "beginning" : null });
    find();
  }, ended.signal);
  draw();
  if (chosen("key", null) !== null) find();

  async function find() {
    if (asking) asking.abort();
    const own = new AbortController();
    asking = own;
    [found, fault] = [null, ""];
    test = { asked: false, text: null, fault: "" };
    draw();
    const parameters = new URLSearchParams({ key: chosen("key", ""), stage: chosen("stage", description.stages[0] || ""), from: chosen("from", "snapshot") });
    try {
      found = await ask(`/api/key?${parameters}`, own.signal, QUESTION_MS_MAX);
    } catch (error) {
      if (own.signal.aborted) return;
      fault = error.message;
    }
    asking = null;
    draw();
  }

  async function makeTest() {
    const own = { asked: true, text: null, fault: "" };
    test = own;
    draw();
    try {
      own.text = (await ask(`/api/case?${new URLSearchParams({ key: found.key, stage: found.stage })}`, ended.signal, QUESTION_MS_MAX)).text;
    } catch (error) {
      own.fault = error.message;
    }
    if (!ended.signal.aborted && test === own) draw();
  }

  function draw() {
    const stage = chosen("stage", description.stages[0]);
    morphChildren(root, h("div", {},
      h("section", { class: "card" },
        h("header", {}, h("h2", {}, "A key's history")),
        h("form", { class: "body controls key-form" },
          h("input", { type: "text", name: "key", placeholder: "Key, such as ann or 17", "aria-label": "Key", required: true, maxlength: 1000, value: chosen("key", ""), size: 32, autocomplete: "off", spellcheck: "false" }),
          description.stages.length > 1
            ? h("select", { name: "stage", "aria-label": "Stage" }, description.stages.map((each) => h("option", { value: each, selected: each === stage }, each)))
            : h("input", { type: "hidden", name: "stage", value: stage || "" }),
          h("select", { name: "from", "aria-label": "From where" },
            h("option", { value: "snapshot", selected: chosen("from", "snapshot") !== "beginning" }, "since its newest snapshot (quick)"),
            h("option", { value: "beginning", selected: chosen("from", "snapshot") === "beginning" }, "since the log begins")),
          h("button", { type: "submit" }, "Show")),
        h("p", { class: "body quiet small" }, "This replays the log of the key's partition with this console's code, while the application runs. Nothing is stopped or written.")),
      asking && h("section", { class: "card", role: "status" }, h("p", { class: "body empty" }, "Folding the log …")),
      fault && h("p", { class: "refused", role: "alert" }, fault),
      found && testCase(test),
      found && timeline(found)));
  }

  return { show() {}, addressChanged: find, end: () => { ended.abort(); if (asking) asking.abort(); } };
}

function testCase({ asked, text, fault }) {
  return h("section", { class: "card" },
    h("header", {}, h("h2", {}, "As a test"), h("span", { class: "quiet small" }, "the messages that clients sent of this key; bettong log --key --test prints the same"),
      h("div", { class: "controls end" },
        text !== null && navigator.clipboard && h("button", { type: "button", "data-copy": true }, "Copy"),
        text === null && h("button", { type: "button", "data-case": true }, asked && !fault ? "Reading the log …" : "Make a test"))),
    fault && h("p", { class: "refused", role: "alert" }, fault),
    text !== null && h("pre", { class: "body json case", tabindex: 0, "aria-label": "The test" }, text));
}

function timeline(found) {
  const begun = found.from_snapshot ? `from the snapshot at offset ${found.first.toLocaleString("en")}` : "from the beginning of the log";
  const events = found.events.toReversed();
  return h("section", { class: "card" },
    h("header", {}, h("h2", { class: "wrap" }, found.key), h("span", { class: "badge" }, `partition ${found.partition} of ${found.partitions}`),
      h("span", { class: "quiet small" }, `folded ${begun} up to offset ${found.until.toLocaleString("en")}; ${found.total > events.length ? `the last ${events.length} of ${found.total.toLocaleString("en")}` : found.total.toLocaleString("en")} of this key, the newest first`)),
    found.stopped && h("p", { class: "refused" }, `The fold stops here: ${found.stopped}`),
    events.length === 0
      ? h("p", { class: "body empty" }, found.total > 0 ? "The last message of this key is too large to be shown here; bettong replay shows it." : found.from_snapshot ? "No message of this key since the newest snapshot. Ask since the log begins to see what came before." : "No message of this key is in the log. See that it is written as messages have it.")
      : h("ol", { class: "timeline" }, withSnapshots(found, events)));
}

/** Entries, the newest first; a snapshot is above the messages that it includes. */
function withSnapshots({ snapshots, total }, events) {
  const oldest = total > events.length ? events.at(-1).offset : -1;
  const marks = snapshots.filter((offset) => offset > oldest).map((offset) => [offset - 0.5, snapshot(offset)]);
  return [...events.map((event) => [event.offset, entry(event)]), ...marks].sort(([a], [b]) => b - a).map(([, element]) => element);
}

const snapshot = (offset) => h("li", { class: "snapshot" }, h("div", { class: "when" }, `offset ${offset.toLocaleString("en")}`), h("div", { class: "quiet" }, h("span", { class: "badge" }, "snapshot"), " has all that lies before"));

function entry(event) {
  const kind = KINDS[event.verdict] === undefined ? event.verdict : KINDS[event.verdict];
  return h("li", {},
    h("div", { class: "when" }, moment(event.time_s, { day: true }), h("span", {}, `offset ${event.offset.toLocaleString("en")}`)),
    h("div", { class: "steps" },
      kind && h("div", {}, h("span", { class: "badge notice" }, kind)),
      event.message !== null && step("message", json(event.message)),
      event.states.map((state) => step(state.computation, changed(state.before, state.after))),
      event.outputs.map((output) => step(`→ ${output.to}`, json(output.message))),
      event.failures.map((failure) => step(failure.computation, h("span", { class: "refused" }, `${failure.on_error}: ${failure.reason}`))),
      h("div", { class: "quiet small wrap" }, `${event.origin}, frame ${event.sequence}, message ${event.index}`)));
}

const step = (kind, content) => h("div", { class: "step" }, h("span", { class: "kind" }, kind), h("div", {}, content));
const json = (value) => h("div", { class: "json" }, JSON.stringify(value));

/** A state before and after: changed fields are highlighted. */
function changed(before, after) {
  const plain = (value) => value !== null && typeof value === "object" && !Array.isArray(value) && !(JSON.isRawJSON && JSON.isRawJSON(value));
  if (after === null) return h("div", { class: "json" }, before === null ? "no state" : [h("span", { class: "gone" }, JSON.stringify(before)), " ended"]);
  if (!plain(after) || !(plain(before) || before === null)) {
    const same = JSON.stringify(before) === JSON.stringify(after);
    return h("div", { class: "json" }, !same && before !== null && [h("span", { class: "gone" }, JSON.stringify(before)), " → "], h("span", { class: same ? "" : "changed" }, JSON.stringify(after)));
  }
  const fields = Object.entries(after).map(([name, value], index) => {
    const old = before === null ? undefined : before[name];
    const same = JSON.stringify(old) === JSON.stringify(value);
    return [index > 0 && ", ", `${name}: `, !same && old !== undefined && [h("span", { class: "gone" }, JSON.stringify(old)), " "], h("span", { class: same ? "" : "changed" }, JSON.stringify(value))];
  });
  return h("div", { class: "json" }, before === null && h("span", { class: "badge good" }, "new"), before === null && " ", fields);
}
