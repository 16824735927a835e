/** The what-if form. The question is in the URL, so that it can be shared; a manifest is too long for that. */

import { get, Latest, whatIf } from "./api.js";
import { answer } from "./answers.js";
import { el, failure, loading, muted, show } from "./dom.js";
import { highlight } from "./nodes.js";
import { go, href } from "./route.js";
import { store } from "./store.js";

const KINDS = {
  headroom: ["Headroom", "How many more pods like this one fit?"],
  apply: ["New workload", "Do the pods of a manifest fit, where would they go, and which pods would they preempt?"],
  ungate: ["Remove gates", "Where would a gated pod go without its scheduling gates?"],
  add: ["Add nodes", "Would more nodes place what waits?"],
  drain: ["Drain", "Where would the pods of these nodes go?"],
  loss: ["Loss", "What becomes of the pods if this fails?"],
};
const OFFERED = 30;
/** What was written last, as long as the page is open. */
const workload = {
  manifest: `apiVersion: apps/v1
kind: Deployment
metadata: {name: example, namespace: default}
spec:
  replicas: 40
  template:
    spec:
      containers:
      - name: main
        image: example
        resources: {requests: {cpu: "2", memory: 4Gi}}
`,
  replicas: "",
};

/** @param {HTMLElement} view @param {URLSearchParams} query @returns {() => void} ends it */
export function open(view, query) {
  const latest = new Latest();
  const kind = query.get("kind") ?? "headroom";
  const result = el("div.result", { "aria-live": "polite" });
  const form = el("form", { onsubmit: submit }, fields(kind, query),
    el("button.primary", { type: "submit" }, "Find out"));
  show(view, el("h2.hidden", "What if"),
    el("nav.reasons", { "aria-label": "Kinds of questions" }, Object.entries(KINDS).map(([key, [title]]) =>
      el("a.chip", { href: href(["what-if"], { kind: key }), "aria-current": key === kind ? "true" : null }, title))),
    el("p", KINDS[kind][1]), form, result);

  function submit(event) {
    event.preventDefault();
    const given = new FormData(form);
    if (kind === "apply") ask({ kind, manifest: workload.manifest, replicas: Number(workload.replicas.replace("+", "")) || null, more: workload.replicas.startsWith("+") });
    else if (kind === "ungate") go(href(["what-if"], { kind, pod: given.get("pod"), gates: given.getAll("gates").join() }));
    else go(href(["what-if"], { kind, ...Object.fromEntries(given) }));
  }
  async function ask(question) {
    show(result, loading("Playing it through…"));
    highlight(null);
    try {
      const said = await latest.run((signal) => whatIf(question, signal));
      if (said) show(result, answer(kind, said));
    } catch (error) {
      show(result, failure(error, null));
    }
  }
  const question = questionOf(kind, query);
  if (question) ask(question);
  return () => { latest.cancel(); highlight(null); };
}

/** The question in the URL; null if there is none. */
function questionOf(kind, query) {
  const text = (key) => (query.get(key) ?? "").trim();
  if ((kind === "headroom" || kind === "ungate") && text("pod").includes("/")) {
    const [namespace, name] = text("pod").split("/");
    return kind === "headroom" ? { kind, namespace, name } : { kind, namespace, name, gates: text("gates").split(",").filter(Boolean) };
  }
  if (kind === "add" && text("like")) return { kind, count: Number(text("count")) || 1, like: text("like") };
  if (kind === "drain" && text("nodes")) return { kind, nodes: text("nodes").split(/[\s,]+/) };
  if (kind === "loss" && text("node")) return { kind, node: text("node") };
  return kind === "loss" && text("zone") ? { kind, zone: text("zone") } : null;
}

function fields(kind, query) {
  const names = () => store.nodes?.names ?? [];
  const waiting = (wanted) => () => (store.queue?.pods ?? []).filter(wanted).map((each) => `${each.namespace}/${each.name}`);
  const text = (name, title, properties, offers) => offering(title,
    el("input", { name, value: query.get(name) ?? "", autocomplete: "off", spellcheck: "false", ...properties }), offers);
  switch (kind) {
    case "headroom": return text("pod", "Pod", { placeholder: "namespace/name", required: true }, waiting(() => true));
    case "apply": return manifest();
    case "ungate": return gates(query, text("pod", "Gated pod", { placeholder: "namespace/name", required: true }, waiting((each) => each.state === "gated")));
    case "add": return [text("count", "How many", { type: "number", min: 1, max: 1000, value: query.get("count") ?? 3 }), text("like", "Like node", { required: true }, names)];
    case "drain": return text("nodes", "Nodes", { placeholder: "node-1, node-2", required: true }, names);
    default: {
      const zones = ["", ...new Set(store.nodes?.zones ?? [])];
      // The server takes a zone without its region, too.
      const asked = (zone) => query.get("zone") && [zone, zone.split("/").at(-1)].includes(query.get("zone"));
      return [labelled("Zone", el("select", { name: "zone" }, zones.map((zone) => el("option", { value: zone, selected: asked(zone) }, zone || "–")))),
        text("node", "or one node", {}, names)];
    }
  }
}

/** A manifest, pasted or of a file, and how many pods to try. */
function manifest() {
  const text = el("textarea", { name: "manifest", rows: 12, spellcheck: "false", required: true, value: workload.manifest, oninput: () => { workload.manifest = text.value; } });
  const read = async (event) => {
    const [file] = event.target.files;
    if (file) workload.manifest = text.value = await file.text();
  };
  return [labelled("Manifest of a Deployment, a DaemonSet, a Job, a pod, or anything else with a pod template, with its pod groups and claims", text),
    labelled("or of a file", el("input", { type: "file", accept: ".yaml,.yml,.json", onchange: read })),
    labelled("Replicas", el("input", { name: "replicas", inputmode: "numeric", pattern: "[+]?[1-9][0-9]{0,4}", title: "A number, or for example +40 for 40 more than there are", placeholder: "as in the manifest; +40 for 40 more", value: workload.replicas,
      oninput: (event) => { workload.replicas = event.target.value; } }))];
}

/** A pod, and which of its gates to remove: those that the pod has are offered once it is named. */
function gates(query, field) {
  const choices = el("fieldset", { hidden: true });
  const latest = new Latest();
  const input = field.querySelector("input");
  const chosen = (query.get("gates") ?? "").split(",").filter(Boolean);
  async function offer() {
    const [namespace, name] = input.value.trim().split("/");
    choices.hidden = true;
    if (!name) return;
    const pod = await latest.run((signal) => get(["pods", namespace, name], {}, signal)).catch(() => null);
    choices.hidden = !pod;
    if (pod) show(choices, el("legend", pod.gates.length ? "Gates to remove" : muted("It has no gates.")), pod.gates.map((gate) =>
      el("label.line", el("input", { type: "checkbox", name: "gates", value: gate, checked: !chosen.length || chosen.includes(gate) }), gate)));
  }
  input.addEventListener("change", offer);
  offer();
  return [field, choices];
}

const labelled = (title, ...inputs) => el("label", el("span", title), inputs);

/** An input with suggestions; a limited number, as there may be thousands of nodes. */
function offering(title, input, offers) {
  if (!offers) return labelled(title, input);
  const list = el("datalist", { id: `offers-${input.name}` });
  input.setAttribute("list", list.id);
  const fill = () => {
    const typed = input.value.split(/[\s,]+/).pop();
    const before = input.value.slice(0, input.value.length - typed.length);
    show(list, offers().filter((each) => each.includes(typed)).slice(0, OFFERED).map((each) => el("option", { value: before + each })));
  };
  input.addEventListener("input", fill);
  input.addEventListener("focus", fill);
  return labelled(title, input, list);
}
