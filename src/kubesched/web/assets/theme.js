/** Light or dark: the system's setting, until the user chooses; the choice is stored. */

const KEY = "kubesched.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();

const chosen = () => { try { return localStorage.getItem(KEY); } catch { return null; } };

/** @returns {boolean} */
export const isDark = () => (chosen() ?? (system.matches ? "dark" : "light")) === "dark";

/** @param {() => void} listener */
export const onTheme = (listener) => listeners.add(listener);

function apply() {
  const theme = chosen();
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  for (const listener of listeners) listener();
}

/** Let a button switch. @param {HTMLButtonElement} button */
export function bindToggle(button) {
  const label = () => {
    button.textContent = isDark() ? "☀" : "☾";
    button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
    button.title = button.getAttribute("aria-label");
  };
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    try { localStorage.setItem(KEY, next); } catch { document.documentElement.dataset.theme = next; }
    apply();
  });
  onTheme(label);
  label();
}

system.addEventListener("change", apply);
apply();
