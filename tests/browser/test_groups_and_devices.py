"""Groups and devices are where people look: the queue, the map, nodes and pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .cluster_api import ClusterApi
from .conftest import OpenPage
from .processes import Served, serving

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"


def test_a_gang_that_waits_stands_above_the_queue_and_says_why(page: Page) -> None:
    card = page.locator(".group", has_text="pretrain").first

    expect(card.locator(".badge")).to_have_text("unschedulable")
    expect(card).to_contain_text("gang of at least 10 · 10 pods")
    expect(card).to_contain_text("0 of 10 placed")
    expect(card.locator(".message")).to_contain_text("minCount (10) cannot be satisfied")
    card.get_by_role("link").click()
    expect(page.locator("#view h2")).to_have_text("default/pretrain")
    members = page.get_by_role("table", name="Members of the group")
    expect(members.locator("tbody tr")).to_have_count(10)
    placements = page.get_by_role("table", name="Placements")
    expect(placements.locator("tbody tr")).to_contain_text(["8 of 10"])
    expect(page.locator(".changes > li").first).to_contain_text("minCount 8 instead of 10")
    expect(page.locator("#tabs [aria-current]")).to_have_text("Group")


def test_the_members_of_a_group_are_brought_out_on_the_map(page: Page) -> None:
    page.locator("#tabs").get_by_text("Groups").click()
    card = page.locator(".group", has_text="finetune")
    expect(card.locator(".badge")).to_have_text("scheduled")
    # The fuller of two kinds of cells: nodes without a member are fainter.
    faint = _opacity(page)

    card.hover()

    assert _opacity(page) < faint
    card.get_by_role("link").click()
    nodes = page.locator("#view tbody td a")
    expect(nodes).to_have_count(4)
    assert len(set(nodes.all_inner_texts())) == 4


def _opacity(page: Page) -> float:
    """Return how much of the map is painted: the sum of its cells' opacity."""
    total: float = page.evaluate(
        """() => {
          const canvas = document.querySelector("canvas");
          const copy = new OffscreenCanvas(canvas.width, canvas.height);
          const context = copy.getContext("2d", { willReadFrequently: true });
          context.drawImage(canvas, 0, 0);
          const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
          let sum = 0;
          for (let at = 3; at < data.length; at += 4) sum += data[at];
          return sum;
        }"""
    )
    return total


def test_a_new_group_comes_and_goes_by_itself(page: Page, api: ClusterApi) -> None:
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    api.ask("POST", GROUPS, {"metadata": {"name": "late"}, "spec": policy})
    api.create_pod("late-0", schedulingGroup={"podGroupName": "late"})
    card = page.locator(".group", has_text="waits for more of its pods: 1 of 2 are there")
    expect(card).to_be_visible()

    api.create_pod("late-1", schedulingGroup={"podGroupName": "late"})

    expect(card).to_have_count(0)
    page.locator("#tabs").get_by_text("Groups").click()
    expect(page.locator(".group", has_text="default/late")).to_contain_text("2 of 2 placed")
    for name in ("late-0", "late-1"):
        api.ask("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    api.ask("DELETE", f"{GROUPS}/late")
    expect(page.locator(".group", has_text="default/late")).to_have_count(0)


def test_a_member_says_that_its_group_waits(open_page: OpenPage, demo: Served) -> None:
    page = open_page(f"{demo.address}#/pod/default/pretrain-00000")

    expect(page.locator(".outcome")).to_contain_text("Waits for its group")
    expect(page.locator(".outcome")).to_contain_text("By itself, it fits on 4 of")
    group = page.locator(".facts dd", has_text="pretrain").first
    expect(group).to_contain_text("gang of at least 10 · 10 pods")


def test_a_node_shows_its_devices_and_who_has_them(open_page: OpenPage, demo: Served) -> None:
    page = open_page(f"{demo.address}#/node/node-0299")

    devices = page.locator(".devices")
    expect(devices).to_contain_text("8 devices of gpu.example.com, pool node-0299")
    expect(devices).to_contain_text("2 allocated, 6 free")
    taken = devices.locator("tbody tr", has_text="default/inference-")
    expect(taken).to_have_count(2)
    taken.first.get_by_role("link").click()
    expect(page.locator(".claim .badge")).to_have_text("reserved")
    expect(page.locator(".claim")).to_contain_text("1 of gpu.example.com where")
    page.locator(".claim a").click()
    expect(page.locator("#view h2")).to_have_text("node-0299")


def test_a_pod_that_waits_for_a_device_says_so(open_page: OpenPage, demo: Served) -> None:
    page = open_page(f"{demo.address}#/queue?plugin=DynamicResources")
    page.locator(".pods a").first.click()

    expect(page.locator("blockquote.message").first).to_contain_text("cannot allocate all claims")
    expect(page.locator(".claim .badge")).to_have_text("pending")
    table = page.get_by_role("table", name="Requests, and the devices")
    expect(table.locator("tbody tr")).to_contain_text(["0 of 32"])


# --- a snapshot ----------------------------------------------------------------------------------


def _manifests() -> list[dict[str, object]]:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": "n1", "pool": pool, "devices": [{"name": "g0"}]}
    result = {"request": "r", "driver": "d.example.com", "pool": "n1", "device": "g0"}
    user = {"resource": "pods", "name": "a", "uid": "uid-a"}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}
    node = {"capacity": {"cpu": "4", "pods": "10"}, "allocatable": {"cpu": "4", "pods": "10"}}

    def of(api_version: str, kind: str, name: str, **fields: object) -> dict[str, object]:
        meta = {"name": name, "uid": f"uid-{name}"}
        return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}

    def member(name: str, **fields: object) -> dict[str, object]:
        container = {"name": "c", "image": "i"}
        group = {"podGroupName": "duo"}
        claims = [{"name": "gpu", "resourceClaimName": "one"}]
        spec = {"containers": [container], "schedulingGroup": group, "resourceClaims": claims}
        return of("v1", "Pod", name, spec={**spec, **fields})

    gang = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    return [
        of("v1", "Node", "n1", status=node),
        of("resource.k8s.io/v1", "ResourceSlice", "s1", spec=spec),
        of(
            "resource.k8s.io/v1",
            "ResourceClaim",
            "one",
            spec={"devices": {"requests": [request]}},
            status={"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]},
        ),
        of("scheduling.k8s.io/v1beta1", "PodGroup", "duo", spec=gang),
        member("a", nodeName="n1"),
        member("b"),
    ]


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path: Path = tmp_path_factory.mktemp("manifests") / "all.json"
    items = _manifests()
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    flags = ("--feature-gates", "GenericWorkload=true", "--no-browser")
    with serving("ui", "--manifests", str(path), *flags) as served:
        yield served


def test_a_snapshot_shows_its_groups_and_devices(open_page: OpenPage, still: Served) -> None:
    page = open_page(f"{still.address}#/groups")
    expect(page.locator(".group")).to_contain_text("1 of 2 placed on 1 node")

    page.goto(f"{still.page}#/node/n1")
    expect(page.locator(".devices")).to_contain_text("1 allocated, 0 free")
    expect(page.locator(".devices tbody")).to_contain_text("default/one")

    page.goto(f"{still.page}#/decisions")
    expect(page.locator("#view")).to_contain_text("A snapshot has no decisions")
