// Elements without markup in texts: users' names can never become elements here. And redrawing a place without losing
// focus, scroll position or kept elements (`data-keep`), such as charts.

const SVG = "http://www.w3.org/2000/svg";

/** An element. `attributes`: `class`, `data-...` and others as they are; `vars` are custom properties of its style. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "vars") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** Makes `old` like `fresh`, changing only differences. Listeners stay: they belong to ancestors (`on`). */
export function morph(old, fresh) {
  if (old.dataset && old.dataset.keep && old.dataset.keep === fresh.dataset.keep) return;
  for (const { name } of [...old.attributes]) {
    if (name === "style" || fresh.hasAttribute(name)) continue;
    old.removeAttribute(name);
    if (name === "checked" || name === "selected") old[name] = false;
  }
  for (const { name, value } of fresh.attributes) {
    if (name === "style" || old.getAttribute(name) === value) continue;
    old.setAttribute(name, value);
    // Typed and ticked values are not in attributes; they follow where the address has changed.
    if (name === "value" && old.value !== undefined) old.value = value;
    if (name === "checked" || name === "selected") old[name] = true;
  }
  if (old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
  morphChildren(old, fresh);
}

/** The same for the children. */
export function morphChildren(old, fresh) {
  const wanted = [...fresh.childNodes];
  let at = old.firstChild;
  for (const node of wanted) {
    if (at && at.nodeType === node.nodeType && at.nodeName === node.nodeName && keyOf(at) === keyOf(node)) {
      if (node.nodeType === Node.TEXT_NODE) {
        if (at.data !== node.data) at.data = node.data;
      } else morph(at, node);
      at = at.nextSibling;
    } else if (at) {
      const before = at;
      at = at.nextSibling;
      before.replaceWith(node);
    } else old.append(node);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

function keyOf(node) {
  return node.dataset ? node.dataset.keep : undefined;
}

/** Calls `handler(element, event)` for events within `root` at elements that match. */
export function on(root, kind, selector, handler, signal) {
  root.addEventListener(
    kind,
    (event) => {
      const element = event.target.closest(selector);
      if (element && root.contains(element)) handler(element, event);
    },
    { signal },
  );
}
