/**
 * What to type to make a change that an explanation proposes.
 *
 * `set` has whole new values of fields; a patch merges. Where merging would keep what is to go, the
 * patch says "replace". Most fields of a pod never change once it exists: those belong into the
 * template that it was made from.
 */

/** Fields that may change in a pod that is there already. */
const CHANGEABLE = new Set(["tolerations"]);
/** Maps that a patch would merge key by key. */
const MAPS = new Set(["nodeSelector", "affinity"]);
/** Lists that a patch would merge by a key of their elements. */
const KEYED_LISTS = new Set(["topologySpreadConstraints"]);

/**
 * @param {any} change of an explanation @param {string} pod "namespace/name"
 * @returns {{note: string, command: string} | null}
 */
export function remedy(change, pod) {
  const [namespace, name] = pod.split("/");
  if (change.kind === "uncordon" && change.examples?.length) {
    return { note: "Makes the nodes available again.", command: `kubectl uncordon ${change.examples.map(quoted).join(" ")}` };
  }
  const commands = (change.evict ?? []).map((victim) => {
    const [where, who] = victim.pod.split("/");
    return `kubectl -n ${quoted(where)} delete pod ${quoted(who)}`;
  });
  const fields = Object.keys(change.set ?? {});
  if (!fields.length) {
    return commands.length ? { note: "Its owner makes a new one, if it has one.", command: commands.join("\n") } : null;
  }
  const spec = patchOf(change.set);
  const nodesToo = /^(uncordon|bring back)| and (uncordon|bring back) /.test(change.title) ? "Besides what is to be done to nodes: " : "";
  const inPlace = fields.every((field) => CHANGEABLE.has(field));
  const patch = inPlace ? { spec } : { spec: { template: { spec } } };
  const target = inPlace ? `pod ${quoted(name)}` : "deployment NAME";
  commands.push(`kubectl -n ${quoted(namespace)} patch ${target} --type=strategic -p ${quoted(JSON.stringify(patch), true)}`);
  return {
    note: nodesToo + (inPlace ? "Can be changed in the pod as it is."
      : "A pod cannot change these fields: change what it was made from (a Deployment, a StatefulSet, a Job…)."),
    command: commands.join("\n"),
  };
}

/** A strategic merge patch that sets exactly these fields. @param {Record<string, any>} set */
function patchOf(set) {
  return Object.fromEntries(Object.entries(set).map(([field, value]) => {
    if (value && MAPS.has(field)) return [field, { $patch: "replace", ...value }];
    if (value && KEYED_LISTS.has(field)) return [field, [...value, { $patch: "replace" }]];
    if (value && /ontainers$/.test(field)) return [field, value.map(container)];
    return [field, value];
  }));
}

const container = (each) => (each.ports ? { ...each, ports: [...each.ports, { $patch: "replace" }] } : each);

/** As one word of a shell. @param {string} text @param {boolean} [always] */
function quoted(text, always = false) {
  return !always && /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
