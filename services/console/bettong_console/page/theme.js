// Light, dark, or as the system has it; remembered in this browser alone.
const NAMES = ["system", "light", "dark"];

export function theme() {
  let found = null;
  try {
    found = localStorage.getItem("bettong-theme");
  } catch {
    // A browser that keeps nothing has the system's theme.
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
