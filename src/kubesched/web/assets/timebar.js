/** Time travel: where in a recording the page is, and how to go elsewhere. */

import { byId, el, muted, show, svg } from "./dom.js";
import { clock, count } from "./format.js";
import { moveTo } from "./route.js";
import { store } from "./store.js";

const PLAY_MS = 400;

/** @param {() => Promise<void>} reload loads everything as it was at the place in the address */
export function start(reload) {
  const bar = byId("timebar");
  let playing = 0;
  let busy = false;
  let wanted = null;

  const slider = el("input", { type: "range", min: 0, step: 1, "aria-label": "Place in the recording", oninput: () => jump(Number(slider.value)) });
  const label = el("p.clock");
  const bars = svg("svg.timeline", { preserveAspectRatio: "none", "aria-hidden": "true" });
  const now = () => Number(slider.value);
  const button = (title, text, to) => el("button.small", { "aria-label": title, title, onclick: () => { stop(); jump(to()); } }, text);
  const decision = (key) => () => store.overview.recording[key] ?? now();
  const play = el("button.small", { onclick: () => (playing ? stop() : run()) });
  show(bar, el("div.line", button("To the start", "«", () => 0), button("The decision before", "‹ decision", decision("previousDecision")), play,
    button("The next decision", "decision ›", decision("nextDecision")), button("To the end", "»", () => Infinity),
    el("span.segments", { role: "group", "aria-label": "Single entries" }, button("One entry back", "‹ entry", () => now() - 1), button("One entry on", "entry ›", () => now() + 1))),
  el("div.track", bars, slider), label);

  /** Go to an entry; while a request is pending only the last target counts. */
  async function jump(at) {
    wanted = Math.max(Number(slider.min), Math.min(Number(slider.max), at));
    slider.value = String(wanted);
    if (busy) return;
    busy = true;
    while (wanted !== null) {
      moveTo(wanted);
      wanted = null;
      await reload();
    }
    busy = false;
  }
  /** The next decision to show when playing; of very many, only some are. */
  const following = () => store.overview.recording.steps.find((each) => each > now());
  function run() {
    if (following() === undefined) jump(0);
    playing = setInterval(() => {
      if (busy) return;
      const next = following();
      if (next === undefined) return stop();
      jump(next);
    }, PLAY_MS);
    caption();
  }
  function stop() {
    clearInterval(playing);
    playing = 0;
    caption();
  }
  const caption = () => { play.textContent = playing ? "Pause" : "Play"; };
  function render() {
    const { recording, time } = store.overview;
    bar.hidden = !recording;
    if (!recording) return;
    [slider.min, slider.max] = [String(recording.first), String(recording.entries)];
    if (wanted === null) slider.value = String(recording.at);
    const place = `${clock(time)} · decision ${count(recording.decision)} of ${count(recording.decisions)}`;
    const entry = `Entry ${count(recording.at)} of ${count(recording.entries)}${recording.entry && `: ${recording.entry}`}`;
    slider.setAttribute("aria-valuetext", `${place}. ${entry}`);
    show(label, place, recording.at < recording.first && " · during the first listing", " ", muted(entry));
    timeline(bars, recording);
  }
  caption();
  store.addEventListener("overview", render);
}

function timeline(bars, { timeline: counts, at, first, entries }) {
  const highest = Math.max(1, ...counts);
  const past = ((at - first) / Math.max(1, entries - first)) * counts.length;
  bars.setAttribute("viewBox", `0 0 ${counts.length} 100`);
  show(bars, counts.map((number, x) => {
    const height = (100 * number) / highest;
    return svg(x < past ? "rect.past" : "rect", { x, width: 0.8, y: 100 - height, height });
  }));
}
