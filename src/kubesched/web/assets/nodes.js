/** The card of nodes: choice of resource and view, the map or the table, and the legend. */

import { get } from "./api.js";
import { byId, el, muted, quiet, show } from "./dom.js";
import { count } from "./format.js";
import { HeatMap } from "./heatmap.js";
import { NodeTable } from "./nodetable.js";
import { hideTip } from "./nodetip.js";
import { colour } from "./ramp.js";
import { go, nodeHref } from "./route.js";
import { FULLEST, store } from "./store.js";
import { isDark, onTheme } from "./theme.js";

let resource = "cpu";
const fullest = el("input", { type: "checkbox", onchange: () => map.refresh() });
const select = el("select", { id: "resource", "aria-label": "Resource", onchange: () => { resource = select.value; map.refresh(); } });
const grouping = el("select", { id: "grouping", "aria-label": "Group nodes by", onfocus: labels, onpointerdown: labels, onchange: group }, el("option", { value: "" }, "by zone"));
const filter = el("input", { type: "search", placeholder: "Filter by node or zone", "aria-label": "Filter nodes", oninput: () => table.setFilter(filter.value.trim()) });
const order = el("label", fullest, " fullest first");
const map = new HeatMap({ open: (node) => go(nodeHref(node)), resource: () => resource, fullestFirst: () => fullest.checked });
const table = new NodeTable();
/** what is shown: the map or the table */
let view = map;
const buttons = [[map, "Map"], [table, "Table"]].map(([which, title]) => el("button", { onclick: () => { view = which; showView(); } }, title));

/** Start showing nodes. */
export function start() {
  show(byId("nodes-tools"), order, grouping, select, filter, el("div.segments", { role: "group", "aria-label": "Show as" }, buttons));
  let known = "";
  store.addEventListener("nodes", () => {
    const names = store.nodes.names.join();
    if (store.grouping && names !== known) group();
    known = names;
    showView();
  });
  labels();
  store.addEventListener("rows", (event) => {
    if (view === map) map.drawRows(event.detail);
    else table.refresh();
    legend();
  });
  onTheme(() => { map.draw(); legend(); });
}

/** Bring out some nodes on the map; null for all. @param {Iterable<string> | null} names */
export const highlight = (names) => map.highlight(names);

function showView() {
  const place = byId("nodes-view");
  const asMap = view === map;
  buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(asMap === !at)));
  order.hidden = grouping.hidden = select.hidden = byId("legend").hidden = !asMap;
  filter.hidden = asMap;
  hideTip();
  if (!store.nodes?.names.length) return void (store.nodes && show(place, el("p.empty", "There are no nodes yet.")));
  offer(Object.keys(store.nodes.resources));
  if (view.element.parentNode !== place) show(place, view.element);
  view.refresh();
  legend();
}

/** Offer the labels that tell nodes apart. */
async function labels() {
  try {
    const { keys } = await get(["labels"]);
    const known = [...grouping.options].slice(1).map((each) => each.value);
    if (known.join() === keys.join()) return;
    const chosen = grouping.value;
    show(grouping, el("option", { value: "" }, "by zone"), keys.map((each) => el("option", { value: each }, `by ${each}`)));
    grouping.value = keys.includes(chosen) ? chosen : "";
  } catch { /* the choice stays as it is */ }
}

/** Group nodes by what was chosen; their labels are asked for again when nodes come or go. */
async function group() {
  const key = grouping.value;
  if (!key) return void store.setGrouping(null);
  try {
    store.setGrouping(await get(["labels"], { key }));
  } catch {
    grouping.value = "";
    store.setGrouping(null);
  }
}

/** Offer the resources that there are. @param {string[]} there */
function offer(there) {
  show(select, [...there, FULLEST].map((each) => el("option", { value: each }, each === FULLEST ? "fullest of all" : each)));
  if (resource !== FULLEST && !there.includes(resource)) resource = there[0] ?? FULLEST;
  select.value = resource;
}

function legend() {
  const { nodes } = store;
  if (!nodes) return;
  const steps = Array.from({ length: 11 }, (_, at) => el("span", { style: { background: colour(at / 10, isDark()).fill } }));
  const mark = (sign, title, values) => el("li", el("span.mark", quiet, sign), `${title} `, el("b", count(values.filter(Boolean).length)));
  show(byId("legend"),
    el("div.ramp", { role: "img", "aria-label": "Colours from nothing requested to all of it" }, muted("0%"), el("span.steps", steps), muted("100% requested")),
    el("ul", mark("◥", "tainted", nodes.taints), mark("▁", "cordoned", nodes.unschedulable), mark("×", "not ready", nodes.ready.map((each) => !each))));
}
