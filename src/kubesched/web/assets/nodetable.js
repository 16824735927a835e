/** The nodes as a table that sorts and filters; only rows in sight are in the page. */

import { el, muted, quiet, show } from "./dom.js";
import { amount, percent, resourceName } from "./format.js";
import { nodeLink } from "./route.js";
import { marks, share, store } from "./store.js";

const ROW_PX = 30;
const EXTRA = 8;
const MAX_RESOURCES = 5;

export class NodeTable {
  filter = "";
  #sort = { key: "Node", down: false };
  /** rows of nodes in the order of the table @type {number[]} */ #order = [];
  #head = el("tr");
  #body = el("tbody");
  #table = el("table.grid", el("caption.hidden", "Nodes, and how much of their resources is requested"), el("thead", this.#head), this.#body);
  element = el("div.table-scroll", { tabindex: "0", role: "region", "aria-label": "Table of nodes", onscroll: () => this.#draw() }, this.#table);

  constructor() {
    new ResizeObserver(() => this.#draw()).observe(this.element);
  }

  /** Nodes or the way to show them changed. */
  refresh() {
    const { key, down } = this.#sort;
    const { nodes } = store;
    show(this.#head, ["Node", "Zone", "State", ...this.#resources()].map((each) => this.#heading(each)));
    const values = nodes.names.map((_, row) => this.#value(key, row));
    this.#order = nodes.names.map((_, row) => row).filter((row) => nodes.names[row].includes(this.filter) || nodes.zones[row].includes(this.filter));
    this.#order.sort((a, b) => (values[a] === values[b] ? a - b : (values[a] < values[b]) === down ? 1 : -1));
    this.#table.setAttribute("aria-rowcount", String(this.#order.length + 1));
    this.#draw();
  }

  /** @param {string} text show only nodes and zones with this in their name */
  setFilter(text) {
    this.filter = text;
    this.element.scrollTop = 0;
    this.refresh();
  }

  #resources() { return Object.keys(store.nodes.resources).slice(0, MAX_RESOURCES); }

  #heading(key) {
    const mine = this.#sort.key === key;
    const sort = () => {
      this.#sort = { key, down: mine ? !this.#sort.down : key !== "Node" && key !== "Zone" };
      this.refresh();
      [...this.#head.querySelectorAll("button")].find((each) => each.dataset.key === key)?.focus();
    };
    return el("th", { scope: "col", class: key in store.nodes.resources ? "number" : null, "aria-sort": mine ? (this.#sort.down ? "descending" : "ascending") : "none" },
      el("button.plain", { "data-key": key, onclick: sort }, resourceName(key), el("span", quiet, mine ? (this.#sort.down ? " ▾" : " ▴") : "")));
  }

  #value(key, row) {
    const { nodes } = store;
    if (key === "Node") return nodes.names[row];
    if (key === "Zone") return nodes.zones[row];
    if (key === "State") return marks(nodes, row).join();
    return share(nodes, key, row) || 0;
  }

  #draw() {
    if (!store.nodes || !this.element.isConnected) return;
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / ROW_PX) - EXTRA);
    const last = Math.min(this.#order.length, first + Math.ceil(clientHeight / ROW_PX) + 2 * EXTRA);
    const focused = this.#body.contains(document.activeElement) && document.activeElement.textContent;
    show(this.#body, spacer(first), this.#order.slice(first, last).map((row, place) => this.#row(row, first + place)), spacer(this.#order.length - last),
      !this.#order.length && el("tr", el("td", { colspan: 9 }, "No node has this in its name.")));
    if (focused) [...this.#body.querySelectorAll("a")].find((each) => each.textContent === focused)?.focus({ preventScroll: true });
  }

  #row(row, place) {
    const { nodes } = store;
    return el("tr", { "aria-rowindex": place + 2 }, el("th", { scope: "row" }, nodeLink(nodes.names[row])), el("td", nodes.zones[row] || "–"),
      el("td", marks(nodes, row).join(", ") || muted("ready")), this.#resources().map((each) => cell(each, row)));
  }
}

function cell(resource, row) {
  const { requested, allocatable } = store.nodes.resources[resource];
  if (!allocatable[row]) return el("td.number.muted", "–");
  const amounts = `${amount(resource, requested[row])} / ${amount(resource, allocatable[row])}`;
  return el("td.number", el("span.muted.amounts", amounts), " ", percent(requested[row] / allocatable[row]));
}

const spacer = (rows) => rows > 0 && el("tr.spacer", quiet, el("td", { colspan: 9, style: { height: `${rows * ROW_PX}px` } }));
