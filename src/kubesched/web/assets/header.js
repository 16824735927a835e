/** Title, pod counts, rate, latency and use of all nodes at the top of the page. */

import { byId, el, muted, quiet, show, svg } from "./dom.js";
import { count, milliseconds, plural, resourceName, short } from "./format.js";
import { href } from "./route.js";
import { percentOf, store } from "./store.js";

const TOTALS = 3;
const [WIDTH, HEIGHT] = [96, 26];
const MEANING = {
  placed: "have a node",
  active: "will be tried next",
  backoff: "wait before the next try",
  unschedulable: "fit on no node as things are",
  gated: "are held back by scheduling gates",
  unclaimed: "name a scheduler that no profile is for",
};

/** Start showing the overview. */
export function start() {
  const counts = Object.entries(MEANING).map(([state, meaning]) => ({ state, meaning, value: el("b.value", { "data-stat": state }) }));
  const [rate, spark, median, tail, totals] = [el("b.value", { id: "rate" }), el("span"), el("b.value"), el("span.muted"), el("dd")];
  const stat = (style, title, heading, ...inner) => el(`div.stat${style}`, { title }, el("dt", heading), el("dd", inner));
  show(byId("stats"),
    counts.map(({ state, meaning, value }) => stat("", `pods that ${meaning}`, [el(`span.dot.${state}`, quiet), state[0].toUpperCase() + state.slice(1)],
      state === "placed" ? value : el("a", { href: href(["queue"], { state }) }, value))),
    stat(".wide", "placements in the last minute", "Pods per second", rate, spark), stat(".wide", "how long attempts took in the last minute", "Attempt", median, tail),
    el("div.stat.totals", el("dt", "Requested of all nodes"), totals));

  store.addEventListener("overview", () => {
    const { title, nodes, version, schedulerNames, pods, rate: now, latency } = store.overview;
    const heading = byId("title");
    heading.textContent = title || plural(nodes, "node");
    heading.title = `kubesched ${version}, ${schedulerNames.join(", ")}`;
    document.title = `${heading.textContent} · kubesched`;
    for (const { state, value } of counts) value.textContent = count(pods[state]);
    rate.textContent = now ? short(now.perSecond) : "–";
    show(spark, now && sparkline(now.history));
    median.textContent = milliseconds(latency?.p50Ms);
    tail.textContent = latency?.p99Ms ? `p99 ${milliseconds(latency.p99Ms)}` : "";
    if (store.nodes) show(totals, used(store.nodes));
  });
}

/** How much of each resource that is in use is requested on all nodes. */
function used(nodes) {
  const rows = nodes.names.map((_, row) => row);
  const [cpu, memory, ...others] = Object.keys(nodes.resources).map((resource) => [resource, percentOf(nodes, resource, rows)]);
  // Of the others, the scarcest.
  others.sort((a, b) => parseFloat(b[1]) - parseFloat(a[1]));
  return [cpu, memory, ...others].filter((each) => each && (each[1] !== "0%" || each === cpu || each === memory)).slice(0, TOTALS)
    .map(([resource, value]) => el("span", el("b.value", value), " ", muted(resourceName(resource))));
}

/** A small line of numbers, oldest first. @param {number[]} values */
function sparkline(values) {
  const highest = Math.max(1, ...values);
  const step = WIDTH / Math.max(1, values.length - 1);
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${(HEIGHT - 2 - (value / highest) * (HEIGHT - 4)).toFixed(1)}`).join(" ");
  return svg("svg.spark", { width: WIDTH, height: HEIGHT, role: "img", "aria-label": `at most ${short(highest)} a second` },
    svg("polygon", { points: `0,${HEIGHT} ${points} ${WIDTH},${HEIGHT}` }), svg("polyline", { points }));
}
