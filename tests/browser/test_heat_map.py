"""Nodes as a heat map and as a table, for eyes, pointers, keyboards and ears."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .cluster_api import ClusterApi
from .conftest import NODES

#: A copy is read, so that reading does not change how the page's own canvas is kept.
_COPY = """
  const canvas = document.querySelector("canvas");
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
  copy.drawImage(canvas, 0, 0);
"""
_PIXEL = f"""([x, y]) => {{ {_COPY}
  const scale = canvas.width / canvas.clientWidth;
  return [...copy.getImageData(x * scale, y * scale, 1, 1).data];
}}"""
_COLOURS = f"""() => {{ {_COPY}
  const pixels = new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return new Set(pixels.filter((each) => each >>> 24 === 255)).size;
}}"""
#: Inside the first cell, beside its number.
_FIRST_CELL = (6, 34)


def test_each_node_is_drawn_and_zones_are_named(page: Page) -> None:
    canvas = page.locator("canvas")

    expect(canvas).to_have_attribute("data-drawn", str(NODES))
    expect(canvas).to_have_attribute("aria-label", re.compile(f"{NODES} nodes.*cpu"))
    expect(page.locator(".zone-label")).to_have_count(3)
    expect(page.locator(".zone-label").first).to_contain_text("zone-a 100 nodes · ")
    assert page.evaluate(_PIXEL, list(_FIRST_CELL))[3] == 255
    assert page.evaluate(_COLOURS) > 3
    expect(page.locator("#legend")).to_contain_text("tainted 19")


def test_another_resource_has_other_colours(page: Page) -> None:
    by_cpu = page.evaluate(_PIXEL, list(_FIRST_CELL))
    page.get_by_label("Resource").select_option("nvidia.com/gpu")

    assert page.evaluate(_PIXEL, list(_FIRST_CELL)) != by_cpu
    expect(page.locator(".zone-label").first).to_contain_text("100%")


def test_tooltip_tells_about_the_node_under_the_pointer(page: Page) -> None:
    page.locator("canvas").hover(position={"x": 10, "y": 40})
    tip = page.get_by_role("tooltip")

    expect(tip).to_contain_text("node-0000")
    expect(tip).to_contain_text("zone-a")
    expect(tip).to_contain_text(re.compile(r"cpu\d+%"))
    page.mouse.move(1, 1)
    expect(tip).to_be_hidden()


def test_arrow_keys_go_from_node_to_node_and_are_spoken(page: Page) -> None:
    page.locator("canvas").focus()
    page.keyboard.press("End")
    page.keyboard.press("Home")
    spoken = page.locator("#spoken")
    expect(spoken).to_contain_text(
        re.compile(r"node-0000, region-1/zone-a, cpu \d+%, .* requested")
    )

    page.keyboard.press("ArrowRight")
    expect(spoken).to_contain_text("node-0003, region-1/zone-a")
    page.keyboard.press("PageDown")
    expect(spoken).to_contain_text("zone-b")
    page.keyboard.press("ArrowLeft")
    expect(spoken).to_contain_text("zone-a")
    page.keyboard.press("Enter")
    expect(page.locator("#panel h2")).to_have_text(re.compile("node-"))


def test_a_click_opens_the_node_with_its_pods(page: Page) -> None:
    page.locator("canvas").click(position={"x": 10, "y": 40})

    expect(page.locator("#panel h2")).to_have_text("node-0000")
    expect(page).to_have_url(re.compile("#/node/node-0000$"))
    expect(page.get_by_role("table", name="Resources")).to_contain_text("cpu")
    expect(page.get_by_role("table", name="Pods of the node")).to_contain_text("default/")


def test_the_table_has_only_rows_in_sight_and_sorts(page: Page) -> None:
    page.get_by_role("button", name="Table").click()
    table = page.get_by_role("table", name="Nodes")

    expect(table).to_have_attribute("aria-rowcount", str(NODES + 1))
    assert table.locator("tbody tr").count() < 60
    table.get_by_role("button", name="gpu").click()
    expect(table.locator("th[aria-sort=descending]")).to_have_text(re.compile("gpu"))
    expect(table.locator("tbody tr").first).to_contain_text("4 / 4 100%")


def test_the_table_filters_by_name(page: Page) -> None:
    page.get_by_role("button", name="Table").click()
    page.get_by_label("Filter nodes").fill("node-029")

    expect(page.get_by_role("table", name="Nodes").locator("tbody tr")).to_have_count(10)


@pytest.fixture
def cordoned(api: ClusterApi) -> object:
    """A node that takes no pods until the end of the test."""
    path = "/api/v1/nodes/node-0000"
    api.patch(path, {"spec": {"unschedulable": True}})
    yield
    api.patch(path, {"spec": {"unschedulable": None}})


def test_a_cordon_shows_without_reload(page: Page, cordoned: None) -> None:
    expect(page.locator("#legend")).to_contain_text("cordoned 1")
    page.locator("canvas").hover(position={"x": 10, "y": 40})
    expect(page.get_by_role("tooltip")).to_contain_text("cordoned")
