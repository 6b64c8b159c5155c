// Is it alive? A word with its reason, the most important numbers, and problems that need a person.
import { h, morphChildren, s } from "../dom.js";
import { amount, bytes, count, digits, duration, milliseconds, moment, rate, secondsOf, since } from "../format.js";
import { Histories, sparkline } from "../histories.js";
import { latencyParts, noParts } from "../latency_parts.js";

export function overviewPlace(root, description) {
  let view = null;
  const histories = new Histories(draw);
  histories.follow("5m", ["in_per_s", "out_per_s", "p99_ms", "lag_records"]);

  function draw() {
    if (!view) return;
    const { status, measures } = view;
    morphChildren(root, h("div", {},
      verdict(status, view.services),
      h("section", { class: "tiles", "aria-label": "Now" },
        tile("Messages in", rate(measures.in_per_s), h("span", {}, count(view.totals.messages), " since its senders started"), "in_per_s"),
        tile("Results out", rate(measures.out_per_s), h("span", {}, count(view.totals.results), " delivered"), "out_per_s", "second"),
        latency(measures, description.objective_p99_ms),
        tile("Lag", count(measures.lag, "records"), waiting(measures), "lag_records", "", behind(measures)),
        tile("Could not be processed", count(view.totals.dead_letters, view.totals.dead_letters === 1 ? "dead letter" : "dead letters"),
          h("span", {}, count(view.totals.skipped), " skipped by on_error"), null, "", view.totals.dead_letters ? "notice" : "")),
      h("div", { class: "columns" },
        needs(view.needs),
        services(view.services, status.now_s),
        latencyParts(view.latency_parts, view.sinks_left_out, noParts(view.latency_parts_measured, measures.p99_ms !== null)),
        stages(ordered(view.stages, description.stages), status.now_s),
        recent(view.changes))));
  }

  function tile(label, value, below, series, look = "", level = "") {
    const line = series ? sparkline(histories.series(series), s) : null;
    if (line && look) line.classList.add(look);
    return h("div", { class: `card tile ages ${level}` }, h("span", { class: "label" }, label), h("span", { class: "value" }, value), h("span", { class: "below" }, below), line);
  }

  function latency(measures, objective) {
    const over = objective !== null && measures.p99_ms !== null && measures.p99_ms > objective;
    const below = measures.p99_ms === null
      ? "nothing was delivered in the last minute"
      : h("span", {}, "p50 ", milliseconds(measures.p50_ms), objective === null ? h("span", {}, ", worst ", milliseconds(measures.max_ms)) : h("span", {}, `, ${over ? "above" : "within"} ${digits(objective)} ms`));
    return tile("p99, client to delivery", milliseconds(measures.p99_ms), below, "p99_ms", "", over ? "bad" : "");
  }

  return {
    show(fresh) {
      view = fresh;
      draw();
    },
    end() {
      histories.close();
    },
  };
}

function waiting({ lag, lag_s }) {
  if (lag_s === null) return "for an unknown time";
  if (lag === 0) return "nothing waits";
  return lag_s < 1 ? "the oldest waits for less than 1 s" : h("span", {}, "the oldest waits for ", duration(lag_s));
}

/** In the order in which messages pass them. */
const ordered = (rows, names) => rows.toSorted((a, b) => names.indexOf(a.stage) - names.indexOf(b.stage));
const behind = (measures) => (measures.lag_s !== null && measures.lag_s >= 10 ? "notice" : "");

function verdict(status, services) {
  const began = Math.min(...services.map((each) => each.since_s ?? Infinity));
  return h("section", { class: `card verdict ages ${status.level}` },
    h("h1", {}, status.word),
    h("p", {}, status.reason),
    Number.isFinite(began) && h("span", { class: "quiet small" }, "up for ", since(began, status.now_s)));
}

// The place with more about a problem, by the first word of its `about`.
const SHOWN_AT = { dead: "/events?dead-letters=1", accounts: "/accounts", skew: "/partitions?sort=hot", more: "/partitions?trouble=1", lag: "/application", objective: "/application" };

function remedy(need) {
  const href = SHOWN_AT[need.about.split(" ")[0]];
  return h("p", { class: "remedy small" }, need.remedy, href && [" ", h("a", { href, "data-go": true }, "Show")]);
}

function needs(found) {
  return h("section", { class: "card half" },
    h("header", {}, h("h2", {}, "Needs a person"), found.length > 0 && h("span", { class: `badge ${found[0].level}` }, String(found.length))),
    h("div", { class: "body" },
      found.length === 0
        ? h("p", { class: "empty" }, "Nothing. Services that stop, partitions that stand still, lost frames, accounts that do not add up and messages that could not be processed appear here.")
        : h("ul", { class: "needs ages" }, found.map((need) =>
          h("li", {}, h("span", { class: `dot ${need.level}` }), h("p", {}, need.what), remedy(need))))));
}

const LEVELS = { running: "good", standby: "good", starting: "notice", waiting: "notice", stopping: "notice" };

function services(rows, now_s) {
  return h("section", { class: "card half" },
    h("header", {}, h("h2", {}, "Services")),
    h("div", { class: "scroll" }, h("table", { class: "ages services" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Service"), h("th", { scope: "col" }, "State"), h("th", { scope: "col", class: "number" }, "For"), h("th", { scope: "col" }, "Detail"))),
      h("tbody", {}, rows.map((row) => {
        const unheard = row.unheard_s !== null;
        const level = unheard ? "notice" : LEVELS[row.state] ?? "bad";
        return h("tr", { class: level },
          h("td", { class: "name", title: row.name }, row.name),
          h("td", {}, h("span", { class: `badge ${level}` }, unheard ? `${row.state}?` : row.state)),
          h("td", { class: "number" }, since(row.since_s, now_s)),
          h("td", { class: "text quiet" }, unheard ? h("span", {}, "no report for ", duration(row.unheard_s)) : row.detail));
      })))));
}

function stages(rows, now_s) {
  const timed = rows.some((row) => row.watermark_ns);
  return h("section", { class: "card" },
    h("header", {}, h("h2", {}, "Stages"), h("a", { class: "end small", href: "/application", "data-go": true }, "Show the graph")),
    rows.length === 0
      ? h("p", { class: "body empty" }, "No partition has been folded yet. The processor's progress appears here once it runs.")
      : h("div", { class: "scroll" }, h("table", { class: "ages pinned" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Stage"), ["Messages", "Results", "Lag", "Behind", "p50", "p99", "Keys", "State", ...(timed ? ["Watermark behind"] : []), "Dead letters"].map((name) => h("th", { scope: "col", class: "number" }, name)))),
        h("tbody", {}, rows.map((row) => h("tr", {},
          h("td", { class: "name", title: row.stage }, h("a", { href: `/partitions?stage=${encodeURIComponent(row.stage)}`, "data-go": true }, row.stage)),
          h("td", { class: "number" }, rate(row.messages_per_s)),
          h("td", { class: "number" }, rate(row.results_per_s)),
          h("td", { class: "number" }, count(row.lag, "records")),
          h("td", { class: "number" }, duration(row.lag_s)),
          h("td", { class: "number" }, milliseconds(row.p50_ms)),
          h("td", { class: "number" }, milliseconds(row.p99_ms)),
          h("td", { class: "number" }, count(row.keys, "keys")),
          h("td", { class: "number" }, bytes(row.state_bytes)),
          timed && h("td", { class: "number" }, row.watermark_ns ? duration(Math.max(0, now_s - secondsOf(row.watermark_ns))) : amount(null)),
          h("td", { class: "number" }, count(row.dead_letters))))))));
}

function recent(changes) {
  return h("section", { class: "card" },
    h("header", {}, h("h2", {}, "Last changes"), h("a", { class: "end small", href: "/events", "data-go": true }, "Show all")),
    h("div", { class: "body" },
      changes.length === 0
        ? h("p", { class: "empty" }, "Nothing has changed since the console started: no restart, no partition that moved.")
        : h("ul", { class: "needs ages" }, changes.map((each) =>
          h("li", {}, h("span", { class: "dot" }), h("p", {}, moment(each.at_s, { day: true }), " ", h("strong", {}, each.what), ` ${each.text}`))))));
}

