"""Who may see the page, and what it says when something is refused or the server is gone."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from .conftest import TIMEOUT_MS, OpenPage
from .processes import Served, serving


@pytest.mark.parametrize("query", ["", "?token=wrong"])
def test_strangers_see_nothing(browser: Browser, demo: Served, query: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(demo.page + query)

    assert answer is not None
    assert answer.status == 401
    assert page.locator("#title, canvas, #panel, script").count() == 0
    assert "node-" not in page.content()
    for path in ("main.js", "api/overview", "api/nodes", "api/queue", "api/stream"):
        refused = context.request.get(demo.page + path)
        assert (path, refused.status) == (path, 401)
        assert "node-" not in refused.text()
    context.close()


def test_another_name_of_this_machine_is_refused(demo: Served) -> None:
    """A page elsewhere that resolves its own name to this machine has that name as the host."""
    request = urllib.request.Request(  # noqa: S310 (loopback)
        demo.page, headers={"Host": "evil.example", "Authorization": f"Bearer {demo.token}"}
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)  # noqa: S310

    assert refused.value.code == 421
    refused.value.close()


def test_what_is_refused_is_said_in_the_page(browser: Browser, demo: Served) -> None:
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto(f"{demo.address}#/pod/default/nobody")
    expect(page.locator(".failure")).to_contain_text(re.compile("nobody.*not found|no pod.*nobody"))

    page.goto(f"{demo.page}#/what-if?kind=drain&nodes=nowhere")
    expect(page.locator(".failure")).to_contain_text("nowhere")
    page.get_by_role("link", name="New workload").click()
    page.get_by_label("Manifest of").fill("kind: [")
    page.get_by_role("button", name="Find out").click()
    expect(page.locator(".failure")).to_be_visible()
    context.close()


def test_a_lost_connection_is_told_and_comes_back(browser: Browser, demo: Served) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route("**/api/stream*", lambda route: route.abort())
    page.goto(demo.address)
    notice = page.locator("#notice")
    expect(notice).to_contain_text("connection is lost")
    expect(page.locator("#link")).to_have_text("Offline")
    page.route("**/api/overview", lambda route: route.abort())
    expect(notice).to_contain_text("The server does not answer", timeout=TIMEOUT_MS)

    page.unroute_all()

    expect(page.locator("#link")).to_have_text("Live", timeout=TIMEOUT_MS)
    expect(notice).to_be_hidden()
    context.close()


def test_views_that_are_left_stay_quiet(open_page: OpenPage, demo: Served) -> None:
    """Going on before an answer is there leaves no error behind."""
    page = open_page(f"{demo.address}#/pod/default/web-00001")
    for target in ("#/pod/default/web-00002", "#/node/node-0001", "#/what-if", "#/queue"):
        page.evaluate("target => { location.hash = target; }", target)
    expect(page.locator(".group").first).to_be_visible()


def test_a_cluster_that_is_gone_makes_the_page_stale_until_it_is_back(
    browser: Browser, tmp_path: Path
) -> None:
    """The page's own server answers all the time; the one behind it does not."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cluster = ("demo", "--keep", "--nodes=20", "--pods=50", f"--port={port}")
    kubeconfig = tmp_path / "kubeconfig"
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    link, notice = page.locator("#link"), page.locator("#notice")
    with contextlib.ExitStack() as running:
        with serving(*cluster) as demo:
            kubeconfig.write_text(Path(demo.kubeconfig).read_text())
            ui = running.enter_context(serving("ui", "--no-browser", f"--kubeconfig={kubeconfig}"))
            page.goto(ui.address)
            expect(link).to_have_text("Live")
            expect(notice).to_be_hidden()

        expect(link).to_have_text(re.compile(r"^Stale since \d\d:\d\d:\d\d$"))
        expect(notice).to_contain_text("The API server is not heard of since")
        expect(notice).to_contain_text(f"127.0.0.1:{port}")
        expect(page.locator("[data-stat=placed]")).not_to_have_text("0")
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=Path(folder) / "stale.png")

        with serving(*cluster):
            expect(link).to_have_text("Live", timeout=60_000)
            expect(notice).to_be_hidden()
    context.close()
