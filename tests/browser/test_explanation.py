"""Why a pod waits, what would help, and that what is said to help does."""

from __future__ import annotations

import json
import re
import shlex

from playwright.sync_api import Page, expect

from .cluster_api import JSON_PATCH, ClusterApi, JsonObject
from .conftest import OpenPage
from .processes import Served, printed


def test_the_queue_is_grouped_by_what_pods_wait_for(page: Page) -> None:
    page.locator(".chip", has_text="SchedulingGates").click()

    expect(page.locator(".group")).to_have_count(1)
    expect(page.locator(".group .message")).to_have_text(
        "waiting for scheduling gates: [example.com/quota]"
    )
    expect(page.locator(".group")).to_contain_text("gated-00000")


def test_the_queue_can_be_searched(page: Page) -> None:
    page.get_by_label("Search waiting pods").fill("oversized-00001")

    expect(page.locator(".group .pods li")).to_have_count(1)
    expect(page.locator(".group .pods")).to_contain_text("default/oversized-00001")


def test_a_waiting_pod_is_explained_as_on_the_command_line(page: Page, demo: Served) -> None:
    pod = "default/oversized-00000"
    said: JsonObject = json.loads(
        printed("explain", "pod", pod, "--kubeconfig", demo.kubeconfig, "-o", "json")
    )
    page.locator(".group a", has_text="oversized-00000").click()
    panel = page.locator("#panel")

    expect(panel.locator("blockquote.message")).to_have_text(said["message"])
    expect(panel.locator(".outcome")).to_have_text("Unschedulable It fits on 0 of 300 nodes.")
    titles = panel.locator(".changes > li > .line b").all_inner_texts()
    assert titles == [each["title"] for each in said["changes"]]
    rows = panel.get_by_role("table", name=re.compile("^Reasons")).locator("tbody tr")
    expect(rows).to_have_count(len(said["reasons"]))
    first = said["reasons"][0]
    expect(rows.first).to_contain_text(f"{first['text']}{first['plugin']}")
    expect(rows.first.locator("td").first).to_have_text(str(first["nodes"]))
    panel.get_by_text("Node by node").click()
    expect(panel.get_by_role("table", name="All reasons of each node")).to_contain_text("node-0000")


def test_each_reason_has_the_numbers_and_names_of_the_command_line(
    page: Page, demo: Served
) -> None:
    pod = "default/oversized-00000"
    said: JsonObject = json.loads(
        printed("explain", "pod", pod, "--kubeconfig", demo.kubeconfig, "-o", "json")
    )
    page.locator(".group a", has_text="oversized-00000").click()
    for reason in said["reasons"]:
        table = page.get_by_role("table", name=re.compile("^Reasons"))
        row = table.locator("tbody tr").filter(has_text=reason["text"])
        lines = row.locator(".behind li")
        texts = [each["text"] for each in reason["details"]]
        for line, text in zip(lines.all_inner_texts(), texts, strict=False):
            assert line.startswith(text)
        expect(lines).to_have_count(min(len(texts), 3))
        if len(texts) > 3:
            row.get_by_role("button", name="more").click()
            expect(lines).to_have_count(min(len(texts), 20))
    page.get_by_text("Node by node").click()
    first = page.get_by_role("table", name="All reasons of each node").locator("tbody tr").first
    expect(first.locator(".behind").first).to_contain_text("requested")


def test_a_placed_pod_shows_scores_plugin_by_plugin(open_page: OpenPage, demo: Served) -> None:
    page = open_page(f"{demo.address}#/pod/default/web-00001")
    said = page.request.get(f"{demo.page}api/pods/default/web-00001/explanation").json()
    expect(page.locator(".outcome")).to_contain_text(f"Runs on {said['currentNode']}")

    best = said["scores"][0]
    row = page.locator(".scores tbody tr").first
    weighted = [each["weighted"] for each in best["plugins"].values() if each["weighted"]]
    expect(row).to_contain_text(best["node"])
    assert row.locator("td.number").all_inner_texts() == [str(best["total"]), *map(str, weighted)]
    assert row.locator(".stack span").count() == len(weighted)


def test_search_finds_any_pod_by_keyboard(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("cache-00007")
    expect(page.locator("#found [role=option]")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    expect(page.locator("#panel h2")).to_have_text("default/cache-00007")


def test_the_proposed_command_places_the_pod_and_the_page_sees_it(
    page: Page, api: ClusterApi
) -> None:
    placed = int(page.locator("[data-stat=placed]").inner_text().replace(",", ""))
    api.create_pod("wants-gpu-node", nodeSelector={"pool": "gpu"})
    link = page.locator(".group a", has_text="wants-gpu-node")
    link.click()
    change = page.locator(".changes > li", has_text="tolerate taint nvidia.com/gpu=present").first
    change.get_by_text("How to").click()

    command = shlex.split(change.locator("pre").inner_text())

    patch = json.loads(command[command.index("-p") + 1])
    assert command[:6] == ["kubectl", "-n", "default", "patch", "pod", "wants-gpu-node"]
    api.ask("PATCH", "/api/v1/namespaces/default/pods/wants-gpu-node", patch, kind=JSON_PATCH)
    expect(page.locator("[data-stat=placed]")).to_have_text(f"{placed + 1:,}")
    page.locator("#tabs a").first.click()
    expect(link).to_have_count(0)
    page.goto(page.url.partition("#")[0] + "#/pod/default/wants-gpu-node")
    expect(page.locator(".outcome")).to_contain_text("Runs on node-")
    api.ask("DELETE", "/api/v1/namespaces/default/pods/wants-gpu-node")


def test_the_command_can_be_copied(open_page: OpenPage, demo: Served) -> None:
    page = open_page(
        f"{demo.address}#/pod/default/misplaced-00000",
        permissions=["clipboard-read", "clipboard-write"],
    )
    change = page.locator(".changes > li").first
    change.get_by_text("How to").click()
    change.get_by_role("button", name="Copy").click()

    expect(change.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == change.locator("pre").inner_text()
    assert copied.startswith("kubectl -n default ")
