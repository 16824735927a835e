"""axe-core has no finding on any view at any size in either theme, and a phone shows all of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from .conftest import OpenPage
from .processes import Served

SIZES = {"phone": (390, 844), "laptop": (1280, 800), "large": (1920, 1080)}
#: The address of a view → what is there when it is complete.
VIEWS = {
    "#/queue": ".group",
    "#/queue?state=gated": ".chip[aria-current]",
    "#/decisions": ".feed li",
    "#/groups": "article.group",
    "#/group/default/pretrain": "table",
    "#/pod/default/oversized-00000": ".changes",
    "#/pod/default/web-00001": ".scores",
    "#/pod/default/gated-00000": ".scores",
    "#/node/node-0299": ".devices",
    "#/what-if": "form",
    "#/what-if?kind=headroom&pod=default/web-00001": ".result .figure",
    "#/what-if?kind=apply": "textarea",
    "#/what-if?kind=ungate&pod=default/gated-00000": ".result .outcome",
    "#/what-if?kind=add&count=1&like=node-0285": ".result .figure",
    "#/what-if?kind=drain&nodes=node-0285": ".result .figure",
    "#/what-if?kind=loss&zone=zone-a": ".result .figure",
    "#/queue?colour=red": ".failure",
    "#/pod/default/nobody": ".failure",
}

#: Tables that do not fit between the edges; that of all nodes has as many columns as resources.
TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll(".wide-table")]
  .filter((box) => box.scrollWidth > box.clientWidth)
  .map((box) => box.querySelector("caption").textContent)"""

axe = Axe()


def findings(page: Page) -> list[str]:
    """What axe-core objects to: rule, element, and what is wrong with it."""
    found: list[dict[str, Any]] = axe.run(page).response["violations"]
    return [
        f"{each['id']}: {where['target']}: {where['failureSummary']}"
        for each in found
        for where in each["nodes"]
    ]


def visited(page: Page) -> Iterator[str]:
    """Go to each view, and then to what has no address of its own."""
    for view, there in VIEWS.items():
        page.evaluate("target => { location.hash = target; }", view)
        expect(page.locator("#view").locator(there).first).to_be_attached()
        expect(page.locator(".loading")).to_have_count(0)
        yield view
    page.get_by_role("button", name="Table").click()
    expect(page.locator("table.grid tbody tr").first).to_be_attached()
    yield "the table of nodes"
    page.keyboard.press("/")
    page.keyboard.type("web-0000")
    expect(page.locator(".found [role=option]").first).to_be_visible()
    yield "results of a search"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_view_has_findings(open_page: OpenPage, demo: Served, size: str, scheme: str) -> None:
    width, height = SIZES[size]
    # A pod that is not there is a request that fails, which the browser mentions.
    page = open_page(
        demo.address,
        complains="404",
        viewport={"width": width, "height": height},
        color_scheme=scheme,
    )

    assert {view: found for view in visited(page) if (found := findings(page))} == {}


def test_nothing_is_wider_than_a_phone(open_page: OpenPage, demo: Served) -> None:
    width, height = SIZES["phone"]
    page = open_page(demo.address, complains="404", viewport={"width": width, "height": height})

    assert {view: found for view in visited(page) if (found := page.evaluate(TOO_WIDE))} == {}


def test_a_finding_would_be_found(page: Page) -> None:
    page.evaluate("document.querySelector('#resource').removeAttribute('aria-label')")

    assert [each for each in findings(page) if each.startswith("select-name: ['#resource']")]
