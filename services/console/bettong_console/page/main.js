// The page: its head, the place that it shows, and the age of its data.
import { addressWith } from "./address.js";
import { h, morphChildren, on, s } from "./dom.js";
import { durationText } from "./format.js";
import { ask, Live, OLD_S } from "./live.js";
import { applyTheme, nextTheme, theme } from "./theme.js";
import { accountsPlace } from "./places/accounts.js";
import { applicationPlace } from "./places/application.js";
import { eventsPlace } from "./places/events.js";
import { keyPlace } from "./places/key.js";
import { overviewPlace } from "./places/overview.js";
import { partitionsPlace } from "./places/partitions.js";

// A place: its name in the navigation, its keyboard letter, its view, and the function that draws it.
const PLACES = {
  "/": { name: "Overview", letter: "o", view: "summary", begin: overviewPlace },
  "/application": { name: "Application", letter: "a", view: "application", begin: applicationPlace },
  "/partitions": { name: "Partitions", letter: "p", view: "partitions", begin: partitionsPlace },
  "/accounts": { name: "Accounts", letter: "c", view: "accounts", begin: accountsPlace },
  "/key": { name: "Key", letter: "k", view: "summary", begin: keyPlace },
  "/events": { name: "Events", letter: "e", view: "events", begin: eventsPlace },
};

const top = document.getElementById("top");
const main = document.getElementById("place");
const state = { description: null, status: null, age_s: null, fault: "", place: null, live: null, path: null };

function drawTop() {
  const { description, status, age_s, fault } = state;
  const old = age_s === null || age_s > OLD_S;
  const fresh = age_s === null ? fault || "connecting …" : old ? `as of ${durationText(age_s)} ago${fault ? `: ${fault}` : ""}` : "live";
  morphChildren(
    top,
    h("div", {},
      // The overview has its own heading: the state in a word.
      location.pathname !== "/" && h("h1", { class: "unseen" }, PLACES[location.pathname] ? PLACES[location.pathname].name : "Nothing here"),
      h("div", { class: "top-row" },
        h("a", { class: "brand", href: "/", "data-go": true, title: description && description.application },
          h("img", { src: "/static/mark.svg", alt: "Bettong", width: 24, height: 24 }),
          h("span", {}, description ? description.application : "Bettong")),
        h("nav", { class: "places", "aria-label": "Places" },
          Object.entries(PLACES).map(([path, { name, letter }]) =>
            h("a", { href: path, "data-go": true, title: `g ${letter}`, "aria-current": path === location.pathname && "page" }, name))),
        h("div", { class: "top-end" },
          h("span", { class: `fresh${old ? " old" : ""}`, role: "status", title: fault || null },
            h("span", { class: `dot ${old ? "" : `live ${status ? status.level : ""}`}` }),
            h("span", { class: "cut" }, fresh)),
          h("button", { class: "icon", type: "button", "data-theme-next": true, title: `Colours: ${theme()}`, "aria-label": `Colours: ${theme()}; change` },
            themeIcon(theme())),
          description && description.signed_in && h("form", { method: "post", action: "/sign-out" }, h("button", { type: "submit", class: "small" }, "Sign out"))))),
  );
  main.toggleAttribute("data-stale", age_s !== null && age_s > OLD_S);
}

function themeIcon(name) {
  const paths = {
    system: "M3 4h14v9H3zM7 17h6",
    light: "M10 6.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7zM10 1.500v2M10 16.500v2M1.500 10h2M16.500 10h2M4 4l1.400 1.400M14.600 14.600 16 16M4 16l1.400-1.400M14.600 5.400 16 4",
    dark: "M16 12.500A7 7 0 0 1 7.500 4a6.500 6.500 0 1 0 8.500 8.500z",
  };
  return s("svg", { width: 20, height: 20, viewBox: "0 0 20 20", "aria-hidden": "true" },
    s("path", { d: paths[name], fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" }));
}

function show() {
  if (!state.description) return; // `begin` shows the address's place, once it has the description
  if (state.live) state.live.close();
  if (state.place) state.place.end();
  const place = PLACES[location.pathname];
  state.path = location.pathname;
  if (!place) {
    document.title = "Nothing here · Bettong";
    main.replaceChildren(h("div", { class: "card verdict" }, h("h2", {}, "Nothing here"), h("p", {}, "There is no page at this address. Use the navigation above.")));
    state.place = null;
    state.live = null;
    drawTop();
    return;
  }
  document.title = `${place.name} · ${state.description.application}`;
  main.replaceChildren();
  state.place = place.begin(main, state.description);
  state.live = new Live(
    place.view,
    (view) => {
      state.status = view.status;
      state.place.show(view);
      // The first letter of the title shows the state, also in a hidden window.
      document.title = `${view.status.level === "good" ? "" : "! "}${place.name} · ${state.description.application}`;
    },
    (age_s, fault) => {
      state.age_s = age_s;
      state.fault = fault;
      if (age_s === null && fault && !main.hasChildNodes()) main.replaceChildren(h("p", { class: "empty" }, fault));
      drawTop();
    },
  );
  drawTop();
}

function go(path) {
  const moves = new URL(path, location.href).pathname !== state.path;
  history.pushState(null, "", path);
  if (moves) {
    state.age_s = null;
    show();
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  } else if (state.place && state.place.addressChanged) state.place.addressChanged();
}

on(document.body, "click", "a[data-go]", (link, event) => {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});
on(document.body, "click", "[data-theme-next]", () => {
  applyTheme(nextTheme());
  drawTop();
});
addEventListener("popstate", () => {
  if (location.pathname !== state.path) show();
  else if (state.place && state.place.addressChanged) state.place.addressChanged();
});
// g and a letter go to a place, as in similar tools.
let awaited_ms = -Infinity;
addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "g") awaited_ms = performance.now();
  else if (performance.now() - awaited_ms < 1500) {
    const found = Object.entries(PLACES).find(([, { letter }]) => letter === event.key);
    awaited_ms = -Infinity;
    if (found) go(addressWith({}, found[0]));
  } else if (event.key === "/") {
    const field = main.querySelector("input[type=search], input[type=text]");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  }
});

async function begin() {
  applyTheme();
  try {
    state.description = await ask("/api/description");
  } catch (fault) {
    main.replaceChildren(h("p", { class: "empty" }, `The console does not answer: ${fault.message}`));
    setTimeout(begin, 2000);
    return;
  }
  show();
}
begin();
