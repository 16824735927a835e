/** The what-if form. The question is in the URL, so that it can be shared. */

import { Latest, whatIf } from "./api.js";
import { answer } from "./answers.js";
import { el, failure, loading, show } from "./dom.js";
import { highlight } from "./nodes.js";
import { go, href } from "./route.js";
import { store } from "./store.js";

const KINDS = {
  headroom: ["Headroom", "How many more pods like this one fit?"],
  manifest: ["New pod", "Where would a pod go that is not there yet, and why?"],
  add: ["Add nodes", "Would more nodes place what waits?"],
  drain: ["Drain", "Where would the pods of these nodes go?"],
  loss: ["Loss", "What becomes of the pods if this fails?"],
};
const OFFERED = 30;
/** Too long for an address; kept while the page is open. */
let manifest = `apiVersion: v1
kind: Pod
metadata: {name: example, namespace: default}
spec:
  containers:
  - name: main
    image: example
    resources: {requests: {cpu: "2", memory: 4Gi}}
`;

/** @param {HTMLElement} view @param {URLSearchParams} query @returns {() => void} ends it */
export function open(view, query) {
  const latest = new Latest();
  const kind = query.get("kind") in KINDS ? query.get("kind") : "headroom";
  const result = el("div.result", { "aria-live": "polite" });
  const form = el("form", { onsubmit: submit }, fields(kind, query),
    el("button.primary", { type: "submit" }, "Find out"));
  show(view, el("h2.hidden", "What if"),
    el("nav.reasons", { "aria-label": "Kinds of questions" }, Object.entries(KINDS).map(([key, [title]]) =>
      el("a.chip", { href: href(["what-if"], { kind: key }), "aria-current": key === kind ? "true" : null }, title))),
    el("p", KINDS[kind][1]), form, result);

  function submit(event) {
    event.preventDefault();
    if (kind === "manifest") ask({ kind, manifest });
    else go(href(["what-if"], { kind, ...Object.fromEntries(new FormData(form)) }));
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
  if (kind === "headroom" && text("pod").includes("/")) {
    const [namespace, name] = text("pod").split("/");
    return { kind, namespace, name };
  }
  if (kind === "add" && text("like")) return { kind, count: Number(text("count")) || 1, like: text("like") };
  if (kind === "drain" && text("nodes")) return { kind, nodes: text("nodes").split(/[\s,]+/) };
  if (kind === "loss" && text("node")) return { kind, node: text("node") };
  return kind === "loss" && text("zone") ? { kind, zone: text("zone") } : null;
}

function fields(kind, query) {
  const names = () => store.nodes?.names ?? [];
  const pods = () => (store.queue?.pods ?? []).map((each) => `${each.namespace}/${each.name}`);
  const text = (name, title, properties, offers) => offering(title,
    el("input", { name, value: query.get(name) ?? "", autocomplete: "off", spellcheck: "false", ...properties }), offers);
  const keep = (event) => { manifest = event.target.value; };
  switch (kind) {
    case "headroom": return text("pod", "Pod", { placeholder: "namespace/name" }, pods);
    case "manifest": return labelled("Manifest of a pod", el("textarea", { name: "manifest", rows: 10, spellcheck: "false", value: manifest, oninput: keep }));
    case "add": return [text("count", "How many", { type: "number", min: 1, max: 1000, value: query.get("count") ?? 3 }), text("like", "Like node", {}, names)];
    case "drain": return text("nodes", "Nodes", { placeholder: "node-1, node-2" }, names);
    default: {
      const zones = ["", ...new Set(store.nodes?.zones ?? [])];
      return [labelled("Zone", el("select", { name: "zone" }, zones.map((zone) => el("option", { value: zone, selected: zone === query.get("zone") }, zone || "–")))),
        text("node", "or one node", {}, names)];
    }
  }
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
