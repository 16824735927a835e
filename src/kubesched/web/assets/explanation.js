/** One pod explained: outcome, what would help, reasons, scores, preemption, and node by node. */

import { get, Latest } from "./api.js";
import { copyButton, el, failure, loading, meter, muted, show, table } from "./dom.js";
import { count, plural } from "./format.js";
import { highlight } from "./nodes.js";
import { podInfo } from "./podinfo.js";
import { href, nodeLink, podLink } from "./route.js";
import { scores } from "./scores.js";

const PLACEMENTS = 50;
const CLOSEST = 5;
/** So many lines are shown of what is behind a reason, and so many nodes are named for each. */
const [BEHIND, NAMED] = [3, 2];
const STYLE = { Schedulable: "placed", Gated: "gated" };

/**
 * Ask for an explanation and show it. @param {HTMLElement} view @param {string} namespace @param {string} name
 * @returns {() => void} ends it
 */
export function open(view, namespace, name) {
  const latest = new Latest();
  async function load() {
    // The same pod at another moment: what is there stays until the answer comes.
    const waiting = () => loading(`Evaluating ${namespace}/${name} on every node…`);
    const fresh = view.querySelector("h2")?.textContent !== `${namespace}/${name}`;
    if (fresh) show(view, waiting());
    try {
      await latest.run(async (signal) => {
        const pod = await get(["pods", namespace, name], {}, signal);
        if (fresh && !signal.aborted) show(view, el("article", heading(`${namespace}/${name}`), podInfo(pod), waiting()));
        const said = await get(["pods", namespace, name, "explanation"], {}, signal);
        if (!signal.aborted) show(view, render(said, load, pod));
      });
    } catch (error) {
      show(view, el("h2", `${namespace}/${name}`), failure(error, load));
    }
  }
  load();
  return () => { latest.cancel(); highlight(null); };
}

function heading(pod, ...actions) {
  const [namespace, name] = pod.split("/");
  return el("header.line", el("h2", muted(`${namespace}/`), name), actions);
}

/**
 * @param {any} said the explanation @param {(() => void) | null} again asks once more @param {any} [pod] the pod itself
 * @returns {HTMLElement}
 */
export function render(said, again, pod) {
  if (said.scores?.length) highlight(said.scores.map((each) => each.node));
  return el("article", heading(said.pod, again && el("span.actions", pod?.gates.length > 0 && !said.currentNode && el("a.small", { href: href(["what-if"], { kind: "ungate", pod: said.pod }) }, "Without its gates?"),
        el("a.small", { href: href(["what-if"], { kind: "headroom", pod: said.pod }) }, "How many more fit?"),
        el("button.small", { onclick: again }, "Ask again"))),
    el("p.outcome", ...(waitsForGroup(said) ? [el("span.badge.unschedulable", "Waits for its group"), " By itself, ", lower(sentence(said))]
      : [el(`span.badge.${STYLE[said.outcome] ?? "unschedulable"}`, said.outcome), " ", sentence(said)])),
    said.message && el("blockquote.message", said.message), pod && podInfo(pod),
    ofPod(said),
    changes(said), said.group && placements(said.group), devices(said.devices), reasons(said), scores(said), preemption(said), nodes(said),
    said.notes?.map((each) => el("p.muted", `Note: ${each}`)));
}

/** Whether a pod would fit, and has no node because its group does not. */
const waitsForGroup = (said) => said.group && !said.currentNode && said.outcome === "Unschedulable" && said.feasibleNodes > 0;

const lower = (text) => (Array.isArray(text) ? [lower(text[0]), ...text.slice(1)] : text.replace(/^It /, "it "));

function sentence(said) {
  const fits = `fits on ${count(said.feasibleNodes)} of ${plural(said.totalNodes, "node")}`;
  const best = said.bestNodes ?? [];
  if (said.outcome === "Unclaimed") return `No profile is for it; under ${said.schedulerName} it ${fits}.`;
  if (said.currentNode) return ["Runs on ", nodeLink(said.currentNode), `; ${fits} if it were placed anew.`];
  if (said.outcome === "Gated") return `Held back by its gates; it ${fits}.`;
  if (best.length === 1) return [`It ${fits}; the best is `, nodeLink(best[0]), "."];
  return `It ${fits}${best.length ? `; ${count(best.length)} are equally good` : ""}.`;
}

const listed = (links) => links.flatMap((link, at) => (at ? [", ", link] : [link]));

/** What would place a pod, or a group. @param {any} said its explanation */
export function changes(said) {
  if (!said.changes?.length) return null;
  return el("section", el("h3", "What would place it"), el("p.muted", "The smallest change first; each was tried out on the state of the cluster."),
    el("ol.changes", said.changes.map(change)));
}

function change({ title, nodes: fits, examples = [], commands = [], note }) {
  const command = commands.join("\n");
  return el("li", el("div.line", el("b", title), el("span.badge.placed", plural(fits, "node"))),
    examples.length > 0 && el("p.muted", { onpointerenter: () => highlight(examples), onpointerleave: () => highlight(null) },
      "for example ", listed(examples.map(nodeLink))),
    (note || command) && el("details", el("summary", "How to"), note && el("p.muted", note),
      command && el("div.snippet", el("pre", { tabindex: "0" }, command), copyButton(command))));
}

/** How much of a group fits, placement by placement. @param {any} group its explanation */
export function placements(group) {
  const tried = group.placements ?? [];
  if (!tried.length) return null;
  return el("section", el("h3", tried.length > 1 ? `Placements tried, by ${group.topologyKey}` : "How much of the group fits"),
    table("Placements, and how many members fit on each", ["Placement", ">Nodes", ">Fit", ">Needed", "What is missing"], tried.slice(0, PLACEMENTS).map((each) => [
      each.name || "all nodes", count(each.nodes), `${count(each.fits)} of ${count(each.members)}`, count(each.needed),
      each.feasible ? el("span.badge.placed", "enough") : (each.lacking ?? []).map((lack) => el("div", el("b", plural(lack.pods, "pod")), `: ${lack.message}`))])),
    tried.length > PLACEMENTS && el("p.muted", `and ${count(tried.length - PLACEMENTS)} more`));
}

/** Why devices do not serve a pod's claims: how many there are, what excludes them, and where it came closest. */
function devices(found) {
  if (!found) return null;
  const causes = (each) => (each.causes ?? []).map((cause) => el("div", `${count(cause.devices)} ${cause.text}`));
  return el("section", el("h3", "Devices"), el("p.muted", `${plural(found.devices, "device")} on ${plural(found.nodes, "node")}`),
    (found.requests ?? []).length > 0 && table("Requests, and the devices that could serve them", ["Request", ">Asked", ">Usable", "Why not the others"], found.requests.map((each) => [
      [each.request, muted(` ${each.deviceClass}`)], each.count ? count(each.count) : "all", `${count(each.usable)} of ${count(each.devices)}`, each.problem || causes(each)])),
    (found.closest ?? []).length > 0 && el("div", el("p.muted", "Closest"), el("ul", found.closest.slice(0, CLOSEST).map((each) => el("li", nodeLink(each.node), ` ${each.text}`)))));
}

/** What is about the pod itself; several plugins may say the same. */
function ofPod({ podReasons: all = [] }) {
  return [...new Set(all.map((each) => each.text))].map((text) => {
    const same = all.filter((each) => each.text === text);
    return el("div", el("p", el("b", same.map((each) => each.plugin).join(", ")), `: ${text}`), behind({ details: same.flatMap((each) => each.details ?? []) }));
  });
}

function reasons(said) {
  if (!said.reasons?.length) return null;
  // The message has one reason a node, as kube-scheduler stops at the first plugin that rejects it.
  const several = said.reasons.reduce((sum, each) => sum + each.nodes, 0) > said.totalNodes - said.feasibleNodes;
  return el("section", el("h3", "Why nodes were rejected"),
    several && el("p.muted", `A node counts for each of its reasons here${said.message ? "; in the message above, for the first plugin only" : ""}.`),
    table("Reasons, the nodes that have them, and the nodes of which each is the sole reason", ["Reason", ">Nodes", ">Sole reason"], said.reasons.map((each) => [
      [each.text, el("span.plugin", each.plugin), said.nodes?.length > 0 && [" ", onMap(() => keptAway(said, each))], meter(each.nodes / said.totalNodes), behind(each)],
      count(each.nodes), each.alone ? count(each.alone) : "–"])));
}

/** The numbers and names behind a reason, and where it is so; of nodes, those that come closest first. */
function behind({ details = [] }) {
  if (!details.length) return null;
  const where = ({ nodes: on = 0, examples = [] }) => on > 0 && [": ", on > Math.min(NAMED, examples.length)
    ? [`${plural(on, "node")} such as `, nodeLink(examples[0])] : listed(examples.map(nodeLink))];
  const list = el("ul.behind");
  const lines = (number) => show(list, details.slice(0, number).map((each) => el("li", each.text, where(each))));
  lines(BEHIND);
  return [list, details.length > BEHIND && el("button.small", { onclick: (event) => { lines(details.length); event.target.remove(); } },
    `${count(details.length - BEHIND)} more`)];
}

/** A button that shows some nodes on the map, and all again. */
function onMap(names) {
  const button = el("button.small", { "aria-pressed": "false", onclick: () => {
    const pressed = button.getAttribute("aria-pressed") === "false";
    for (const other of button.closest("table").querySelectorAll("[aria-pressed]")) other.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-pressed", String(pressed));
    highlight(pressed ? names() : null);
  } }, "On map");
  return button;
}

const keptAway = (said, { plugin, text }) => said.nodes
  .filter((node) => node.reasons?.some((each) => each.plugin === plugin && each.text === text)).map((each) => each.node);

function preemption({ preemption: found }) {
  if (!found) return null;
  return el("section", el("h3", "Preemption"), found.node
    ? el("p", "Would make room on ", nodeLink(found.node), " by evicting ",
      listed((found.victims ?? []).map((each) => el("span", podLink(each.pod), ` (priority ${each.priority})`))), ".")
    : el("p", found.message ? `Would not help: ${found.message.replace(/^preemption: /, "")}` : "Would not help."));
}

function nodes(said) {
  const all = said.nodes ?? [];
  if (!all.length) return null;
  const list = el("div");
  const filter = (text) => show(list, table("All reasons of each node", ["Node", "Verdict"], all
    .filter((each) => Object.values(each).some((value) => JSON.stringify(value).toLowerCase().includes(text.toLowerCase())))
    .map((each) => [nodeLink(each.node), each.feasible ? el("span.badge.placed", "fits")
      : each.reasons?.map((reason) => el("div", reason.text, el("span.plugin", reason.plugin, reason.resolvable && ", eviction may help"), behind(reason)))])));
  return el("details.nodes-list", { ontoggle: (event) => { if (event.target.open && !list.firstChild) filter(""); } },
    el("summary", `Node by node (${count(all.length)}${said.nodesLeftOff ? `; ${count(said.nodesLeftOff)} more left off` : ""})`),
    el("input", { type: "search", placeholder: "Filter by node or reason", "aria-label": "Filter nodes of the explanation",
      oninput: (event) => filter(event.target.value) }), list);
}
