/** The pod itself: what it asks for, what it belongs to, its claims and its group. */

import { el, muted } from "./dom.js";
import { age } from "./format.js";
import { groupLine } from "./groups.js";
import { href, nodeHref } from "./route.js";
import { store } from "./store.js";

const STYLE = { pending: "active", missing: "unschedulable", allocated: "placed", reserved: "placed" };

/** @param {any} pod as the server tells of it @returns {HTMLElement} */
export function podInfo(pod) {
  const now = Date.parse(store.overview.time) || Date.now();
  const about = [pod.workload || "no controller", pod.created && `created ${age(pod.created, now)} ago`, `priority ${pod.priority}`, pod.schedulerName]
    .filter(Boolean).join(" · ");
  return el("section.about", el("p.muted", about), el("dl.facts",
    fact("Requests", Object.entries(pod.requests).map(([name, amount]) => el("span.item", muted(`${name} `), amount))),
    fact("Gates", pod.gates.map((each) => el("span.item", each, " ", !pod.node && el("a", { href: href(["what-if"], { kind: "ungate", pod: `${pod.namespace}/${pod.name}`, gates: each }), "aria-label": `Try without gate ${each}` }, "try without")))),
    fact("Demands", pod.demands.map((each) => el("div", each))),
    fact("Group", pod.group && groupLine(pod.group)),
    fact("Claims", pod.claims.map(claim)),
    fact("Labels", Object.entries(pod.labels).map(([key, value]) => el("span.item", muted(`${key}=`), value)))));
}

const fact = (title, content) => content && (!Array.isArray(content) || content.length > 0) && [el("dt", title), el("dd", content)];

function claim({ name, claim: object, state, requests, devices }) {
  const pools = devices.map((each) => each.split("/"));
  return el("div.claim", el(`span.badge.${STYLE[state]}`, state), " ", el("b", name), object && object !== name && muted(` ${object}`),
    requests.map((each) => el("div.code", each)),
    pools.map(([driver, ...rest]) => el("div", "→ ", device(driver, rest))));
}

/** A device; the pool of one that belongs to a node has the node's name. */
function device(driver, rest) {
  const [name, pool] = [rest.at(-1), rest.slice(0, -1).join("/")];
  return [store.rows.has(pool) ? el("a", { href: nodeHref(pool) }, pool) : pool, ` / ${name} `, muted(driver)];
}
