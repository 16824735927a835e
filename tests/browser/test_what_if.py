"""The what-if form: it shows what `kubesched simulate` says."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from .cluster_api import ClusterApi, JsonObject
from .conftest import OpenPage
from .processes import Served, printed

#: More important than all others, and too large for most nodes as they are.
CRITICAL = """apiVersion: apps/v1
kind: Deployment
metadata: {name: critical}
spec:
  replicas: 3
  template:
    spec:
      priorityClassName: system-cluster-critical
      containers:
      - name: main
        image: example
        resources: {requests: {cpu: "14"}}
"""


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
    page.locator("select[name=zone]").select_option("region-1/zone-a")
    page.get_by_role("button", name="Find out").click()

    expect(page.locator("select[name=zone]")).to_have_value("region-1/zone-a")
    expect(page.locator(".result")).to_contain_text("region-1/zone-a: 100 nodes")
    expect(page.locator(".result")).to_contain_text("Insufficient nvidia.com/gpu")


def test_more_nodes(page: Page) -> None:
    _ask(page, "Add nodes", How_many="2", Like_node="node-0285")

    expect(page.locator(".result")).to_contain_text("2 nodes more like node-0285")
    expect(page.locator(".figure.good .value")).to_have_text(re.compile(r"^[1-9]"))


def test_a_workload_that_is_not_there_yet(page: Page) -> None:
    _ask(page, "New workload")

    result = page.locator(".result")
    expect(result).to_contain_text("All 40 pods of Deployment default/example find a node")
    expect(result.locator(".figure .value")).to_have_text(["40", "0", "0"])
    expect(result).to_contain_text("Where they go")
    expect(result).to_contain_text("region-1/zone-a")


def test_a_workload_of_a_file_with_more_replicas_than_fit(page: Page, tmp_path: Path) -> None:
    manifest = tmp_path / "critical.yaml"
    manifest.write_text(CRITICAL)
    page.get_by_role("link", name="What if").click()
    page.get_by_role("link", name="New workload", exact=True).click()
    page.get_by_label("or of a file").set_input_files(manifest)
    expect(page.get_by_label("Manifest of")).to_have_value(CRITICAL)
    page.get_by_label("Replicas", exact=True).fill("2000")
    page.get_by_role("button", name="Find out").click()

    result = page.locator(".result")
    expect(result).to_contain_text(
        "of 2,000 pods of Deployment default/critical find a node", timeout=60_000
    )
    expect(result).to_contain_text("pods would be preempted")
    fit, none, preempted = (
        int(each.replace(",", "")) for each in result.locator(".figure .value").all_inner_texts()
    )
    assert fit > 0
    assert preempted > 0
    assert fit + none == 2000
    result.get_by_text("explained").click()
    expect(result).to_contain_text("It fits on 0 of 300 nodes")


def test_a_manifest_that_is_wrong_is_said_to_be_wrong(open_page: OpenPage, demo: Served) -> None:
    page = open_page(f"{demo.address}#/what-if?kind=apply", complains="422")
    page.get_by_label("Manifest of").fill("kind: Service")
    page.get_by_role("button", name="Find out").click()

    expect(page.locator(".result .failure")).to_contain_text("nothing with a pod template")


def test_a_gated_pod_without_its_gate(open_page: OpenPage, demo: Served) -> None:
    page = open_page(f"{demo.address}#/pod/default/gated-00000")
    page.get_by_role("link", name="Without its gates?").click()

    gate = page.get_by_role("checkbox", name="example.com/quota")
    expect(gate).to_be_checked()
    expect(page.locator(".result .badge").first).to_have_text("Schedulable")
    expect(page.locator(".result .outcome")).to_contain_text("It fits on")


def test_only_some_gates_are_removed(open_page: OpenPage, demo: Served, api: ClusterApi) -> None:
    gates = [{"name": "example.com/quota"}, {"name": "example.com/review"}]
    api.create_pod("twice-held", schedulingGates=gates)
    page = open_page(f"{demo.address}#/pod/default/twice-held")
    page.get_by_role("link", name="Try without gate example.com/review").click()

    expect(page.get_by_role("checkbox", name="example.com/quota")).not_to_be_checked()
    expect(page.locator(".result .badge").first).to_have_text("Gated")
    expect(page.locator(".result .message")).to_have_text(
        "waiting for scheduling gates: [example.com/quota]"
    )
    api.ask("DELETE", "/api/v1/namespaces/default/pods/twice-held")
