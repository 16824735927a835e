/** The feed of decisions: which pod went where or why not, after how long, newest first. */

import { get, Latest } from "./api.js";
import { el, failure, muted, reconcile, show } from "./dom.js";
import { clock, count, milliseconds, plural, short } from "./format.js";
import { highlight } from "./nodes.js";
import { href, nodeLink, podLink } from "./route.js";
import { store } from "./store.js";

const SHOWN = 50;

/** Show the feed and keep it up to date. @param {HTMLElement} view @returns {() => void} ends it */
export function open(view) {
  const latest = new Latest();
  // Not announced: on a busy cluster it changes every second.
  const summary = el("p.muted");
  const list = el("ol.feed");
  const problem = el("div");
  show(view, el("h2.hidden", "Decisions"), summary, problem, list);
  async function load() {
    try {
      const said = await latest.run((signal) => get(["decisions"], { limit: SHOWN }, signal));
      if (!said) return;
      show(problem);
      summary.textContent = said.total ? `The last ${count(said.decisions.length)} of ${plural(said.total, "decision")}${store.overview.recording ? " up to here" : " seen since the page's server runs"}`
        : store.overview.source === "snapshot" ? "A snapshot has no decisions: it is one moment." : "No decision has been seen yet.";
      reconcile(list, said.decisions, (each) => `${each.number} ${each.namespace}/${each.name}`, (each, item) => item ?? row(each));
    } catch (error) {
      show(problem, failure(error, load));
    }
  }
  store.addEventListener("overview", load);
  load();
  return () => {
    store.removeEventListener("overview", load);
    latest.cancel();
    highlight(null);
  };
}

function row(each) {
  const { node, message, waitedS, attempts, evaluated, feasible } = each;
  const time = clock(each.time);
  const facts = [node && feasible && `best of ${plural(feasible, "node")}${evaluated > feasible ? ` that fit, of ${count(evaluated)}` : ""}`,
    waitedS !== null && `${store.overview.recording ? milliseconds(1000 * waitedS) : `${short(waitedS)} s`}${node ? "" : " so far"}`, attempts > 1 && `${count(attempts)} tries`].filter(Boolean).join(" · ");
  return el("li", node && { onpointerenter: () => highlight([node]), onpointerleave: () => highlight(null) },
    el("div.line", store.overview.recording ? el("a.time", { href: href(["decisions"], { at: each.number }), title: "Go to this moment" }, time) : el("span.time.muted", time),
      podLink(`${each.namespace}/${each.name}`), node ? ["→ ", nodeLink(node)] : el("span.badge.unschedulable", "no node"), muted(facts)),
    message && el("p.message", message));
}
