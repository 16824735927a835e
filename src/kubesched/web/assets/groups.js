/** Groups of pods: how each stands, where its members are, and which of them wait. */

import { get, Latest } from "./api.js";
import { el, failure, loading, meter, muted, reconcile, show, table } from "./dom.js";
import { changes, placements } from "./explanation.js";
import { age, count, plural } from "./format.js";
import { highlight } from "./nodes.js";
import { groupHref, nodeLink, podLink } from "./route.js";
import { store } from "./store.js";

const STYLE = { scheduled: "placed", unschedulable: "unschedulable", pending: "active" };

/** Show all groups and keep them up to date. @param {HTMLElement} view @returns {() => void} ends it */
export function open(view) {
  const list = el("div");
  show(view, el("h2.hidden", "Groups"), list);
  function render() {
    const { groups } = store.queue;
    if (!groups.length) return void show(list, el("p.empty", "There are no groups of pods."));
    list.querySelector(":scope > .empty")?.remove();
    reconcile(list, groups, (group) => `${group.namespace}/${group.name}`, card);
  }
  store.addEventListener("queue", render);
  render();
  return () => {
    store.removeEventListener("queue", render);
    highlight(null);
  };
}

/** A group in a list; pointing at it brings its nodes out on the map. @returns {HTMLElement} */
export function card(group, element) {
  // What has not changed stays, and with it the focus.
  const said = JSON.stringify(group);
  if (element?.dataset.said === said) return element;
  const bring = () => highlight(group.nodes.length ? group.nodes : null);
  element ??= el("article.group");
  element.dataset.said = said;
  element.onpointerenter = bring;
  element.onpointerleave = () => highlight(null);
  show(element, el("header.line", badge(group), el("b", el("a", { href: groupHref(group.namespace, group.name), onfocus: bring, onblur: () => highlight(null) },
    muted(`${group.namespace}/`), group.name)), muted(facts(group))), placed(group), group.message && el("p.message", group.message));
  return element;
}

const badge = ({ state }) => el(`span.badge.${STYLE[state]}`, state);

/** What kind of group it is, in words. */
function facts({ policy, minCount, pods, priority, topology }) {
  return [policy === "gang" && `gang of at least ${count(minCount)}`, plural(pods, "pod"),
    topology.length && `in one ${topology.join(", ")}`, priority && `priority ${priority}`].filter(Boolean).join(" · ");
}

const placed = ({ placed: number, pods, nodes }) => el("div", el("p.muted", `${count(number)} of ${count(pods)} placed`,
  nodes.length > 0 && ` on ${plural(nodes.length, "node")}`), pods > 0 && meter(number / pods));

/** Show one group. @param {HTMLElement} view @param {string} namespace @param {string} name @returns {() => void} ends it */
export function openOne(view, namespace, name) {
  const [latest, asking] = [new Latest(), new Latest()];
  let shown = "";
  async function load() {
    try {
      const group = await latest.run((signal) => get(["groups", namespace, name], {}, signal));
      if (!group || JSON.stringify(group) === shown) return;
      shown = JSON.stringify(group);
      highlight(group.nodes.length ? group.nodes : null);
      const more = el("div", group.state !== "scheduled" && loading("Trying every placement…"));
      show(view, render(group, more));
      if (group.state !== "scheduled") explain(more);
    } catch (error) {
      show(view, el("h2", `${namespace}/${name}`), failure(error, load));
    }
  }
  async function explain(place) {
    try {
      const said = await asking.run((signal) => get(["groups", namespace, name, "explanation"], {}, signal));
      if (said) show(place, said.text && el("p", said.text), placements(said), changes(said), said.notes?.map((each) => el("p.muted", `Note: ${each}`)));
    } catch (error) {
      show(place, failure(error, () => explain(place)));
    }
  }
  const again = () => { if (!view.contains(document.activeElement)) load(); };
  store.addEventListener("queue", again);
  show(view, loading(`Loading ${namespace}/${name}…`));
  load();
  return () => {
    store.removeEventListener("queue", again);
    latest.cancel();
    asking.cancel();
    highlight(null);
  };
}

function render(group, more) {
  const now = Date.parse(store.overview.time) || Date.now();
  return el("article", el("header.line", el("h2", muted(`${group.namespace}/`), group.name)),
    el("p.outcome", badge(group), " ", facts(group), group.since && ` · created ${age(group.since, now)} ago`), placed(group),
    group.message && el("blockquote.message", group.message),
    /\d+ scheduled/.test(group.message) && el("p.muted", "In the message, “scheduled” counts the members that found a node in the last attempt. They are bound only if enough do."), more,
    el("h3", plural(group.members.length, "member")),
    group.members.length > 0 && table("Members of the group", ["Pod", "Node", "Why it waits"], group.members.map((member) => [
      podLink(`${group.namespace}/${member.name}`), member.node ? nodeLink(member.node) : muted("none"), why(member.message, group.message)])));
}

/** What a member says; most say no more than the group. */
const why = (message, ofGroup) => (ofGroup && message.includes(ofGroup) ? muted("as the group") : message);

/** The group of a pod, in one line. */
export const groupLine = (group) => el("span", el("a", { href: groupHref(group.namespace, group.name) }, group.name), " ", badge(group), " ",
  muted(`${facts(group)}; ${count(group.placed)} placed`));
