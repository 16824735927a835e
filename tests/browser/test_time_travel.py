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
    expect(slider).to_have_value("0")
    page.get_by_role("button", name="One entry on").click()
    expect(slider).to_have_value("1")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => Number(document.querySelector('[type=range]').value) > 2")
    page.get_by_role("button", name="Pause").click()
    stopped = slider.input_value()
    page.wait_for_timeout(900)

    assert abs(int(slider.input_value()) - int(stopped)) <= 2
