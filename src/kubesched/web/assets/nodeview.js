/** One node: its resources, labels, taints and pods. */

import { get, Latest } from "./api.js";
import { el, failure, loading, meter, muted, show, table } from "./dom.js";
import { count, percent, plural } from "./format.js";
import { highlight } from "./nodes.js";
import { href, podLink } from "./route.js";
import { share, store } from "./store.js";

const RESOURCES = 4;

/** @param {HTMLElement} view @param {string} name @returns {() => void} ends it */
export function open(view, name) {
  const latest = new Latest();
  async function load() {
    try {
      const node = await latest.run((signal) => get(["nodes", name], {}, signal));
      if (node) show(view, render(node));
    } catch (error) {
      show(view, el("h2", name), failure(error, load));
    }
  }
  const changed = (event) => { if (event.detail.includes(store.rows.get(name)) && !view.contains(document.activeElement)) load(); };
  store.addEventListener("rows", changed);
  highlight([name]);
  show(view, loading(`Loading ${name}…`));
  load();
  return () => {
    store.removeEventListener("rows", changed);
    latest.cancel();
    highlight(null);
  };
}

function render(node) {
  const row = store.rows.get(node.name);
  const resources = Object.entries(node.resources).map(([resource, { allocatable, requested }]) => {
    const of = row === undefined ? NaN : share(store.nodes, resource, row);
    return [resource, el("td.gauge", Number.isNaN(of) ? "" : meter(of)), Number.isNaN(of) ? "" : percent(of), requested, allocatable];
  });
  const names = [...new Set(node.pods.flatMap((pod) => Object.keys(pod.requests ?? {})))].slice(0, RESOURCES);
  const ask = (title, query) => el("a.small", { href: href(["what-if"], query) }, title);
  return el("article", el("header.line", el("h2", node.name), el("span.actions", ask("Drain it?", { kind: "drain", nodes: node.name }),
      ask("Lose it?", { kind: "loss", node: node.name }), ask("One more?", { kind: "add", count: 1, like: node.name }))),
    el("p", el("span.muted", node.zone || "no zone"), node.unschedulable && el("span.badge.backoff", "cordoned"),
      node.ready === false && el("span.badge.unschedulable", "not ready"), node.taints.map((each) => el("span.badge", each))),
    table("Resources", ["Resource", "", ">Share", ">Requested", ">Allocatable"], resources),
    el("details", el("summary", plural(Object.keys(node.labels).length, "label")),
      el("ul.labels", Object.entries(node.labels).map(([key, value]) => el("li", muted(`${key}=`), value)))),
    node.devices.map(devices),
    el("h3", plural(node.pods.length, "pod")),
    node.pods.length > 0 && table("Pods of the node", ["Pod", ">Priority", ...names.map((each) => `>${each}`)],
      node.pods.map((pod) => [podLink(`${pod.namespace}/${pod.name}`), pod.priority ?? 0, ...names.map((each) => pod.requests?.[each] ?? "–")])));
}

/** The devices of one pool, and the claims and pods that have them. */
function devices({ driver, pool, shared, total, allocated, devices: every }) {
  return el("section.devices", el("h3", plural(total, "device"), muted(` of ${driver}, pool ${pool}${shared ? ", shared with other nodes" : ""}`)),
    el("p", `${count(allocated)} allocated, ${count(total - allocated)} free`), meter(total ? allocated / total : 0),
    table(`Devices of ${driver} in ${pool}`, ["Device", "Claim", "Pod"], every.map((each) => [each.name, each.claims.join(", ") || muted("free"), each.pods.map((pod) => el("div", podLink(pod)))])));
}
