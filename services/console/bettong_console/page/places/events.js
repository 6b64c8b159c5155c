// What went wrong, and what has happened? Changes since the console started, and the dead letters of the log.
import { choose, chosen } from "../address.js";
import { RETRY } from "../changes.js";
import { Changing } from "../changing.js";
import { h, morphChildren, on } from "../dom.js";
import { count, moment } from "../format.js";
import { eventStrip, nameOf } from "../event_strip.js";
import { chosenSpan, spanChoice } from "../histories.js";
import { ask, QUESTION_MS_MAX } from "../live.js";

export function eventsPlace(root, description) {
  let view = null;
  let found = null;
  let fault = "";
  let asking = null;
  const ended = new AbortController();
  const retrying = description.changes ? new Changing(RETRY, root, draw, find, ended.signal) : null;
  on(root, "click", "[data-ask]", find, ended.signal);
  on(root, "change", "[data-computation]", (field) => {
    choose({ computation: field.value });
    find();
  }, ended.signal);
  if (chosen("dead-letters", null) === "1") find();

  async function find() {
    if (asking) asking.abort();
    const own = new AbortController();
    asking = own;
    fault = "";
    choose({ "dead-letters": "1" });
    draw();
    try {
      found = await ask(`/api/dead-letters?${new URLSearchParams({ computation: chosen("computation", "") })}`, own.signal, QUESTION_MS_MAX);
    } catch (error) {
      if (own.signal.aborted) return;
      fault = error.message;
    }
    asking = null;
    draw();
  }

  function draw() {
    if (!view) return;
    morphChildren(root, h("div", {}, deadLetters(), changes(view)));
  }

  function deadLetters() {
    const counts = found ? found.by_computation : {};
    const wanted = chosen("computation", "");
    // With a chosen computation, the answer has only that one, or none.
    const names = [...new Set([...Object.keys(counts), ...(wanted ? [wanted] : [])])];
    return h("section", { class: "card" },
      h("header", {}, h("h2", {}, "Dead letters"), h("span", { class: `badge ${view.dead_letters ? "notice" : ""}` }, count(view.dead_letters)),
        h("div", { class: "controls end" },
          (wanted || names.length > 1) && h("select", { "data-computation": true, "aria-label": "Computation" }, h("option", { value: "" }, "all computations"),
            names.map((name) => h("option", { value: name, selected: name === wanted }, found ? `${name} (${(counts[name] || 0).toLocaleString("en")})` : name))),
          h("button", { type: "button", "data-ask": true }, asking ? "Reading …" : found ? "Read again" : "Read them"),
          retrying && found && found.total > 0 && h("button", { type: "button", "data-retry": "", "data-computation-of": wanted }, "Send all again …"))),
      // Always there, so that the element below stays the same, and open, when a question is shown.
      retrying && h("div", {}, retrying.panel()),
      fault && h("p", { class: "refused", role: "alert" }, fault),
      found === null
        ? h("p", { class: "body empty" }, view.dead_letters ? "Messages that could not be processed are in their own topic. Reading a long topic takes a while." : "No message had to be set aside. One that a source cannot read, or that a computation fails at, would be kept for you, with the reason.")
        : found.dead_letters.length === 0
          ? h("p", { class: "body empty" }, "The topic has none.")
          : h("div", { class: "scroll" }, h("table", {},
            h("thead", {}, h("tr", {}, ["Received", "Computation", "Reason", "Message", "Origin", "Id"].map((name) => h("th", { scope: "col" }, name)))),
            h("tbody", {}, found.dead_letters.map((each) => h("tr", {},
              h("td", {}, moment(each.time_s, { day: true })),
              h("td", { class: "name", title: each.computation }, each.computation),
              h("td", { class: "text" }, each.reason, trace(each)),
              h("td", { class: "text mono" }, each.message, each.message_truncated || each.truncated ? " …" : ""),
              h("td", { class: "quiet" }, `${each.origin}, frame ${each.sequence} [${each.index}]`),
              h("td", { class: "mono" }, each.id, each.sent_again ? h("span", { class: "badge good" }, "sent again") : retrying && h("button", { type: "button", class: "small", "data-retry": each.id, "aria-label": `Send ${each.id} again` }, "Send again …"))))))),
      found && h("p", { class: "body quiet small" }, `The newest ${found.dead_letters.length} of ${found.total.toLocaleString("en")}. ${retrying ? "Each is sent again once, however often it is asked for." : "bettong dead-letters retry sends them again, each once."}`));
  }

  return {
    show(fresh) {
      view = fresh;
      draw();
    },
    addressChanged() {
      draw();
      const entry = root.querySelector(".timeline > [aria-current]");
      if (entry) entry.scrollIntoView({ block: "nearest" });
    },
    end() {
      ended.abort();
      if (asking) asking.abort();
    },
  };
}

/** Where the user's function raised, collapsed; once opened, it stays open while the place is redrawn. */
function trace({ id, traceback }) {
  return traceback && traceback.length > 0 && h("details", { class: "trace small", "data-keep": `trace ${id}` }, h("summary", {}, "Where it failed"), h("pre", { class: "mono" }, traceback.join("\n")));
}

const LOOKS = { alert: "notice", "alert over": "good" };

/** The name of a change; alerts are highlighted. */
const what = (name) => (LOOKS[name] ? h("span", { class: `badge ${LOOKS[name]}` }, name) : h("strong", {}, name));

function changes({ changes: found, complete_since_s, status }) {
  const at = chosen("at", null);
  const chosenChange = found.find((each) => nameOf(each) === at);
  return h("section", { class: "card" },
    h("header", {}, h("h2", {}, "Changes"), h("span", { class: "quiet small" }, "since this console started"),
      h("div", { class: "end" }, spanChoice())),
    eventStrip(found, complete_since_s, status.now_s, chosenSpan(), at),
    found.length === 0
      ? h("p", { class: "body empty" }, "None. Services that start or stop, partitions that move or stand still, alerts, and dead letters appear here.")
      : h("ol", { class: "timeline" }, found.map((each) => h("li", { "aria-current": each === chosenChange && "true" },
        h("div", { class: "when" }, moment(each.at_s, { day: true })),
        h("div", { class: "wrap" }, what(each.what), ` ${each.text}`)))));
}
