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

/** Whether the pods of a manifest fit: as `kubesched simulate apply`. */
function applied(said) {
  const { pods, placed, fits, workloads = [], places = [], preempted = [], left: unplaced = [], notes = [] } = said;
  const title = ({ kind, namespace, name }) => `${kind} ${namespace}/${name}`;
  const names = workloads.map(title).join(", ");
  const nodes = places.flatMap((each) => Object.keys(each.nodes));
  if (nodes.length) highlight(nodes);
  const spread = (numbers) => { const [least, most] = [Math.min(...numbers), Math.max(...numbers)]; return least === most ? count(most) : `${count(least)} to ${count(most)}`; };
  const one = said.explanation && explanation(said.explanation, null);
  return [
    el("p.outcome", el(`span.badge.${fits ? "placed" : "unschedulable"}`, fits ? "Fits" : "Does not fit"),
      !pods ? ` ${names} asks for no more pods than there are.`
        : fits ? ` ${pods === 1 ? "The pod" : `All ${count(pods)} pods`} of ${names} ${pods === 1 ? "finds" : "find"} a node.` : ` ${count(placed)} of ${plural(pods, "pod")} of ${names} ${placed === 1 ? "finds" : "find"} a node.`),
    el("div.figures", figure(count(placed), "find a node", ".good"), figure(count(pods - placed), "find none", fits ? "" : ".bad"),
      figure(count(preempted.length), "others preempted for them", preempted.length ? ".bad" : "")),
    notes.map((each) => el("p.muted", `Note: ${each}`)),
    (workloads.length > 1 || workloads.some((each) => each.existing)) && titled("Workloads", ["Workload", ">Asked for", ">There", ">New", ">Fit"],
      workloads.map((each) => [title(each), count(each.asked), count(each.existing), count(each.more), count(each.placed)])),
    without(unplaced),
    one && el("details", el("summary", `${said.explanation.pod} explained`), one),
    titled("Where they go", [...(places.some((each) => each.pool) ? ["Pool"] : []), "Zone", ">Pods", ">Nodes", ">Each"], places.map((each) =>
      [...(places.some((one) => one.pool) ? [each.pool || "–"] : []), each.zone || "no zone", count(each.pods), count(Object.keys(each.nodes).length), spread(Object.values(each.nodes))])),
    titled("By node", ["Node", ">Pods"], places.flatMap((each) => Object.entries(each.nodes)).sort((a, b) => b[1] - a[1]).map(([name, on]) => [nodeLink(name), count(on)])),
    titled(`${plural(preempted.length, "pod")} would be preempted`, ["Pod", ">Priority", "From", "Budget violated", "Afterwards"],
      preempted.map((each) => [podLink(each.pod), count(each.priority), nodeLink(each.node), each.budget || "–", each.now ? ["on ", nodeLink(each.now)] : "waits"])),
  ];
}

/** Pods that are not there yet and find no node, by message. */
function without(pods) {
  /** @type {Map<string, any[]>} */
  const byMessage = new Map();
  for (const pod of pods) byMessage.set(pod.message, [...(byMessage.get(pod.message) ?? []), pod]);
  return byMessage.size > 0 && el("section", el("h3", "Pods without a node"), [...byMessage].map(([message, same]) => el("article.group",
    el("b", plural(same.length, "pod")), muted(` such as ${same[0].pod}`), el("p.message", message))));
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
  const { left: unplaced = [], budgets = [] } = said;
  const moves = Object.entries(said.moves ?? {});
  return [
    el("p", el("b", said.name), `: ${plural(said.nodes, "node")}, ${plural(said.displaced, "pod")} to move.`),
    el("div.figures", figure(count(said.placed ?? 0), "find another node", ".good"), figure(count(unplaced.length), "find none", unplaced.length ? ".bad" : ""),
      figure(count(said.ended ?? 0), "belong to the nodes")),
    titled("Evictions that a PodDisruptionBudget blocks now", ["Budget", ">Allowed", "Pods that it blocks"], budgets.map((each) => [each.budget, count(each.allowed), each.pods.map((pod) => el("div", podLink(pod)))])),
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
