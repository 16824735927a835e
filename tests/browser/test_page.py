"""The page loads, from its own server alone, and says how the cluster is."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, expect

import kubesched

from .conftest import NODES, OpenPage
from .processes import Served

ASSETS = Path(kubesched.__file__).parent / "web" / "assets"
MOST_BYTES = 144 * 1024
MOST_BYTES_OF_PICTURE = 300_000


def test_counts_rate_and_latency_are_in_the_header(page: Page) -> None:
    expect(page.locator("h1")).to_contain_text(f"{NODES} nodes")
    expect(page).to_have_title(re.compile("kubesched"))
    expect(page.locator("#link")).to_have_text("Live")
    placed = int(page.locator("[data-stat=placed]").inner_text().replace(",", ""))
    waiting = int(page.locator("[data-stat=unschedulable]").inner_text())

    assert placed > 1900
    assert waiting > 0
    expect(page.locator("#rate")).to_have_text(re.compile(r"[\d,.]+"))
    assert page.locator(".spark polyline").get_attribute("points")


def test_the_token_does_not_stay_in_the_address(page: Page, demo: Served) -> None:
    assert demo.token not in page.url
    assert page.evaluate("document.cookie") == ""


def test_policy_allows_nothing_inline_and_nothing_from_elsewhere(demo: Served) -> None:
    request = urllib.request.Request(  # noqa: S310 (loopback)
        demo.page, headers={"Authorization": f"Bearer {demo.token}"}
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        policy = answer.headers["Content-Security-Policy"]

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_files_are_few_and_never_parse_text_as_html() -> None:
    files = [each for each in ASSETS.iterdir() if each.is_file()]
    text = {each.name: each.read_text() for each in files}
    parsing = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(")
    elsewhere = re.compile(r"https?://(?!www\.w3\.org/2000/svg)")

    assert [name for name, each in text.items() if parsing.search(each)] == []
    assert [name for name, each in text.items() if elsewhere.search(each)] == []
    assert " style=" not in text["index.html"]
    assert sum(each.stat().st_size for each in files) < MOST_BYTES


def test_pictures_of_the_documentation_are_there_and_small() -> None:
    folder = Path(__file__).resolve().parents[2] / "docs"
    shown = re.findall(r"\((images/[\w-]+\.png)\)", (folder / "web.md").read_text())

    assert shown
    for name in shown:
        picture = (folder / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < MOST_BYTES_OF_PICTURE


def test_follows_the_system_and_keeps_a_choice_of_colours(
    open_page: OpenPage, demo: Served
) -> None:
    page = open_page(demo.address, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)

    page.get_by_role("button", name="Use light colours").click()

    light = page.evaluate(background)
    assert _lightness(dark) < 60
    assert _lightness(light) > 200
    page.reload()
    page.wait_for_selector("canvas[data-drawn]")
    assert page.evaluate(background) == light


def _lightness(colour: str) -> float:
    values = [float(each) for each in re.findall(r"[\d.]+", colour)[:3]]
    return sum(values) / 3


def test_back_goes_from_a_pod_to_the_queue(page: Page) -> None:
    page.locator(".group a").first.click()
    expect(page.locator("#panel h2")).to_contain_text("default/")
    page.go_back()

    expect(page.locator("#tabs a").first).to_have_attribute("aria-current", "page")
    expect(page.locator(".group").first).to_be_visible()
