"""A recording can be looked at as it was at any moment of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from . import recorded
from .conftest import OpenPage
from .processes import Served, serving


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("recording") / "run.rec"
    recorded.record(path)
    with serving("ui", "--recording", str(path), "--no-browser") as served:
        yield served


def _placed(page: Page) -> int:
    return int(page.locator("[data-stat=placed]").inner_text())


def test_everything_on_the_page_follows_the_slider(open_page: OpenPage, recording: Served) -> None:
    page = open_page(recording.address)
    slider = page.get_by_label("Place in the recording")
    expect(page.locator("#link")).to_have_text("Recording")
    expect(page.locator(".timeline rect").first).to_be_attached()
    page.get_by_role("button", name="To the end").click()
    expect(page.locator("[data-stat=placed]")).to_have_text(str(recorded.PLACED))
    expect(page.locator("[data-stat=unschedulable]")).to_have_text(str(recorded.WAITING))
    expect(page.locator(".group")).to_contain_text("large-0")
    at_the_end = page.locator(".zone-label").first.inner_text()

    slider.fill(str(int(slider.get_attribute("max") or "0") // 2))

    expect(page.locator("[data-stat=placed]")).not_to_have_text(str(recorded.PLACED))
    expect(page).to_have_url(re.compile(r"at=\d+"))
    halfway = _placed(page)
    assert 0 < halfway < recorded.PLACED
    assert page.locator(".zone-label").first.inner_text() != at_the_end
    expect(page.locator(".group a", has_text="large-0")).to_have_count(0)
    page.reload()
    expect(page.locator("[data-stat=placed]")).to_have_text(str(halfway))


def test_a_pod_is_explained_as_of_then(open_page: OpenPage, recording: Served) -> None:
    page = open_page(recording.address)
    page.get_by_role("button", name="To the end").click()
    page.locator(".group a", has_text="large-0").click()

    expect(page.locator("blockquote.message")).to_contain_text("12 Insufficient cpu")
    expect(page.locator(".changes > li").first).to_contain_text("request")
    page.get_by_role("link", name="How many more fit?").click()
    expect(page.locator(".figure .value").first).to_have_text("0")


def test_play_goes_on_by_itself_until_it_is_stopped(open_page: OpenPage, recording: Served) -> None:
    page = open_page(recording.address)
    slider = page.get_by_label("Place in the recording")
    page.get_by_role("button", name="To the start").click()
    start = slider.get_attribute("min") or ""
    expect(slider).to_have_value(start)
    label = page.locator("#timebar .clock")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(
        "start => Number(document.querySelector('[type=range]').value) > start + 5", arg=int(start)
    )
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(label).to_contain_text(re.compile(r"pods? .* (was|were) given"))
    stopped = slider.input_value()
    # Anything that was still to come would come before this.
    page.get_by_role("button", name="One entry on").click()
    expect(slider).to_have_value(str(int(stopped) + 1))


def test_it_begins_after_the_first_listing_and_says_what_each_entry_was(
    open_page: OpenPage, recording: Served
) -> None:
    page = open_page(recording.address)
    label = page.locator("#timebar .clock")
    expect(label).to_contain_text(f"decision {recorded.PLACED + recorded.WAITING} of")
    page.get_by_role("button", name="To the start").click()

    expect(label).to_contain_text("decision 0 of")
    expect(page.locator(".zone-label")).to_have_count(2)
    expect(page.locator("[data-stat=placed]")).to_have_text("0")
    page.get_by_role("button", name="The next decision").click()
    expect(label).to_contain_text("2 of 2 pods of group default/pair were given nodes")
    expect(label).to_contain_text("decision 2 of")
    page.get_by_role("button", name="One entry on").click()
    expect(label).to_contain_text("was assumed on node-")
    page.get_by_role("button", name="The next decision").click()
    expect(label).to_contain_text("pod default/claimer was given node")
    expect(page.locator("[data-stat=placed]")).to_have_text("2")


def test_decisions_are_listed_and_led_to(open_page: OpenPage, recording: Served) -> None:
    page = open_page(f"{recording.address}#/decisions")
    slider = page.get_by_label("Place in the recording")
    first = page.locator(".feed li").first
    expect(first).to_contain_text("large-")
    expect(first).to_contain_text("12 Insufficient cpu")
    placed = page.locator(".feed li", has_text="small-59").first
    # Whether one node is the best or several are depends on which pods were there by then.
    expect(placed).to_contain_text("of 12 nodes")
    expect(placed).to_contain_text("of 900 points")

    page.get_by_role("button", name="The decision before").click()
    page.get_by_role("button", name="The decision before").click()
    moment = int(slider.input_value())
    page.locator(".feed .time").nth(1).click()

    expect(page.locator(".feed li").first).to_be_visible()
    expect(slider).not_to_have_value(str(moment))
    earlier = int(slider.input_value())
    assert earlier < moment
    page.get_by_role("button", name="The next decision").click()
    expect(slider).not_to_have_value(str(earlier))
    assert earlier < int(slider.input_value()) <= moment


def test_groups_and_devices_are_as_of_then(open_page: OpenPage, recording: Served) -> None:
    page = open_page(f"{recording.address}#/group/default/pair")
    expect(page.locator("#view")).to_contain_text("2 of 2 placed")
    expect(page.locator("#view .badge").first).to_have_text("scheduled")

    page.locator("#tabs").get_by_text("Groups").click()
    page.get_by_role("button", name="To the start").click()
    expect(page.locator("#view")).to_contain_text("0 of 2 placed")

    page = open_page(f"{recording.address}#/pod/default/claimer")
    expect(page.locator(".claim .badge")).to_have_text("reserved")
    page.locator(".claim a").click()
    expect(page.locator(".devices")).to_contain_text("1 allocated, 0 free")
    expect(page.locator(".devices table a")).to_have_text("default/claimer")
