// All choices are kept in the address, so that a view can be sent to a colleague, or bookmarked.

/** A parameter of the address; `fallback` where it is missing, or not one of `allowed`. */
export function chosen(name, fallback, allowed) {
  const found = new URLSearchParams(location.search).get(name);
  return found === null || (allowed && !allowed.includes(found)) ? fallback : found;
}

/** The address with some parameters changed; null ones are removed. */
export function addressWith(changes, path = location.pathname) {
  const parameters = new URLSearchParams(path === location.pathname ? location.search : "");
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") parameters.delete(name);
    else parameters.set(name, value);
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

/** Changes the address without an entry in the browser's history: for typing and sorting. */
export function choose(changes) {
  history.replaceState(null, "", addressWith(changes));
}
