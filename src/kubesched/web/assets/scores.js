/** The scores of nodes, plugin by plugin: what each adds, and which of them made the difference. */

import { el, muted, quiet, scrolling, show } from "./dom.js";
import { count, plural } from "./format.js";
import { nodeLink } from "./route.js";

const SHOWN = 10;
const COLOURS = 8;

/** @param {any} said an explanation @returns {HTMLElement | null} */
export function scores(said) {
  const all = said.scores ?? [];
  if (!all.length) return null;
  const plugins = Object.entries(said.weights ?? {}).map(([name, weight]) => ({ name, weight, ...range(all, name) }));
  const telling = plugins.filter((each) => each.high > 0).map((each, at) => ({ ...each, style: `p${at % COLOURS}` }));
  const silent = plugins.filter((each) => each.high <= 0).map((each) => each.name);
  const deciding = telling.filter((each) => each.high > each.low).sort((a, b) => b.high - b.low - a.high + a.low);
  const body = el("tbody");
  const list = (number) => show(body, all.slice(0, number).map((each) => row(each, telling, said)));
  const leftOff = said.scoresLeftOff ? ` The best ${count(all.length)} of ${plural(all.length + said.scoresLeftOff, "node")}.` : "";
  list(SHOWN);
  return el("section", el("h3", "Scores"),
    el("p.muted", deciding.length ? `What tells nodes apart: ${deciding.map((each) => `${each.name} (${each.low}–${each.high})`).join(", ")}.`
      : "All of these nodes are equally good.",
      silent.length > 0 && ` Without a say here: ${silent.join(", ")}.`, leftOff),
    el("ul.keys", quiet, telling.map((each) => el("li", el(`span.key.${each.style}`), each.name, muted(` ×${each.weight}`)))),
    scrolling(el("table.scores", el("caption.hidden", "Weighted scores of each plugin for each node that the pod fits on"),
        el("thead", el("tr", el("th", { scope: "col" }, "Node"), el("th.number", { scope: "col" }, "Total"), el("td"),
          telling.map((each) => el("th.number", { scope: "col", title: each.name }, el(`span.key.${each.style}`, quiet), el("span.hidden", each.name))))),
        body)),
    all.length > SHOWN && el("button.small", { onclick: (event) => { list(all.length); event.target.remove(); } }, `Show all ${count(all.length)}`));
}

function range(all, name) {
  const values = all.map((each) => each.plugins[name]?.weighted ?? 0);
  return { low: Math.min(...values), high: Math.max(...values) };
}

function row({ node, total, plugins }, telling, said) {
  return el("tr",
    el("th", { scope: "row" }, nodeLink(node), said.bestNodes?.includes(node) && el("span.badge.placed", "best"), said.currentNode === node && el("span.badge", "now")),
    el("td.number", el("b", count(total))),
    el("td.gauge", el("span.stack", quiet, telling.map(({ name, style }) =>
      plugins[name]?.weighted > 0 && el(`span.${style}`, { style: { width: `${(100 * plugins[name].weighted) / said.scores[0].total}%` } })))),
    telling.map(({ name, weight }) => {
      const { raw = 0, normalized = 0, weighted = 0 } = plugins[name] ?? {};
      return el("td.number", { title: `${name}: raw ${raw}, normalised ${normalized} × weight ${weight}` }, count(weighted));
    }));
}
