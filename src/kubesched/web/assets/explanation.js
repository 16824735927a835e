/** One pod explained: outcome, what would help, reasons, scores, preemption, and node by node. */

import { get, Latest } from "./api.js";
import { copyButton, el, failure, loading, meter, muted, show, table } from "./dom.js";
import { count, plural } from "./format.js";
import { highlight } from "./nodes.js";
import { href, nodeLink, podLink } from "./route.js";
import { scores } from "./scores.js";

const STYLE = { Schedulable: "placed", Gated: "gated" };

/**
 * Ask for an explanation and show it. @param {HTMLElement} view @param {string} namespace @param {string} name
 * @returns {() => void} ends it
 */
export function open(view, namespace, name) {
  const latest = new Latest();
  async function load() {
    // The same pod at another moment: what is there stays until the answer comes.
    if (view.querySelector("h2")?.textContent !== `${namespace}/${name}`) show(view, loading(`Evaluating ${namespace}/${name} on every node…`));
    try {
      const said = await latest.run((signal) => get(["pods", namespace, name, "explanation"], {}, signal));
      if (said) show(view, render(said, load));
    } catch (error) {
      show(view, el("h2", `${namespace}/${name}`), failure(error, load));
    }
  }
  load();
  return () => { latest.cancel(); highlight(null); };
}

/** @param {any} said the explanation @param {(() => void) | null} again @returns {HTMLElement} */
export function render(said, again) {
  if (said.scores?.length) highlight(said.scores.map((each) => each.node));
  const [namespace, name] = said.pod.split("/");
  return el("article", el("header.line", el("h2", muted(`${namespace}/`), name),
      again && el("span.actions", el("a.small", { href: href(["what-if"], { kind: "headroom", pod: said.pod }) }, "How many more fit?"),
        el("button.small", { onclick: again }, "Ask again"))),
    el("p.outcome", el(`span.badge.${STYLE[said.outcome] ?? "unschedulable"}`, said.outcome), " ", sentence(said)),
    said.message && el("blockquote.message", said.message),
    said.podReasons?.map((each) => el("p", el("b", each.plugin), `: ${each.text}`)),
    changes(said), reasons(said), scores(said), preemption(said), nodes(said),
    said.notes?.map((each) => el("p.muted", `Note: ${each}`)));
}

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

function changes(said) {
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

function reasons(said) {
  if (!said.reasons?.length) return null;
  return el("section", el("h3", "Why nodes were rejected"),
    table("Reasons, the nodes that have them, and the nodes of which each is the sole reason", ["Reason", ">Nodes", ">Sole reason", ""], said.reasons.map((each) => [
      [each.text, el("span.plugin", each.plugin), meter(each.nodes / said.totalNodes)], count(each.nodes), each.alone ? count(each.alone) : "–",
      said.nodes?.length > 0 && onMap(() => keptAway(said, each))])));
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
    : el("p", found.message || "Does not help."));
}

function nodes(said) {
  const all = said.nodes ?? [];
  if (!all.length) return null;
  const list = el("div");
  const filter = (text) => show(list, table("All reasons of each node", ["Node", "Verdict"], all
    .filter((each) => Object.values(each).some((value) => JSON.stringify(value).toLowerCase().includes(text.toLowerCase())))
    .map((each) => [nodeLink(each.node), each.feasible ? el("span.badge.placed", "fits")
      : each.reasons?.map((reason) => el("div", reason.text, el("span.plugin", reason.plugin, reason.resolvable && ", eviction may help")))])));
  return el("details.nodes-list", { ontoggle: (event) => { if (event.target.open && !list.firstChild) filter(""); } },
    el("summary", `Node by node (${count(all.length)}${said.nodesLeftOff ? `; ${count(said.nodesLeftOff)} more left off` : ""})`),
    el("input", { type: "search", placeholder: "Filter by node or reason", "aria-label": "Filter nodes of the explanation",
      oninput: (event) => filter(event.target.value) }), list);
}
