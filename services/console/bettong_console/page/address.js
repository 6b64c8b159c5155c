// All that is chosen stands in the address, so that it can be sent to a colleague, and found again.

/** A parameter of the address; `fallback` where it is missing, or none of `allowed`. */
export function chosen(name, fallback, allowed) {
  const found = new URLSearchParams(location.search).get(name);
  return found === null || (allowed && !allowed.includes(found)) ? fallback : found;
}

/** The address with some parameters changed; what is null is left out. */
export function addressWith(changes, path = location.pathname) {
  const parameters = new URLSearchParams(path === location.pathname ? location.search : "");
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") parameters.delete(name);
    else parameters.set(name, value);
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

/** Changes the address without a step in the browser's history: of what is typed, or sorted. */
export function choose(changes) {
  history.replaceState(null, "", addressWith(changes));
}
