// What went wrong, and what has happened? Changes since the console began to look, and the dead letters of the log.
import { choose, chosen } from "../address.js";
import { h, morphChildren, on } from "../dom.js";
import { count, moment } from "../format.js";
import { ask, QUESTION_MS_MAX } from "../live.js";

export function eventsPlace(root) {
  let view = null;
  let found = null;
  let fault = "";
  let asking = null;
  const ended = new AbortController();
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
    morphChildren(root, h("div", {}, deadLetters(), changes(view.changes)));
  }

  function deadLetters() {
    const counts = found ? found.by_computation : {};
    const wanted = chosen("computation", "");
    // Of a computation that is chosen the answer knows that one alone, or none.
    const names = [...new Set([...Object.keys(counts), ...(wanted ? [wanted] : [])])];
    return h("section", { class: "card" },
      h("header", {}, h("h2", {}, "Dead letters"), h("span", { class: `badge ${view.dead_letters ? "notice" : ""}` }, count(view.dead_letters)),
        h("div", { class: "controls end" },
          (wanted || names.length > 1) && h("select", { "data-computation": true, "aria-label": "Computation" }, h("option", { value: "" }, "all computations"),
            names.map((name) => h("option", { value: name, selected: name === wanted }, found ? `${name} (${(counts[name] || 0).toLocaleString("en")})` : name))),
          h("button", { type: "button", "data-ask": true }, asking ? "Reading …" : found ? "Read again" : "Read them"))),
      fault && h("p", { class: "refused", role: "alert" }, fault),
      found === null
        ? h("p", { class: "body empty" }, view.dead_letters ? "Messages that could not be processed lie in a topic of their own. Reading it takes as long as it is." : "No message had to be set aside. One that a source cannot read, or that a computation fails at, would be kept for you, with the reason.")
        : found.dead_letters.length === 0
          ? h("p", { class: "body empty" }, "The topic holds none.")
          : h("div", { class: "scroll" }, h("table", {},
            h("thead", {}, h("tr", {}, ["Taken in", "Computation", "Reason", "Message", "Came from", "Name"].map((name) => h("th", { scope: "col" }, name)))),
            h("tbody", {}, found.dead_letters.map((each) => h("tr", {},
              h("td", {}, moment(each.time_s, { day: true })),
              h("td", { class: "name", title: each.computation }, each.computation),
              h("td", { class: "text" }, each.reason),
              h("td", { class: "text mono" }, each.message),
              h("td", { class: "quiet" }, `${each.origin}, frame ${each.sequence} [${each.index}]`),
              h("td", { class: "mono" }, each.id, each.sent_again && h("span", { class: "badge good" }, "sent again"))))))),
      found && h("p", { class: "body quiet small" }, `The newest ${found.dead_letters.length} of ${found.total.toLocaleString("en")}. bettong dead-letters retry sends them again, each once.`));
  }

  return {
    show(fresh) {
      view = fresh;
      draw();
    },
    addressChanged: draw,
    end() {
      ended.abort();
      if (asking) asking.abort();
    },
  };
}

function changes(found) {
  return h("section", { class: "card" },
    h("header", {}, h("h2", {}, "Changes"), h("span", { class: "quiet small" }, "since this console began to look")),
    found.length === 0
      ? h("p", { class: "body empty" }, "None. Services that start or stop, partitions that move or stand still, and dead letters stand here as they come.")
      : h("ol", { class: "timeline" }, found.map((each) => h("li", {},
        h("div", { class: "when" }, moment(each.at_s, { day: true })),
        h("div", { class: "wrap" }, h("strong", {}, each.what), ` ${each.text}`)))));
}
