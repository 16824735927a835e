/** A short description of a node: for the tooltip and for screen readers. */

import { byId, el, meter, muted, show } from "./dom.js";
import { amount, percent, plural } from "./format.js";
import { FULLEST, marks, share, store } from "./store.js";

const RESOURCES = 6;
const AWAY_PX = 10;
const EDGE_PX = 8;

/** @param {number} row @param {string} resource @returns {string} */
export function describe(row, resource) {
  const { nodes } = store;
  const of = share(nodes, resource, row);
  const column = nodes.resources[resource];
  let use = `no ${resource}`;
  if (resource === FULLEST) use = `${percent(of)} of its fullest resource requested`;
  else if (!Number.isNaN(of)) use = `${resource} ${percent(of)}, ${amount(resource, column.requested[row])} of ${amount(resource, column.allocatable[row])} requested`;
  return [nodes.names[row], nodes.zones[row] || "no zone", use, plural(nodes.pods[row], "pod"), ...marks(nodes, row)].join(", ");
}

/** Show the tooltip beside a cell. @param {number} row @param {DOMRect} box of the cell */
export function showTip(row, box) {
  const { nodes } = store;
  const tip = byId("tip");
  const special = marks(nodes, row);
  const lines = Object.entries(nodes.resources).filter(([, { allocatable }]) => allocatable[row] > 0).slice(0, RESOURCES);
  show(tip,
    el("p", el("b", nodes.names[row]), " ", muted(`${nodes.zones[row] || "no zone"} · ${plural(nodes.pods[row], "pod")}`)),
    special.length > 0 && el("p.marks", special.join(" · ")),
    el("table", lines.map(([resource, { requested, allocatable }]) => {
      const of = requested[row] / allocatable[row];
      return el("tr", el("th", { scope: "row" }, resource), el("td", meter(of)), el("td.number", percent(of)),
        el("td.number.muted", `${amount(resource, requested[row])} / ${amount(resource, allocatable[row])}`));
    })));
  tip.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = tip;
  const left = Math.min(box.right + AWAY_PX, innerWidth - width - EDGE_PX);
  const above = box.bottom + AWAY_PX + height > innerHeight - EDGE_PX;
  tip.style.setProperty("left", `${Math.max(EDGE_PX, left)}px`);
  tip.style.setProperty("top", `${Math.max(EDGE_PX, above ? box.top - height - AWAY_PX : box.bottom + AWAY_PX)}px`);
}

export const hideTip = () => { byId("tip").hidden = true; };
