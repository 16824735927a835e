/**
 * The page's data about the cluster, with change events for views.
 *
 *     stream / api ──▶ store ──"overview" | "nodes" | "rows" | "queue"──▶ views
 */

import { percent } from "./format.js";

/**
 * @typedef {{allocatable: number[], requested: number[]}} Column
 * @typedef {{version: number, names: string[], zones: string[], unschedulable: number[], ready: number[],
 *   taints: number[], pods: number[], resources: Record<string, Column>}} Nodes
 */

class Store extends EventTarget {
  /** @type {any} */ overview = null;
  /** @type {Nodes | null} */ nodes = null;
  /** @type {any} */ queue = null;
  /** name → row @type {Map<string, number>} */ rows = new Map();
  /** what nodes are grouped by: a label and its value of each node; null for zones @type {{key: string, values: Record<string, string>} | null} */ grouping = null;

  setOverview(overview) {
    this.overview = overview;
    this.dispatchEvent(new CustomEvent("overview"));
  }

  /** @param {Nodes} nodes */
  setNodes(nodes) {
    this.nodes = nodes;
    this.rows = new Map(nodes.names.map((name, row) => [name, row]));
    this.dispatchEvent(new CustomEvent("nodes"));
  }

  /** Group nodes by a label, or by zone. @param {{key: string, values: Record<string, string>} | null} grouping */
  setGrouping(grouping) {
    this.grouping = grouping;
    if (this.nodes) this.dispatchEvent(new CustomEvent("nodes"));
  }

  /** The group that a node is shown in; "" if it has none. @param {number} row */
  placeOf(row) {
    return this.grouping ? this.grouping.values[this.nodes.names[row]] ?? "" : this.nodes.zones[row];
  }

  setQueue(queue) {
    this.queue = queue;
    this.dispatchEvent(new CustomEvent("queue"));
  }

  /**
   * Take rows that changed. @param {Omit<Nodes, "version">} changed @param {number} version
   * @returns {boolean} whether all of them were known: if not, reload everything
   */
  update(changed, version) {
    const { nodes } = this;
    if (!nodes) return false;
    const rows = changed.names.map((name) => this.rows.get(name));
    if (rows.includes(undefined)) return false;
    for (const key of ["zones", "unschedulable", "ready", "taints", "pods"]) {
      if (changed[key]) rows.forEach((row, place) => { nodes[key][row] = changed[key][place]; });
    }
    for (const [resource, column] of Object.entries(changed.resources ?? {})) {
      const known = nodes.resources[resource];
      if (!known) return false;
      for (const [key, values] of Object.entries(column)) {
        rows.forEach((row, place) => { known[key][row] = values[place]; });
      }
    }
    nodes.version = version;
    this.dispatchEvent(new CustomEvent("rows", { detail: rows }));
    return true;
  }
}

export const store = new Store();

/** The fullest of all resources. */
export const FULLEST = "*";

/**
 * How much of a node's resource is requested; NaN if it has none.
 * @param {Nodes} nodes @param {string} resource @param {number} row
 */
export function share(nodes, resource, row) {
  if (resource === FULLEST) {
    let most = NaN;
    for (const { allocatable, requested } of Object.values(nodes.resources)) {
      const of = requested[row] / allocatable[row];
      if (allocatable[row] > 0 && !(of <= most)) most = of;
    }
    return most;
  }
  const column = nodes.resources[resource];
  return column && column.allocatable[row] > 0 ? column.requested[row] / column.allocatable[row] : NaN;
}

/** How much is requested on some nodes together. @returns {string} */
export function percentOf(nodes, resource, rows) {
  const all = resource === FULLEST ? null : nodes.resources[resource];
  let [part, whole] = [0, 0];
  for (const row of rows) {
    part += all ? all.requested[row] : share(nodes, resource, row) || 0;
    whole += all ? all.allocatable[row] : 1;
  }
  return whole ? percent(part / whole) : "none";
}

/** What is special about a node, in words. @param {Nodes} nodes @param {number} row @returns {string[]} */
export function marks(nodes, row) {
  const found = [];
  if (!nodes.ready[row]) found.push("not ready");
  if (nodes.unschedulable[row]) found.push("cordoned");
  if (nodes.taints[row]) found.push(nodes.taints[row] === 1 ? "1 taint" : `${nodes.taints[row]} taints`);
  return found;
}
