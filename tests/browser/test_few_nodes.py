"""A small cluster fills the space: each node is a card with its name and resources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from .conftest import OpenPage
from .processes import Served, serving

NODES = 6
_COVERED = """() => {
  const [map, canvas] = [".map", "canvas"].map((each) => document.querySelector(each).getBoundingClientRect());
  return [canvas.width / map.width, canvas.height / map.height];
}"""  # noqa: E501 (lines of another language)


@pytest.fixture(scope="module")
def small() -> Iterator[Served]:
    with serving("demo", "--keep", "--nodes", str(NODES), "--pods", "20") as served:
        yield served


@pytest.mark.parametrize("size", [(390, 844), (1280, 800), (1920, 1080)])
def test_six_nodes_fill_the_space(
    open_page: OpenPage, small: Served, size: tuple[int, int]
) -> None:
    page = open_page(small.address, viewport={"width": size[0], "height": size[1]})
    expect(page.locator("canvas")).to_have_attribute("data-drawn", str(NODES))
    width, height = page.evaluate(_COVERED)

    assert width == pytest.approx(1.0, abs=0.02)
    assert 0.75 <= height <= 1.01


def test_a_card_is_opened_like_a_cell(open_page: OpenPage, small: Served) -> None:
    page = open_page(small.address)
    box = page.locator("canvas").bounding_box()
    assert box is not None
    page.locator("canvas").click(position={"x": box["width"] - 40, "y": box["height"] - 40})

    expect(page.locator("#view h2")).to_have_text("node-0005")
    page.locator("canvas").focus()
    page.keyboard.press("End")
    page.keyboard.press("Home")
    expect(page.locator("#spoken")).to_contain_text("node-0002, region-1/zone-c")
