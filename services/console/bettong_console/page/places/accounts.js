// Is anything lost? What has become of the messages of each computation, and whether it adds up.
import { choose, chosen } from "../address.js";
import { h, morphChildren, on } from "../dom.js";
import { amount } from "../format.js";

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

// Field, head with what it is in the sum, whether it stands there even when it is 0 everywhere, what it says of itself.
const COLUMNS = [
  ["taken", ["In", "messages"], true, "messages that came"],
  ["used", ["Used", "= of these"], true, "that went into a result or a state, or went on"],
  ["filtered", ["Filtered", "+"], true, "for which a filter, or a table that was joined with, had nothing"],
  ["late", ["Late", "+"], true, "whose windows were over"],
  ["dead_letters", ["Dead letters", "+"], true, "of which something could not be processed"],
  ["skipped", ["Skipped", "+"], true, "that could not be processed, and were to be skipped then"],
  ["partly_late", ["Partly late", "of those used"], false, "that were too late for some of their windows"],
  ["given", ["Out", "results"], true, "that came of them, now or when time passed; who reads it takes as many"],
  ["pending", ["Pending", "in its log"], false, "that were sent to it and have not come in yet"],
];
const KINDS = { input: "comes in", output: "leaves" };

export function accountsPlace(root, description) {
  let view = null;
  const ended = new AbortController();
  on(root, "change", "[data-stage]", (field) => {
    choose({ stage: field.value });
    draw();
  }, ended.signal);

  function draw() {
    if (!view) return;
    const stage = chosen("stage", "", description.stages);
    const lines = view.lines.filter((line) => !stage || line.stage === stage);
    morphChildren(root, h("div", {}, verdict(view), table(lines, stage)));
  }

  function table(lines, stage) {
    const columns = COLUMNS.filter(([field, , always]) => always || lines.some((line) => line[field] !== null && (line[field] > 0 || field === "pending")));
    return h("section", { class: "card" },
      h("header", {}, h("h2", {}, "Messages"), h("span", { class: "quiet small" }, "since the beginning of the log, of all partitions together"),
        description.stages.length > 1 && h("div", { class: "controls end" },
          h("select", { "data-stage": true, "aria-label": "Stage" }, h("option", { value: "" }, "all stages"),
            description.stages.map((name) => h("option", { value: name, selected: name === stage }, name))))),
      lines.length === 0
        ? h("p", { class: "body empty" }, "Nothing has been counted here yet. Accounts begin with the first message that is folded.")
        : h("div", { class: "scroll" }, h("table", { class: "ages pinned accounts" },
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Where", h("small", {}, "in the order of the stage")),
            h("th", { scope: "col" }, "State", h("small", {}, "of the sum")),
            columns.map(([, [name, part], , title]) => h("th", { scope: "col", class: "number", title }, name, h("small", {}, part))))),
          grouped(lines).map(([name, own]) => h("tbody", {},
            h("tr", {}, h("th", { scope: "rowgroup", colspan: columns.length + 2, class: "group" }, name)),
            own.map((line) => row(line, columns)))))));
  }

  return {
    show(fresh) {
      view = fresh;
      draw();
    },
    addressChanged: draw,
    end() {
      ended.abort();
    },
  };
}

function verdict({ lines, differences }) {
  if (lines.length === 0) {
    return h("section", { class: "card verdict ages" }, h("h2", { class: "word" }, "Not known yet"),
      h("p", {}, "No partition has said what has become of its messages: nothing was folded yet, or by a version that did not count."));
  }
  if (differences.length === 0) {
    return h("section", { class: "card verdict ages good" }, h("h2", { class: "word" }, "Adds up"),
      h("p", {}, "Every message that came is used, filtered, late, a dead letter or skipped; and what one gives, the next one takes, or it waits in its log."));
  }
  return h("section", { class: "card verdict ages bad" }, h("h2", { class: "word" }, "Does not add up"),
    h("ul", { class: "differences" }, differences.map((text) => h("li", {}, text))));
}

/** Lines of one stage after the other: [stage, lines]. */
function grouped(lines) {
  const found = new Map();
  for (const line of lines) found.set(line.stage, [...(found.get(line.stage) ?? []), line]);
  return [...found];
}

function row(line, columns) {
  return h("tr", { class: line.adds_up ? "" : "bad" },
    h("td", { class: "name", title: line.name }, line.name, KINDS[line.kind] && h("span", { class: "badge" }, KINDS[line.kind])),
    h("td", {}, line.adds_up
      ? h("span", { class: "badge good" }, "adds up")
      : h("span", { class: "badge bad", title: line.differences.join("; ") }, "does not add up")),
    columns.map(([field]) => cell(field, line)));
}

function cell(field, line) {
  const value = line[field];
  // Exact, for a sum is checked digit by digit. A computation that filters nothing has no such number.
  if (value === null) return h("td", { class: "number", "data-field": field }, field === "pending" && line.kind === "input" ? amount(null) : "");
  return h("td", { class: `number${value === 0 ? " quiet" : ""}`, "data-field": field, "data-value": value }, WHOLE.format(value));
}
