/**
 * The heat map: one cell a node, on a canvas below the names of zones. A pointer or the arrow keys
 * choose a cell; it is described in a tooltip and to screen readers.
 */

import { el, muted, say, show } from "./dom.js";
import { amount, count, plural, resourceName } from "./format.js";
import { arrange, corner, hit, neighbour } from "./layout.js";
import { describe, hideTip, showTip } from "./nodetip.js";
import { isCard, paint, ring } from "./painter.js";
import { FULLEST, percentOf, share, store } from "./store.js";

const FLASH_MS = 600;
/** Above this number of changed nodes, no rings are drawn: they would flicker. */
const FEW = 6;
const FEW_OF_ALL = 0.02;
const SMALLEST_HEIGHT = 200;
/** About as wide are letters of the name of a zone, and of what is said of it. */
const [LABEL_PX, NUMBERS_PX] = [7.8, 6.8];
/** In one column: the part of the window that the map fills, if it needs no more. */
const STACKED_HEIGHT = 0.6;
const stacked = matchMedia("(max-width: 900px)");
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class HeatMap {
  #options;
  /** @type {import("./layout.js").Layout | null} */ #layout = null;
  #seen = "";
  /** the chosen cell, and whether the keyboard chose it */
  #cell = null;
  #byKey = false;
  /** @type {Set<string> | null} */ #highlighted = null;
  #labels = el("div");
  #canvas = el("canvas", { tabindex: "0", role: "application", "aria-roledescription": "heat map", "aria-describedby": "map-help" });
  #context = this.#canvas.getContext("2d");

  /** @param {{open: (node: string) => void, resource: () => string, fullestFirst: () => boolean}} options */
  constructor(options) {
    this.#options = options;
    this.element = el("div.map", el("p.hidden", { id: "map-help" },
      "Arrow keys go from node to node, Page Up and Page Down from zone to zone, Enter opens a node. The table has the same."),
    this.#labels, this.#canvas);
    this.#listen();
    new ResizeObserver(() => this.#arrange(false)).observe(this.element);
  }

  /** Nodes, the resource or the order changed. */
  refresh() {
    this.#arrange(true);
  }

  /** Bring out some nodes: one by a ring, several by fainter others. @param {Iterable<string> | null} names */
  highlight(names) {
    this.#highlighted = names ? new Set(names) : null;
    this.draw();
  }

  /** Draw everything. */
  draw() {
    if (!this.#layout || !store.nodes) return;
    this.#context.clearRect(0, 0, this.#layout.width, this.#layout.height);
    this.#drawCells(() => true);
    this.#describe();
    this.#canvas.dataset.drawn = String(store.nodes.names.length);
  }

  /** Draw rows that changed, and let them light up for a moment. @param {number[]} rows */
  drawRows(rows) {
    if (!this.#layout) return;
    if (this.#options.fullestFirst()) return void this.refresh();
    const changed = new Set(rows);
    const flash = !calm.matches && rows.length <= Math.max(FEW, store.nodes.names.length * FEW_OF_ALL);
    this.#drawCells((row) => changed.has(row), flash);
    this.#describe();
    if (flash) setTimeout(() => this.#drawCells((row) => changed.has(row)), FLASH_MS);
    if (this.#cell) this.#showTip();
  }

  #arrange(always) {
    const { clientWidth: width } = this.element;
    // In one column, the map is as tall as it has to be, and the page scrolls.
    const height = stacked.matches ? Math.round(innerHeight * STACKED_HEIGHT) : this.element.clientHeight;
    if (!store.nodes || !width || (!always && this.#seen === `${width} ${height}`)) return;
    this.#seen = `${width} ${height}`;
    this.#layout = arrange(this.#zones(), width, Math.max(height, SMALLEST_HEIGHT));
    this.#cell = null;
    const scale = devicePixelRatio || 1;
    const canvas = this.#canvas;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.max(1, Math.round(this.#layout.height * scale));
    canvas.style.setProperty("width", `${width}px`);
    canvas.style.setProperty("height", `${this.#layout.height}px`);
    this.#context.setTransform(scale, 0, 0, scale, 0, 0);
    this.draw();
  }

  #zones() {
    const { nodes } = store;
    /** @type {Map<string, number[]>} */
    const zones = new Map();
    nodes.names.forEach((_, row) => {
      const zone = store.placeOf(row);
      if (zones.has(zone)) zones.get(zone).push(row);
      else zones.set(zone, [row]);
    });
    if (this.#options.fullestFirst()) {
      const value = nodes.names.map((_, row) => share(nodes, this.#options.resource(), row) || 0);
      for (const rows of zones.values()) rows.sort((a, b) => value[b] - value[a] || a - b);
    }
    const sorted = store.grouping ? [...zones].sort(([a], [b]) => (!a - !b) || (a < b ? -1 : 1)) : [...zones];
    return sorted.map(([zone, rows]) => ({ zone, rows }));
  }

  #drawCells(wanted, flash = false) {
    const { nodes } = store;
    const resource = this.#options.resource();
    const { wide, tall, blocks } = this.#layout;
    const words = isCard(wide);
    const some = this.#highlighted;
    for (const block of blocks) {
      block.rows.forEach((row, place) => {
        if (!wanted(row) || row >= nodes.names.length) return;
        const [x, y] = corner(this.#layout, block, place);
        const brought = some?.has(nodes.names[row]);
        const box = { x, y, wide, tall };
        paint(this.#context, box, {
          ...(words ? { name: nodes.names[row], lines: cardLines(nodes, row) } : {}),
          share: share(nodes, resource, row), faint: some?.size > 1 && !brought,
          taints: nodes.taints[row], ready: nodes.ready[row], unschedulable: nodes.unschedulable[row] });
        if (flash || (brought && some.size === 1)) ring(this.#context, box);
      });
    }
    if (this.#cell) ring(this.#context, this.#box());
  }

  /** Describe the zones as text. */
  #describe() {
    const { nodes } = store;
    const resource = this.#options.resource();
    show(this.#labels, this.#layout.blocks.map((block) => el("p.zone-label", {
      style: { left: `${block.x}px`, top: `${block.y}px`, width: `${this.#layout.blockWidth}px` } },
    ...this.#label(block.zone || `no ${store.grouping?.key ?? "zone"}`, block.rows.length, percentOf(nodes, resource, block.rows)))));
    const what = resource === FULLEST ? "the fullest resource" : resource;
    this.#canvas.setAttribute("aria-label", `Heat map of ${plural(nodes.names.length, "node")}: how much of ${what} is requested`);
  }

  /** The name of a zone and its numbers; without the word where both have no room. */
  #label(zone, number, used) {
    const full = `${plural(number, "node")} · ${used}`;
    const isLong = zone.length * LABEL_PX + full.length * NUMBERS_PX > this.#layout.blockWidth;
    return [el("b", el("bdi", zone)), " ", muted(isLong ? `${count(number)} · ${used}` : full)];
  }

  #listen() {
    const canvas = this.#canvas;
    const leave = () => this.#choose(null, false);
    canvas.addEventListener("pointermove", (event) => this.#choose(this.#at(event), false));
    canvas.addEventListener("pointerleave", () => { if (!this.#byKey) leave(); });
    canvas.addEventListener("blur", leave);
    canvas.addEventListener("focus", () => {
      if (canvas.matches(":focus-visible") && !this.#cell && this.#layout?.blocks.length) this.#choose({ block: 0, place: 0 }, true);
    });
    canvas.addEventListener("click", (event) => {
      const cell = this.#at(event);
      if (cell) this.#options.open(this.#name(cell));
    });
    canvas.addEventListener("keydown", (event) => {
      const next = this.#layout && this.#cell && neighbour(this.#layout, this.#cell, event.key);
      if (event.key === "Escape") leave();
      else if (event.key === "Enter" && this.#cell) this.#options.open(this.#name(this.#cell));
      else if (next) {
        event.preventDefault();
        this.#choose(next, true);
      }
    });
  }

  #at(event) {
    const box = this.#canvas.getBoundingClientRect();
    return this.#layout && hit(this.#layout, event.clientX - box.left, event.clientY - box.top);
  }

  #choose(cell, byKey) {
    if (cell?.block === this.#cell?.block && cell?.place === this.#cell?.place) return;
    const old = this.#cell && this.#row(this.#cell);
    this.#cell = cell;
    this.#byKey = byKey;
    this.#drawCells((row) => row === old);
    if (!cell) return void hideTip();
    if (byKey) {
      say(describe(this.#row(cell), this.#options.resource()));
      this.#scroll();
    }
    this.#showTip();
  }

  #scroll() {
    const [, y] = this.#corner();
    const { scrollTop, clientHeight } = this.element;
    if (y < scrollTop || y + this.#layout.tall > scrollTop + clientHeight) this.element.scrollTop = y - clientHeight / 2;
  }

  #showTip() {
    const { left, top } = this.#canvas.getBoundingClientRect();
    const { x, y, wide, tall } = this.#box();
    showTip(this.#row(this.#cell), new DOMRect(left + x, top + y, wide, tall));
  }

  #box() {
    const [x, y] = this.#corner();
    return { x, y, wide: this.#layout.wide, tall: this.#layout.tall };
  }

  #corner() { return corner(this.#layout, this.#layout.blocks[this.#cell.block], this.#cell.place); }

  #row(cell) { return this.#layout.blocks[cell.block].rows[cell.place]; }

  #name(cell) { return store.nodes.names[this.#row(cell)]; }
}

/** What a card says of a node beside its name: each resource that it has, those that nothing requests last. */
function cardLines(nodes, row) {
  return Object.entries(nodes.resources).filter(([, { allocatable }]) => allocatable[row] > 0).map(([title, { requested, allocatable }]) => ({
    title: resourceName(title), text: `${amount(title, requested[row])} / ${amount(title, allocatable[row])}`, share: requested[row] / allocatable[row] }))
    .sort((a, b) => (a.share === 0) - (b.share === 0));
}
