/** Pending pods with reasons; pods with the same reason are grouped. */

import { get, Latest } from "./api.js";
import { el, failure, muted, reconcile, show } from "./dom.js";
import { age, count, plural } from "./format.js";
import { card } from "./groups.js";
import { go, href, podLink } from "./route.js";
import { store } from "./store.js";

const SEARCH_LIMIT = 1000;
const SEARCH_WAIT_MS = 200;
const SHOWN_IN_GROUP = 40;

/**
 * Show the queue and keep it up to date. @param {HTMLElement} view @param {URLSearchParams} query
 * @returns {() => void} ends it
 */
export function open(view, query) {
  const [state, plugin, namespace, workload] = ["state", "plugin", "namespace", "workload"].map((key) => query.get(key));
  const narrowed = { state, plugin, namespace, workload };
  const latest = new Latest();
  /** the server's answer, where what the stream brings is not enough */
  let searched = null;
  let timer = 0;
  const later = () => { clearTimeout(timer); timer = setTimeout(refresh, SEARCH_WAIT_MS); };
  const input = el("input", { type: "search", placeholder: "Search waiting pods", "aria-label": "Search waiting pods", oninput: later });
  const reasons = el("ul.reasons", { "aria-label": "Waiting pods by plugin" });
  const summary = el("p.muted", { role: "status" });
  const filters = [["namespace", "All namespaces", namespace], ["workload", "All workloads", workload]].map(([key, all, chosen]) => ({ key, all, chosen,
    select: el("select", { "aria-label": all, onchange: (event) => go(href(["queue"], { ...narrowed, [key]: event.target.value })) }) }));
  const gangs = el("div");
  const groups = el("div");
  const problem = el("div");
  show(view, el("h2.hidden", "Queue"), reasons, el("div.line", input, filters.map(({ select }) => select), summary), problem, gangs, groups);

  async function refresh() {
    const search = input.value.trim();
    const enough = !search && !(Object.values(narrowed).some(Boolean) && store.queue.total > store.queue.pods.length);
    try {
      searched = enough ? null : await latest.run((signal) => get(["queue"], { search, limit: SEARCH_LIMIT }, signal)) ?? searched;
      show(problem);
      render(searched ?? store.queue);
    } catch (error) {
      show(problem, failure(error, refresh));
    }
  }

  function render(queue) {
    const chips = store.queue.reasons.map((each) => [each.plugin, count(each.pods), plugin === each.plugin, { ...narrowed, plugin: plugin === each.plugin ? undefined : each.plugin }]);
    if (state) chips.push([`only ${state}`, "×", true, { ...narrowed, state: undefined }]);
    reconcile(reasons, chips, ([label]) => label, renderChip);
    for (const filter of filters) offer(filter, queue.pods);
    const pods = queue.pods.filter((pod) => (!state || pod.state === state) && (!plugin || pod.plugins.includes(plugin))
      && (!namespace || pod.namespace === namespace) && (!workload || pod.workload === workload));
    const waiting = store.queue.groups.filter((group) => group.state !== "scheduled" && (!namespace || group.namespace === namespace));
    reconcile(gangs, plugin || state || workload || input.value.trim() ? [] : waiting, (group) => `${group.namespace}/${group.name}`, card);
    const counted = store.queue.reasons.reduce((sum, each) => sum + each.pods, 0);
    summary.textContent = plural(pods.length, "pod")
      + (queue.total > queue.pods.length ? `, among the first ${count(queue.pods.length)} of ${count(queue.total)}: search for others` : "")
      + (counted > store.queue.total && !input.value.trim() ? "; above, a pod counts for each plugin that rejects it" : "");
    if (!pods.length) return void show(groups, el("p.empty", store.queue.total ? "No waiting pod is like this." : "Nothing waits: every pod has a node."));
    groups.querySelector(":scope > .empty")?.remove();
    reconcile(groups, grouped(pods), (group) => group.key, renderGroup);
  }

  store.addEventListener("queue", refresh);
  refresh();
  return () => {
    store.removeEventListener("queue", refresh);
    latest.cancel();
    clearTimeout(timer);
  };
}

/** Offer the values that pods have; a filter that has nothing to choose from is not there. */
function offer({ key, all, chosen, select }, pods) {
  const values = [...new Set([...pods.map((pod) => pod[key]), chosen ?? ""])].filter(Boolean).sort();
  select.hidden = values.length < 2 && !chosen;
  const known = [...select.options].slice(1).map((each) => each.value);
  if (known.join() !== values.join() || !select.options.length) show(select, ["", ...values].map((each) => el("option", { value: each }, each || all)));
  select.value = chosen ?? "";
}

/** @returns {HTMLElement} */
function renderChip([label, extra, mine, query], item) {
  item ??= el("li", el("a.chip", { href: href(["queue"], query), "aria-current": mine ? "true" : null }, label, el("b")));
  item.firstChild.lastChild.textContent = extra;
  return item;
}

function grouped(pods) {
  const groups = new Map();
  for (const pod of pods) {
    const key = `${pod.state}\n${pod.message}`;
    if (!groups.has(key)) groups.set(key, { ...pod, key, pods: [] });
    groups.get(key).pods.push(pod);
  }
  return [...groups.values()].sort((a, b) => b.pods.length - a.pods.length || (a.key < b.key ? -1 : 1));
}

/** @returns {HTMLElement} */
function renderGroup(group, element = el("article.group", el("header.line"), el("p.message"), el("ul.pods"), el("div"))) {
  const [head, message, list, more] = element.children;
  const { state, plugins, pods } = group;
  const shown = element.dataset.all ? pods : pods.slice(0, SHOWN_IN_GROUP);
  const now = Date.parse(store.overview.time) || Date.now();
  show(head, el(`span.badge.${state}`, state), el("b", plural(pods.length, "pod")), muted(plugins.join(", ")));
  message.textContent = group.message || "not tried yet";
  reconcile(list, shown, (pod) => `${pod.namespace}/${pod.name}`, (pod, item) => {
    item ??= el("li", podLink(`${pod.namespace}/${pod.name}`), el("span.muted"));
    item.lastChild.textContent = [age(pod.since, now), pod.attempts > 1 && `${pod.attempts} tries`, pod.priority && `priority ${pod.priority}`]
      .filter(Boolean).join(" · ");
    return item;
  });
  const showAll = () => { element.dataset.all = "1"; renderGroup(group, element); };
  show(more, shown.length < pods.length && el("button.small", { onclick: showAll }, `${count(pods.length - shown.length)} more`));
  return element;
}
