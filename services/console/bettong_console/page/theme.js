// Light, dark, or the system's theme; remembered in this browser only.
const NAMES = ["system", "light", "dark"];

export function theme() {
  let found = null;
  try {
    found = localStorage.getItem("bettong-theme");
  } catch {
    // A browser without storage uses the system's theme.
  }
  return NAMES.includes(found) ? found : "system";
}

export function applyTheme(name = theme()) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("bettong-theme", name);
  } catch {
    // See above.
  }
  document.dispatchEvent(new Event("bettong-theme"));
}

export const nextTheme = () => NAMES[(NAMES.indexOf(theme()) + 1) % NAMES.length];
