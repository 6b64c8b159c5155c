// Is anything lost? What became of the messages of each computation, and whether it adds up.
import { choose, chosen } from "../address.js";
import { h, morphChildren, on } from "../dom.js";
import { amount } from "../format.js";

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

// Field, head with its role in the sum, whether it is shown even when it is 0 everywhere, tooltip.
const COLUMNS = [
  ["taken", ["In", "messages"], true, "messages received"],
  ["used", ["Used", "= of these"], true, "that led to a result or a state, or were passed on"],
  ["filtered", ["Filtered", "+"], true, "dropped by a filter, or without a match in a joined table"],
  ["late", ["Late", "+"], true, "whose windows were over"],
  ["dead_letters", ["Dead letters", "+"], true, "that could not be processed"],
  ["skipped", ["Skipped", "+"], true, "that could not be processed, and are skipped by on_error"],
  ["partly_late", ["Partly late", "of those used"], false, "that were too late for some of their windows"],
  ["given", ["Out", "results"], true, "from these messages, at once or as time passed; readers receive as many"],
  ["pending", ["Pending", "in its log"], false, "that were sent to it and have not been read yet"],
];
const KINDS = { input: "input", output: "output" };

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
    return h("section", { class: "card verdict ages" }, h("h2", { class: "word" }, "Unknown yet"),
      h("p", {}, "No partition has reported its accounts: nothing was folded yet, or by a version without accounts."));
  }
  if (differences.length === 0) {
    return h("section", { class: "card verdict ages good" }, h("h2", { class: "word" }, "Adds up"),
      h("p", {}, "Every message received is used, filtered, late, a dead letter or skipped; and every message emitted is received by the next one, or waits in its log."));
  }
  return h("section", { class: "card verdict ages bad" }, h("h2", { class: "word" }, "Does not add up"),
    h("ul", { class: "differences" }, differences.map((text) => h("li", {}, text))));
}

/** The lines by stage: [stage, lines]. */
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
  // Exact, because people check sums. A computation that filters nothing has no such number.
  if (value === null) return h("td", { class: "number", "data-field": field }, field === "pending" && line.kind === "input" ? amount(null) : "");
  return h("td", { class: `number${value === 0 ? " quiet" : ""}`, "data-field": field, "data-value": value }, WHOLE.format(value));
}
