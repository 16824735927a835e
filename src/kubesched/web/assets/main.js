/**
 * Puts the page together: first everything once, then the stream (or, for a recording, the time bar)
 * keeps the store up to date; the address says which view is open, and which moment of a recording.
 */

import { get } from "./api.js";
import { byId, el, failure, show } from "./dom.js";
import * as decisions from "./decisions.js";
import * as explanation from "./explanation.js";
import { clock, count } from "./format.js";
import * as groups from "./groups.js";
import * as header from "./header.js";
import * as nodes from "./nodes.js";
import * as nodeview from "./nodeview.js";
import * as queue from "./queue.js";
import { current, href, moveTo, place, wrong } from "./route.js";
import * as search from "./search.js";
import { store } from "./store.js";
import { follow } from "./stream.js";
import { bindToggle } from "./theme.js";
import * as timebar from "./timebar.js";
import * as whatif from "./whatif.js";

const FIXED = { recording: "Recording", snapshot: "Snapshot" };
const stacked = matchMedia("(max-width: 900px)");
/** ends the view that is open */
let close = () => {};
/** the moment of a recording that is shown */
let shown;
let trouble = "";
/** the state of the connection to the page's server */
let connection = "";

/** Load everything as it is, or as it was at the moment in the address. */
async function load() {
  shown = place();
  const [overview, all, waiting] = await Promise.all([get(["overview"]), get(["nodes"]), get(["queue"])]);
  store.setNodes(all);
  store.setOverview(overview);
  store.setQueue(waiting);
}

async function begin() {
  try {
    await load();
  } catch (error) {
    show(byId("nodes-view"), failure(error, begin));
    // A moment that the recording does not have is left by any link.
    show(byId("view"), el("p.empty", "Nothing to show.", place() !== undefined && [" ", el("a", { href: "#/queue" }, "Go without the moment in the address")]));
    addEventListener("hashchange", begin, { once: true });
    return;
  }
  openView();
  addEventListener("hashchange", navigate);
  const fixed = FIXED[store.overview.source];
  if (fixed) link("fixed", fixed);
  else follow(report);
}

/** The address changed: go there, in the moment that is shown unless it names another. */
async function navigate() {
  if (shown !== undefined && place() === undefined) moveTo(Number(shown));
  if (place() !== shown) await travel();
  else openView();
  byId("panel").scrollTop = 0;
  // Below the nodes, it would be out of sight.
  if (stacked.matches) byId("panel").scrollIntoView();
}

async function travel() {
  try {
    await load();
    notice("");
    openView();
  } catch (error) {
    notice(`${error.message}; what you see is another moment.`);
  }
}

function openView() {
  const { path: [kind = "queue", ...rest], query } = current();
  const view = byId("view");
  const problem = wrong();
  close();
  tabs(kind);
  if (problem) close = nowhere(view, problem);
  else if (kind === "pod" && rest.length === 2) close = explanation.open(view, rest[0], rest[1]);
  else if (kind === "node" && rest.length === 1) close = nodeview.open(view, rest[0]);
  else if (kind === "group" && rest.length === 2) close = groups.openOne(view, rest[0], rest[1]);
  else if (kind === "what-if") close = whatif.open(view, query);
  else if (kind === "groups") close = groups.open(view);
  else if (kind === "decisions") close = decisions.open(view);
  else if (kind === "queue") close = queue.open(view, query);
  else close = nowhere(view, `There is nothing at ${location.hash}.`);
}

/** The address is wrong. @param {HTMLElement} view @param {string} problem */
function nowhere(view, problem) {
  show(view, el("h2.hidden", "Wrong address"), el("div.failure", { role: "alert" }, el("p", problem), el("p", el("a", { href: href(["queue"]) }, "To the queue"))));
  return () => {};
}

function tabs(kind) {
  const tab = (title, name, target = href([name])) => el("a", { href: target, "aria-current": name === kind ? "page" : null }, title);
  show(byId("tabs"), tab(["Queue ", el("b", { id: "waiting" }, count(store.queue.total))], "queue"),
    tab("Decisions", "decisions"), (store.queue.groups.length > 0 || kind === "groups") && tab(["Groups ", el("b", { id: "groups" }, count(store.queue.groups.length))], "groups"),
    store.overview.whatIf && tab("What if", "what-if"),
    kind === "pod" && tab("Pod", "pod", location.hash), kind === "group" && tab("Group", "group", location.hash), kind === "node" && tab("Node", "node", location.hash));
}

function report(state, retryMs) {
  connection = state;
  showLink();
  notice(state === "lost" ? `The connection is lost; what you see may be old. Trying again in ${Math.ceil(retryMs / 1000)} s.` : "");
  // For good, if the server ended or another one is in its place.
  if (state === "lost") get(["overview"]).catch((error) => { if (trouble) notice(`${error.message} What you see is old.`); });
}

/** Show whether the data is live: the server may be up, and the cluster behind it not. */
function showLink() {
  const stale = connection === "live" && store.overview?.stale;
  if (stale) link("stale", `Stale since ${clock(stale.since)}`);
  else link(connection, { connecting: "Connecting", live: "Live", lost: "Offline" }[connection]);
}

function link(state, text) {
  byId("link").dataset.state = state;
  byId("link").textContent = text;
}

/** Show errors of the page and notes of the server. @param {string} text */
function notice(text) {
  trouble = text;
  const stale = store.overview?.stale;
  const old = stale && `The API server is not heard of since ${clock(stale.since)}, what you see is as it was then: ${stale.why}`;
  const all = [text, old, ...(store.overview?.notes ?? [])].filter(Boolean).join(" · ");
  const bar = byId("notice");
  if (bar.textContent !== all) bar.textContent = all;
  bar.hidden = !all;
}

store.addEventListener("overview", () => {
  notice(trouble);
  if (connection) showLink();
});
store.addEventListener("queue", () => {
  if (byId("waiting")) byId("waiting").textContent = count(store.queue.total);
  if (byId("groups")) byId("groups").textContent = count(store.queue.groups.length);
  else if (store.queue.groups.length) tabs(current().path[0] ?? "queue");
});
byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("panel").focus(); });
bindToggle(byId("theme"));
header.start();
nodes.start();
search.start();
timebar.start(travel);
begin();
