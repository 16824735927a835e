"""5,000 nodes: drawn soon, and never in the way of whoever looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from .cluster_api import ClusterApi
from .conftest import OpenPage
from .processes import Served, serving

NODES = 5000
PODS = 120
MOST_MS_TO_DRAW = 5000
MOST_MS_OF_FRAME = 200
#: Other work on the machine may hold up a frame; it does not hold up all of several.
ATTEMPTS = 3

_WATCH_FRAMES = """() => {
  window.longest = 0;
  let last = performance.now();
  const frame = (now) => {
    window.longest = Math.max(window.longest, now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
#: Hold up a frame on purpose, to see that it would be noticed.
_BLOCK = "ms => { const end = performance.now() + ms; while (performance.now() < end); }"


@pytest.fixture(scope="module")
def large() -> Iterator[Served]:
    with serving("demo", "--keep", "--nodes", str(NODES), "--pods", "100") as served:
        yield served


def test_5000_nodes_are_drawn_soon_and_updated_smoothly(
    open_page: OpenPage, large: Served, record_property: Callable[[str, object], None]
) -> None:
    page = open_page(large.address)
    drawn_ms = page.evaluate("performance.now()")
    expect(page.locator("canvas")).to_have_attribute("data-drawn", str(NODES))
    expect(page.locator("#link")).to_have_text("Live")
    page.evaluate(_WATCH_FRAMES)
    page.evaluate(_BLOCK, 2 * MOST_MS_OF_FRAME)
    page.wait_for_function("most => window.longest > most", arg=MOST_MS_OF_FRAME)
    api = ClusterApi(large.api)
    longest = []
    for attempt in range(ATTEMPTS):
        page.evaluate("window.longest = 0")
        placed = int(page.locator("[data-stat=placed]").inner_text().replace(",", ""))
        for number in range(PODS):
            requests = {"requests": {"cpu": "2"}}
            api.create_pod(f"more-{attempt}-{number}", resources=requests)
        expect(page.locator("[data-stat=placed]")).to_have_text(f"{placed + PODS:,}", timeout=9000)
        page.wait_for_timeout(300)
        longest.append(page.evaluate("window.longest"))
        if longest[-1] <= MOST_MS_OF_FRAME:
            break

    record_property("drawn_ms", drawn_ms)
    record_property("longest_frame_ms", longest)
    print(f"{NODES} nodes: drawn after {drawn_ms:.0f} ms, longest frame {min(longest):.0f} ms")
    assert drawn_ms < MOST_MS_TO_DRAW
    assert min(longest) <= MOST_MS_OF_FRAME
