"""What the page offers to look closer: decisions, nodes by label, filters, and wrong addresses."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .cluster_api import ClusterApi
from .conftest import OpenPage
from .processes import Served


def test_decisions_come_as_they_are_made(page: Page, api: ClusterApi) -> None:
    page.locator("#tabs").get_by_text("Decisions").click()
    expect(page.locator(".feed li").first).to_be_visible()

    api.create_pod("decided", resources={"requests": {"cpu": "10m"}})

    newest = page.locator(".feed li", has_text="default/decided")
    expect(newest).to_contain_text("→")
    expect(newest.get_by_role("link").nth(1)).to_contain_text("node-")
    api.ask("DELETE", "/api/v1/namespaces/default/pods/decided")


def test_a_rejection_says_why(page: Page, api: ClusterApi) -> None:
    page.locator("#tabs").get_by_text("Decisions").click()

    api.create_pod("too-large", resources={"requests": {"cpu": "999"}})

    rejected = page.locator(".feed li", has_text="default/too-large")
    expect(rejected).to_contain_text("no node")
    expect(rejected.locator(".message")).to_contain_text("Insufficient cpu")
    api.ask("DELETE", "/api/v1/namespaces/default/pods/too-large")


def test_nodes_are_grouped_by_any_label(page: Page) -> None:
    expect(page.locator(".zone-label").first).to_contain_text("zone-a 100 nodes")
    choice = page.get_by_label("Group nodes by")
    expect(choice.locator("option[value=pool]")).to_be_attached()

    choice.select_option("pool")

    labels = page.locator(".zone-label")
    expect(labels).to_have_count(4)
    expect(labels.first).to_contain_text("accelerated 4 nodes")
    choice.select_option("")
    expect(labels).to_have_count(3)


def test_waiting_pods_are_filtered_by_namespace_and_workload(
    open_page: OpenPage, demo: Served, api: ClusterApi
) -> None:
    api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "nightly", "uid": "u"}
    pod = {
        "metadata": {"name": "held", "ownerReferences": [{**owner, "controller": True}]},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "schedulingGates": [{"name": "example.com/hold"}],
        },
    }
    api.ask("POST", "/api/v1/namespaces/shop/pods", pod)
    page = open_page(f"{demo.address}#/queue")

    page.get_by_label("All namespaces").select_option("shop")
    expect(page.locator(".pods li")).to_have_count(1)
    expect(page.locator("#view")).to_contain_text("1 pod")

    page.goto(f"{demo.page}#/queue?workload=Job%2Fnightly")
    expect(page.locator(".pods li")).to_have_count(1)
    page.locator(".pods a").click()
    expect(page.locator(".about")).to_contain_text("Job/nightly")
    api.ask("DELETE", "/api/v1/namespaces/shop")


def test_a_pod_shows_what_it_asks_for(open_page: OpenPage, demo: Served) -> None:
    page = open_page(f"{demo.address}#/pod/default/cache-00000")

    facts = page.locator(".facts")
    expect(facts).to_contain_text("cpu 500m")
    expect(facts).to_contain_text("memory 8Gi")
    expect(facts).to_contain_text("nodes with pool=memory")
    expect(facts).to_contain_text("app=cache")
    expect(page.locator(".about")).to_contain_text("no controller")


WRONG = {
    "#/nodes/of/nothing": "There is nothing at #/nodes/of/nothing.",
    "#/queue?colour=red": "There is no “colour” at #/queue",
    "#/queue?state=lost": "There is no state “lost” at #/queue",
    "#/what-if?kind=wish": "There is no kind “wish” at #/what-if",
    "#/pod/default/nobody": "There is no pod default/nobody",
    "#/node/nobody": "There is no node nobody",
    "#/group/default/nobody": "There is no pod group default/nobody",
}


@pytest.mark.parametrize("address", WRONG)
def test_a_wrong_address_is_said_to_be_wrong(
    open_page: OpenPage, demo: Served, address: str
) -> None:
    page = open_page(f"{demo.address}{address}", complains="404")

    expect(page.locator("#view [role=alert]")).to_contain_text(WRONG[address])
    page.locator("#tabs").get_by_text("Queue").click()
    expect(page.locator(".group").first).to_be_visible()


def test_a_moment_that_is_none_is_left_by_a_link(open_page: OpenPage, demo: Served) -> None:
    page = open_page(demo.address, complains="400")
    page.goto(f"{demo.page}#/queue?at=17")
    page.reload()

    expect(page.get_by_role("alert").first).to_contain_text("'at' is an entry of a recording")
    page.get_by_role("link", name="Go without the moment").click()
    expect(page.locator(".group").first).to_be_visible()


def test_a_wrong_path_is_a_page_that_says_so(open_page: OpenPage, demo: Served) -> None:
    page = open_page(demo.address, complains="404")
    answer = page.goto(f"{demo.page}nonsense")

    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading")).to_have_text("There is nothing at /ui/nonsense")
    page.get_by_role("link").click()
    expect(page.locator(".group").first).to_be_visible()
