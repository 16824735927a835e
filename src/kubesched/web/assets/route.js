/**
 * Where we are, in the part of the address after #: `#/pod/shop/web?at=17` → `{path: ["pod", "shop", "web"], query}`.
 * `at`, the place in a recording, stays when the view changes.
 */

import { el, muted } from "./dom.js";

/** @typedef {{path: string[], query: URLSearchParams}} Route */

/** @returns {Route} */
export function current() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

/**
 * Write an address, in the moment that is shown. @param {string[]} path
 * @param {Record<string, string | number | null | undefined>} [query] what is empty is left out
 */
export function written(path, query = {}) {
  const all = Object.entries({ at: place(), ...query }).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return path.map(encodeURIComponent).join("/") + (all.length ? `?${new URLSearchParams(all)}` : "");
}

/** What each view takes after "?", beside the moment; one value of a list, or any. */
const TAKES = {
  queue: { state: ["active", "backoff", "unschedulable", "gated", "unclaimed"], plugin: null, namespace: null, workload: null },
  "what-if": { kind: ["headroom", "apply", "ungate", "add", "drain", "loss"], pod: null, gates: null, count: null, like: null, nodes: null, zone: null, node: null },
};

/** What is wrong with the address's query, in a sentence; "" if nothing. @returns {string} */
export function wrong() {
  const { path: [view = "queue"], query } = current();
  const takes = { at: null, ...TAKES[view] };
  for (const [key, value] of query) {
    if (!(key in takes)) return `There is no “${key}” at #/${view}, only ${Object.keys(takes).join(", ")}.`;
    if (takes[key] && !takes[key].includes(value)) return `There is no ${key} “${value}” at #/${view}, only ${takes[key].join(", ")}.`;
  }
  return "";
}

/** The address of a view. @param {string[]} path @param {Parameters<typeof written>[1]} [query] */
export const href = (path, query) => `#/${written(path, query)}`;

/** The place in a recording that the address names. @returns {string | undefined} */
export const place = () => current().query.get("at") ?? undefined;

/** Stay in the view, at another moment. @param {number} at */
export function moveTo(at) {
  const { path, query } = current();
  history.replaceState(null, "", href(path, { ...Object.fromEntries(query), at }));
}

/** @param {string} target */
export function go(target) {
  if (location.hash === target) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = target;
}

export const podHref = (namespace, name) => href(["pod", namespace, name]);
export const groupHref = (namespace, name) => href(["group", namespace, name]);
export const nodeHref = (name) => href(["node", name]);

/** @param {string} name */
export const nodeLink = (name) => el("a", { href: nodeHref(name) }, name);

/** @param {string} pod "namespace/name" */
export function podLink(pod) {
  const [namespace, name] = pod.split("/");
  return el("a", { href: podHref(namespace, name) }, muted(`${namespace}/`), name);
}
