"""The what-if form: it shows what `kubesched simulate` says."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from .cluster_api import JsonObject
from .processes import Served, printed


def _ask(page: Page, kind: str, **fields: str) -> None:
    page.get_by_role("link", name="What if").click()
    page.get_by_role("link", name=kind, exact=True).click()
    for label, value in fields.items():
        page.get_by_label(label.replace("_", " "), exact=True).fill(value)
    page.get_by_role("button", name="Find out").click()


def test_headroom(page: Page, demo: Served) -> None:
    pod = "default/cache-00001"
    said: JsonObject = json.loads(
        printed("simulate", "headroom", pod, "--kubeconfig", demo.kubeconfig, "-o", "json")
    )
    _ask(page, "Headroom", Pod=pod)

    figures = page.locator(".figure .value")
    expect(figures).to_have_text([f"{said['pods']:,}", str(said["nodes"])])
    expect(page).to_have_url(re.compile(r"kind=headroom&pod=default%2Fcache-00001"))


def test_drain_asked_from_a_node(page: Page, demo: Served) -> None:
    question = {"kind": "drain", "nodes": ["node-0000"]}
    said = page.request.post(f"{demo.page}api/what-if", data=question).json()
    page.locator("canvas").click(position={"x": 10, "y": 40})
    page.get_by_role("link", name="Drain it?").click()

    expect(page.locator(".result")).to_contain_text(f"{said['displaced']} pods to move")
    expect(page.locator(".figure .value").first).to_have_text(str(said["placed"]))


def test_loss_of_a_zone(page: Page) -> None:
    page.get_by_role("link", name="What if").click()
    page.get_by_role("link", name="Loss", exact=True).click()
    page.locator("select[name=zone]").select_option("zone-a")
    page.get_by_role("button", name="Find out").click()

    expect(page.locator(".result")).to_contain_text("zone-a: 100 nodes")
    expect(page.locator(".result")).to_contain_text("Insufficient nvidia.com/gpu")


def test_more_nodes(page: Page) -> None:
    _ask(page, "Add nodes", How_many="2", Like_node="node-0285")

    expect(page.locator(".result")).to_contain_text("2 nodes more like node-0285")
    expect(page.locator(".figure.good .value")).to_have_text(re.compile(r"^[1-9]"))


def test_a_pod_that_is_not_there_yet(page: Page) -> None:
    _ask(page, "New pod")
    expect(page.locator(".outcome")).to_contain_text("It fits on 285 of 300 nodes")
