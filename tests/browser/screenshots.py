"""Takes the pictures of the documentation: python -m tests.browser.screenshots docs/images

A demo is made to look like a cluster in use: nodes that are fuller than others, a few cordoned.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from .cluster_api import ClusterApi
from .conftest import launched
from .processes import serving

NODES = 300
_PICTURES = (
    ("web-light.png", "#/pod/default/oversized-00001", "light", 1440, 900),
    ("web-dark.png", "#/queue", "dark", 1440, 900),
    ("web-scores.png", "#/pod/default/web-00001", "light", 1440, 900),
    ("web-what-if.png", "#/what-if?kind=loss&zone=region-1/zone-b", "dark", 1440, 900),
    ("web-group.png", "#/group/default/pretrain", "dark", 1440, 900),
    ("web-devices.png", "#/node/node-0299", "light", 1440, 900),
    ("web-phone.png", "#/queue", "light", 400, 860),
)


def main(folder: Path) -> None:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with serving("demo", "--keep", "--nodes", str(NODES), "--pods", "2000") as served:
        _use(ClusterApi(served.api))
        with sync_playwright() as playwright, launched(playwright) as browser:
            for name, view, scheme, width, height in _PICTURES:
                picture = _take(browser, served.address + view, scheme, width, height)
                (folder / name).write_bytes(picture)


def _use(api: ClusterApi) -> None:
    """Put something on most nodes, whatever a scheduler would say."""
    rng = random.Random(7)
    for number in range(NODES):
        share = rng.betavariate(1.6, 1.9)
        amounts = {"cpu": f"{int(13000 * share)}m", "memory": f"{int(50 * share)}Gi"}
        api.create_pod(
            f"store-{number:04}",
            nodeName=f"node-{number:04}",
            resources={"requests": amounts},
        )
    for number in (17, 44, 121, 203):
        api.patch(f"/api/v1/nodes/node-{number:04}", {"spec": {"unschedulable": True}})


def _take(browser: Browser, address: str, scheme: str, width: int, height: int) -> bytes:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("canvas[data-drawn]")
    page.wait_for_selector("#view h2")
    page.wait_for_selector(".loading", state="detached")
    # Cells that changed a moment ago have a ring.
    page.wait_for_timeout(2500)
    picture = page.screenshot()
    context.close()
    return picture


if __name__ == "__main__":
    main(Path(sys.argv[1]))
