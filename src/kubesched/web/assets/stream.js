/**
 * The live connection: events of the server go to the store. When it breaks, it comes back by itself
 * and goes on from the version of the nodes that the page has.
 */

import { get } from "./api.js";
import { store } from "./store.js";

const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 10000;
/** An overview comes every second. */
const SILENCE_MS = 20000;

/** newest version of the nodes that an event spoke of */
let newest = 0;
let loading = false;

/**
 * Follow the cluster until the page goes.
 * @param {(link: "connecting" | "live" | "lost", retryInMs: number) => void} report
 */
export function follow(report) {
  let wait = FIRST_RETRY_MS;

  function connect() {
    let silence = 0;
    const source = new EventSource(`api/stream?version=${store.nodes.version}`);
    newest = 0;
    const lost = () => {
      source.close();
      clearTimeout(silence);
      report("lost", wait);
      setTimeout(connect, wait);
      wait = Math.min(2 * wait, LAST_RETRY_MS);
    };
    const on = (kind, take) => source.addEventListener(kind, (event) => {
      clearTimeout(silence);
      silence = setTimeout(lost, SILENCE_MS);
      take(JSON.parse(event.data));
    });
    source.onerror = lost;
    source.onopen = () => {
      wait = FIRST_RETRY_MS;
      report("live", 0);
    };
    on("overview", (data) => store.setOverview(data));
    on("queue", (data) => store.setQueue(data));
    on("nodes", ({ version, changed, reload }) => {
      newest = version;
      if (reload || !store.update(changed, version)) loadNodes();
    });
  }

  report("connecting", 0);
  connect();
}

/** Load all nodes; again, if meanwhile an event told of something newer. */
async function loadNodes() {
  if (loading) return;
  loading = true;
  try {
    let nodes;
    do nodes = await get(["nodes"]); while (nodes.version < newest);
    store.setNodes(nodes);
  } catch { /* the connection broke again, and says so itself */ } finally {
    loading = false;
  }
}
