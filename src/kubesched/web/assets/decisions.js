/** The feed of decisions: which pod went where, how good that is, or why not, after how long; newest first. */

import { get, Latest } from "./api.js";
import { el, failure, muted, reconcile, show } from "./dom.js";
import { clock, count, milliseconds, plural, short } from "./format.js";
import { highlight } from "./nodes.js";
import { href, nodeLink, podLink } from "./route.js";
import { store } from "./store.js";

const SHOWN = 50;
const ORDINALS = new Intl.PluralRules("en", { type: "ordinal" });

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
      const { total, decisions: { length } } = said;
      summary.textContent = total ? `${length < total ? `The last ${count(length)} of ${plural(total, "decision")}` : total === 1 ? "One decision" : `All ${count(total)} decisions`}${store.overview.recording ? " up to here" : " since the page's server started"}`
        : store.overview.source === "snapshot" ? "A snapshot has no decisions: it is one moment." : "No decision has been seen yet.";
      update(said);
      // In a recording, decisions are evaluated again, which takes a moment.
      if (!store.overview.recording || !said.total) return;
      const graded = await latest.run((signal) => get(["decisions"], { limit: SHOWN, graded: true }, signal));
      if (graded) update(graded);
    } catch (error) {
      show(problem, failure(error, load));
    }
  }
  function update(said) {
    reconcile(list, said.decisions, (each) => `${each.number} ${each.namespace}/${each.name}`, (each, item) => {
      const shown = item ?? row(each);
      if (each.grade) show(shown.querySelector(".grade"), goodness(each.grade));
      return shown;
    });
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
  const fit = node && feasible > 1 && `${count(feasible)} of ${plural(evaluated, "node")} fit`;
  const waited = waitedS !== null && `${store.overview.recording ? milliseconds(1000 * waitedS) : `${short(waitedS)} s`}${node ? "" : " so far"}`;
  const facts = [waited, attempts > 1 && `${count(attempts)} tries`, fit].filter(Boolean).join(" · ");
  return el("li", node && { onpointerenter: () => highlight([node]), onpointerleave: () => highlight(null) },
    store.overview.recording ? el("a.time", { href: href(["decisions"], { at: each.number }), title: "Go to this moment" }, time) : el("span.time.muted", time),
    el("div.line", podLink(`${each.namespace}/${each.name}`), node ? ["→ ", nodeLink(node)] : el("span.badge.unschedulable", "no node"), !node && muted(facts)),
    node && el("div.line", el("span.grade"), muted(facts)),
    message && el("p.message", message));
}

/** How good a node is for a pod: its place among the nodes that fit, its points, and its lead. */
function goodness({ feasible, total, possible, better, equal, margin }) {
  if (feasible === 1) return "the only node that fits";
  const points = total === null ? "" : `: ${count(total)} of ${count(possible)} points`;
  if (better) return `${ordinal(better + 1)} of ${plural(feasible, "node")}${points}, ${count(-margin)} behind`;
  if (equal) return `${equal + 1 === feasible ? `all ${count(feasible)} nodes` : `${count(equal + 1)} of ${plural(feasible, "node")}`} equally good${points}`;
  return `best of ${plural(feasible, "node")}${points}${margin ? `, ${count(margin)} ahead` : ""}`;
}

function ordinal(number) {
  const ending = { one: "st", two: "nd", few: "rd", other: "th" }[ORDINALS.select(number)];
  return `${count(number)}${ending}`;
}
