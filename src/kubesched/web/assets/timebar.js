/** Time travel: where in a recording the page is, and how to go elsewhere. */

import { byId, el, show, svg } from "./dom.js";
import { clock, count } from "./format.js";
import { moveTo } from "./route.js";
import { store } from "./store.js";

const PLAY_STEPS = 120;
const PLAY_MS = 400;

/** @param {() => Promise<void>} reload loads everything as it was at the place in the address */
export function start(reload) {
  const bar = byId("timebar");
  let playing = 0;
  let busy = false;
  let wanted = null;

  const slider = el("input", { type: "range", min: 0, step: 1, "aria-label": "Place in the recording", oninput: () => jump(Number(slider.value)) });
  const label = el("output.clock");
  const bars = svg("svg.timeline", { preserveAspectRatio: "none", "aria-hidden": "true" });
  const step = (title, text, to) => el("button.small", { "aria-label": title, title, onclick: () => { stop(); jump(to(Number(slider.value))); } }, text);
  const play = el("button.small", { onclick: () => (playing ? stop() : run()) });
  show(bar, el("div.line", step("To the start", "«", () => 0), step("One entry back", "‹", (at) => at - 1), play,
    step("One entry on", "›", (at) => at + 1), step("To the end", "»", () => Infinity)),
  el("div.track", bars, slider), label);

  /** Go to an entry; while a request is pending only the last target counts. */
  async function jump(at) {
    wanted = Math.max(0, Math.min(Number(slider.max), at));
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
  function run() {
    if (Number(slider.value) >= Number(slider.max)) jump(0);
    playing = setInterval(() => {
      if (busy) return;
      if (Number(slider.value) >= Number(slider.max)) return stop();
      jump(Number(slider.value) + Math.max(1, Math.round(Number(slider.max) / PLAY_STEPS)));
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
    slider.max = String(recording.entries);
    if (wanted === null) slider.value = String(recording.at);
    const text = `${clock(time)} · entry ${count(recording.at)} of ${count(recording.entries)}`;
    slider.setAttribute("aria-valuetext", text);
    label.textContent = text;
    timeline(bars, recording);
  }
  caption();
  store.addEventListener("overview", render);
}

function timeline(bars, { timeline: counts, at, entries }) {
  const highest = Math.max(1, ...counts);
  const past = (at / Math.max(1, entries)) * counts.length;
  bars.setAttribute("viewBox", `0 0 ${counts.length} 100`);
  show(bars, counts.map((number, x) => {
    const height = (100 * number) / highest;
    return svg(x < past ? "rect.past" : "rect", { x, width: 0.8, y: 100 - height, height });
  }));
}
