"""Names that are markup stay text. No API server lets them in; files may have anything."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .cluster_api import JsonObject
from .conftest import OpenPage
from .processes import Served, serving

#: A name in Kubernetes has no slash, and neither has a part of an address.
EVIL = '<img src=x onerror="document.title=1"><script>document.title=1'


def _objects() -> Iterator[JsonObject]:
    yield {
        "apiVersion": "kubesched/v1",
        "kind": "Snapshot",
        "source": EVIL,
        "takenAt": "2026-01-01T00:00:00+00:00",
    }
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "10", EVIL: "1"}
    yield {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": EVIL, "labels": {EVIL: EVIL, "topology.kubernetes.io/zone": EVIL}},
        "spec": {"taints": [{"key": EVIL, "value": EVIL, "effect": "NoSchedule"}]},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    for name, spec in ((EVIL, {}), (f"placed-{EVIL}", {"nodeName": EVIL})):
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {
                "containers": [{"name": EVIL, "resources": {"requests": {"cpu": "1"}}}],
                "schedulerName": "default-scheduler",
                **spec,
            },
        }


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("snapshot") / "evil.gz"
    _write(path)
    with serving("ui", "--snapshot", str(path), "--no-browser") as served:
        yield served


def _write(path: Path) -> None:
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(each) + "\n" for each in _objects())


def test_hostile_names_are_shown_and_do_nothing(open_page: OpenPage, evil: Served) -> None:
    page = open_page(evil.address)
    expect(page.locator("#link")).to_have_text("Snapshot")
    expect(page.locator(".group a").first).to_contain_text("<img src=x")
    page.locator("canvas").hover(position={"x": 10, "y": 40})
    expect(page.get_by_role("tooltip")).to_contain_text("<img src=x")
    page.locator("canvas").click(position={"x": 10, "y": 40})
    expect(page.locator("#panel h2")).to_contain_text("<img src=x")
    expect(page.locator("#panel .badge").first).to_contain_text("<img src=x")

    page.go_back()
    page.locator(".group a").first.click()
    expect(page.locator(".changes > li").first).to_contain_text("<img src=x")

    assert page.locator("img").count() == 1  # the page's own icon
    assert page.locator("script").count() == 2
    assert page.title() != "1"
