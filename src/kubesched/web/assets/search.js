/** Finds any pod or node by a part of its name; a combobox. */

import { get, Latest } from "./api.js";
import { byId, el, muted, quiet, show } from "./dom.js";
import { go, nodeHref, podHref } from "./route.js";
import { store } from "./store.js";

const NODES = 5;
const PODS = 20;
const WAIT_MS = 150;

/** Put the search into its place; "/" jumps to it. */
export function start() {
  const latest = new Latest();
  const list = el("ul.found", { id: "found", role: "listbox", "aria-label": "Found", hidden: true });
  const input = el("input", { type: "search", placeholder: "Find a pod or node", "aria-label": "Find a pod or node", role: "combobox",
    autocomplete: "off", spellcheck: "false", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list",
    oninput: () => { clearTimeout(timer); timer = setTimeout(ask, WAIT_MS); }, onblur: () => unfold(false), onkeydown: key });
  let timer = 0;
  let chosen = -1;
  show(byId("search"), input, el("kbd", quiet, "/"), list);

  function unfold(open) {
    list.hidden = !open;
    input.setAttribute("aria-expanded", String(open));
    if (open) return;
    latest.cancel();
    clearTimeout(timer);
  }
  function choose(next) {
    const options = list.querySelectorAll("[role=option]");
    if (!options.length) return;
    chosen = (next + options.length) % options.length;
    options.forEach((each, at) => each.setAttribute("aria-selected", String(at === chosen)));
    input.setAttribute("aria-activedescendant", options[chosen].id);
    options[chosen].scrollIntoView({ block: "nearest" });
  }
  function open(target) {
    input.value = "";
    input.blur();
    go(target);
  }
  async function ask() {
    const search = input.value.trim();
    if (!search) return void unfold(false);
    const nodes = store.nodes.names.filter((each) => each.includes(search)).slice(0, NODES).map((name) => [name, "node", nodeHref(name)]);
    try {
      const answer = await latest.run((signal) => get(["pods"], { search, limit: PODS }, signal));
      if (!answer) return;
      const pods = answer.pods.map(({ namespace, name, node }) => [`${namespace}/${name}`, node || "no node", podHref(namespace, name)]);
      render([...pods, ...nodes], "Nothing has this in its name.");
    } catch (error) {
      render(nodes, error.message);
    }
  }
  function render(found, otherwise) {
    chosen = -1;
    input.removeAttribute("aria-activedescendant");
    show(list, found.map(([name, about, target], at) => el("li", { role: "option", id: `found-${at}`, "aria-selected": "false", "data-target": target,
      onpointerdown: (event) => { event.preventDefault(); open(target); } }, name, muted(about))), !found.length && el("li.muted", otherwise));
    unfold(true);
  }
  function key(event) {
    if (event.key === "Escape") unfold(false);
    else if (event.key === "Enter") {
      const option = list.querySelectorAll("[role=option]")[Math.max(0, chosen)];
      if (option && !list.hidden) open(option.dataset.target);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(event.key === "ArrowDown" ? chosen + 1 : Math.max(chosen, 0) - 1);
    }
  }
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select")) return;
    event.preventDefault();
    input.focus();
  });
}
