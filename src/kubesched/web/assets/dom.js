/** Creates elements without parsing HTML: names from the cluster are always text. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element: `el("a.link", {href: "#/"}, "text")`, `el("p", "text")`.
 * @param {string} tag name and classes, as in a selector
 * @param {...any} rest attributes, if any, then children. Attributes that begin with "on" are listeners; `style` is an
 *   object, set as the content-security policy allows. Children may be lists; null and false are left out.
 * @returns {any}
 */
export const el = (tag, ...rest) => made((name) => document.createElement(name), tag, rest);

/** Make an element of SVG, likewise. @returns {any} */
export const svg = (tag, ...rest) => made((name) => document.createElementNS(SVG, name), tag, rest);

function made(make, tag, rest) {
  const [name, ...classes] = tag.split(".");
  const element = make(name);
  if (name === "button") element.type = "button";
  if (classes.length) element.classList.add(...classes);
  const attributes = rest[0]?.constructor === Object ? rest.shift() : {};
  for (const [key, value] of Object.entries(attributes)) set(element, key, value);
  element.append(...shown(rest));
  return element;
}

function set(element, key, value) {
  if (value === undefined || value === null || value === false) return;
  if (key === "style") {
    for (const [name, text] of Object.entries(value)) element.style.setProperty(name, String(text));
  } else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
  else if (key === "value" || key === "checked" || key === "type") element[key] = value;
  else element.setAttribute(key, value === true ? "" : String(value));
}

const shown = (children) => children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false);

/** Put children in place of what an element had. @param {Element} element @param {...any} children */
export const show = (element, ...children) => element.replaceChildren(...shown(children));

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/**
 * Update a list; keeps the elements of remaining entries, and the focus in them.
 * @template T @param {HTMLElement} list @param {T[]} entries @param {(entry: T) => string} keyOf
 * @param {(entry: T, element?: HTMLElement) => HTMLElement} render makes an element or brings it up to date
 */
export function reconcile(list, entries, keyOf, render) {
  const old = new Map([...list.children].map((each) => [each.dataset.key, each]));
  let place = list.firstElementChild;
  for (const entry of entries) {
    const key = keyOf(entry);
    const element = render(entry, old.get(key));
    old.delete(key);
    element.dataset.key = key;
    if (element === place) place = place.nextElementSibling;
    else list.insertBefore(element, place);
  }
  for (const gone of old.values()) gone.remove();
}

/** A table that scrolls sideways can be reached with the keyboard; others are no stop on the way. */
const sideways = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const scrolls = target.scrollWidth > target.clientWidth;
    for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", target.querySelector("caption").textContent]]) {
      if (scrolls) target.setAttribute(name, value);
      else target.removeAttribute(name);
    }
  }
});

/** A box for a table that may be too wide. @param {HTMLTableElement} inner with a caption */
export function scrolling(inner) {
  const box = el("div.wide-table", inner);
  sideways.observe(box);
  return box;
}

/**
 * A table; the first cell of a row is its heading. Columns whose title begins with ">" are numbers.
 * @param {string} caption @param {string[]} titles @param {any[][]} rows
 */
export function table(caption, titles, rows) {
  const style = titles.map((each) => (each.startsWith(">") ? ".number" : ""));
  const cell = (each, at) => (each instanceof HTMLTableCellElement ? each : at ? el(`td${style[at]}`, each) : el("th", { scope: "row" }, each));
  return scrolling(el("table", el("caption.hidden", caption),
    el("thead", el("tr", titles.map((each, at) => (each ? el(`th${style[at]}`, { scope: "col" }, each.replace(">", "")) : el("td"))))),
    el("tbody", rows.map((row) => el("tr", row.map(cell))))));
}

/** Attributes of decoration, hidden from screen readers. */
export const quiet = { "aria-hidden": "true" };

/** Muted text. @param {...any} text */
export const muted = (...text) => el("span.muted", text);

/** A bar for a share from 0 to 1; the number is beside it. @param {number} of */
export const meter = (of) => el("span.meter", quiet, el("span", { style: { width: `${Math.min(100, 100 * of)}%` } }));

/** An error box with a retry button. */
export function failure(error, retry) {
  const { message } = error;
  return el("div.failure", { role: "alert" }, el("p", message[0].toUpperCase() + message.slice(1)), retry && el("button", { onclick: retry }, "Try again"));
}

/** A placeholder while a response is pending. @param {string} text */
export const loading = (text) => el("p.loading", { role: "status" }, text);

/** Announce a text to screen readers. @param {string} text */
export const say = (text) => { byId("spoken").textContent = text; };

/** A button that copies a text to the clipboard. @param {string} text */
export function copyButton(text) {
  const tell = (said) => { button.textContent = said; say(said); };
  const button = el("button.small", { onclick: () => navigator.clipboard.writeText(text).then(() => tell("Copied"), () => tell("Select it by hand")) }, "Copy");
  return button;
}
