/** Answers to what-if questions, one for each kind. */

import { el, meter, muted, table } from "./dom.js";
import { render as explanation } from "./explanation.js";
import { count, plural } from "./format.js";
import { highlight } from "./nodes.js";
import { nodeLink, podLink } from "./route.js";

const SHOWN = 200;

/** @param {string} kind @param {any} said @returns {HTMLElement} */
export function answer(kind, said) {
  const made = { apply: applied, ungate: (each) => explanation(each, null), headroom, add, drain: moved, loss: moved };
  return el("section", made[kind](said));
}

const figure = (number, text, style = "") => el(`div.figure${style}`, el("b.value", number), muted(text));

function titled(title, titles, rows) {
  return rows.length > 0 && el("section", el("h3", title), table(title, titles, rows.slice(0, SHOWN)),
    rows.length > SHOWN && el("p.muted", `and ${count(rows.length - SHOWN)} more`));
}

function headroom(said) {
  return [
    el("div.figures", figure(`${said.atLeast ? "≥ " : ""}${count(said.pods)}`, `more like ${said.pod} fit`), figure(count(said.nodes ?? 0), "nodes take one")),
    said.message && el("blockquote.message", said.message),
    where(said),
  ];
}

/** How many pods go where; the nodes are brought out on the map. */
function where({ byNode = {}, byZone = {} }) {
  const nodes = Object.entries(byNode).sort((a, b) => b[1] - a[1]);
  const zones = Object.entries(byZone);
  const most = Math.max(1, ...zones.map(([, pods]) => pods));
  if (nodes.length) highlight(nodes.map(([name]) => name));
  return [titled("By zone", ["Zone", "", ">Pods"], zones.map(([zone, pods]) => [zone || "no zone", meter(pods / most), count(pods)])),
    titled("By node", ["Node", ">Pods"], nodes.map(([name, pods]) => [nodeLink(name), count(pods)]))];
}

function applied(said) {
  const { replicas, placed, preempting, victims } = said;
  const all = placed === replicas;
  // Its scores and nodes are those of one replica: the map shows all of them instead.
  const one = said.explanation && explanation(said.explanation, null);
  return [
    el("p.outcome", el(`span.badge.${all ? "placed" : "unschedulable"}`, all ? "Fits" : "Does not fit"),
      all ? ` All ${plural(replicas, "pod")} of ${said.pod} find a node.` : ` ${count(placed)} of ${plural(replicas, "pod")} of ${said.pod} find a node.`),
    el("div.figures", figure(count(placed - preempting), "fit as things are", ".good"), figure(count(preempting), "fit after preemption"),
      figure(count(replicas - placed), "find no node", all ? "" : ".bad")),
    said.message && [el("p.muted", preempting ? "Why the first of them did not fit as things are:" : "Why the next one finds none:"), el("blockquote.message", said.message)],
    said.notes.map((each) => el("p.muted", `Note: ${each}`)),
    titled(`${plural(victims.length, "pod")} would be preempted`, ["Pod", ">Priority"], victims.map((each) => [podLink(each.pod), count(each.priority)])),
    where(said),
    one && el("details", el("summary", "One of the pods explained"), one),
  ];
}

function add(said) {
  const { before, after, stillLeft = [] } = said;
  const row = (title, key) => [title, `${before[key]}%`, `${after[key]}%`];
  return [
    el("p", `${plural(said.added, "node")} more like ${said.like}; ${plural(said.pending, "pod")} wait.`),
    el("div.figures", figure(count(said.placedAfter ?? 0), "of them would find a node", ".good"),
      figure(count(said.placedBefore ?? 0), "would without the new nodes"), figure(count(stillLeft.length), "would still wait", stillLeft.length ? ".bad" : "")),
    before && after && titled("Requested share of allocatable", ["Resource", ">Before", ">After"],
      [row("cpu", "cpu"), row("memory", "memory"), row("cpu of the fullest node", "highestCpu"), row("memory of the fullest node", "highestMemory")]),
    left(stillLeft),
  ];
}

function moved(said) {
  const { left: unplaced = [], againstBudgets = [] } = said;
  const moves = Object.entries(said.moves ?? {});
  return [
    el("p", el("b", said.name), `: ${plural(said.nodes, "node")}, ${plural(said.displaced, "pod")} to move.`),
    el("div.figures", figure(count(said.placed ?? 0), "find another node", ".good"), figure(count(unplaced.length), "find none", unplaced.length ? ".bad" : ""),
      figure(count(said.ended ?? 0), "belong to the nodes")),
    againstBudgets.length > 0 && el("p", `Disruption budgets do not allow to evict now: ${againstBudgets.join(", ")}.`),
    left(unplaced),
    titled("Where they go", ["Pod", "To"], moves.map(([pod, node]) => [podLink(pod), nodeLink(node)])),
  ];
}

function left(pods) {
  if (!pods.length) return null;
  /** @type {Map<string, any[]>} */
  const byMessage = new Map();
  for (const pod of pods) byMessage.set(pod.message, [...(byMessage.get(pod.message) ?? []), pod]);
  return el("section", el("h3", "Pods without a node"), [...byMessage].map(([message, same]) => el("article.group",
    el("b", plural(same.length, "pod")), el("p.message", message),
    el("ul.pods", same.slice(0, SHOWN).map((each) => el("li", podLink(each.pod)))))));
}
