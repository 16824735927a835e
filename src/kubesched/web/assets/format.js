/** Numbers, amounts and times as people read them. */

const INTEGER = new Intl.NumberFormat("en-US");
const KIB = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/** @param {number} value */
export const count = (value) => INTEGER.format(value);

/** "1 node", "3 nodes". @param {number} number @param {string} noun */
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Three significant digits at most, and none that mean nothing. @param {number} value */
export function short(value) {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return count(Math.round(value));
  return String(Number(value.toFixed(size >= 10 ? 1 : 2)));
}

/** @param {number} share */
export const percent = (share) => `${Math.round(100 * share)}%`;

/**
 * An amount of a resource as the columns of nodes have it: milli-cores, bytes, or a count.
 * @param {string} resource @param {number} value
 */
export function amount(resource, value) {
  if (resource === "cpu") return short(value / 1000);
  if (isBytes(resource)) {
    let unit = 0;
    while (value >= 1024 && unit < KIB.length - 1) { value /= 1024; unit += 1; }
    return `${short(value)}${KIB[unit]}`;
  }
  return short(value);
}

const isBytes = (resource) => /^(memory|ephemeral-storage|hugepages-.*)$/.test(resource);

/** @param {number | null | undefined} value milliseconds */
export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  return value >= 1000 ? `${short(value / 1000)} s` : `${short(value)} ms`;
}

/** How long ago, in the largest unit that says something. @param {string} since @param {number} now */
export function age(since, now) {
  const seconds = Math.max(0, Math.round((now - Date.parse(since)) / 1000));
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 100) return `${seconds}s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)}m`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)}h`;
  return `${Math.round(seconds / 86400)}d`;
}

/** @param {string} time RFC 3339 */
export function clock(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toLocaleTimeString([], { hour12: false });
}

/** Short words for a resource. @param {string} resource */
export const resourceName = (resource) => resource.replace(/^.*\//, "");
