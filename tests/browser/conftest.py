"""A browser, pages that fail a test when they complain, and the processes that they look at."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    expect,
    sync_playwright,
)

from .cluster_api import ClusterApi
from .processes import Served, serving

NODES = 300
TIMEOUT_MS = 15_000
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

#: Opens an address and returns the page; keyword arguments are those of a browser context.
OpenPage = Callable[..., Page]


@contextlib.contextmanager
def launched(playwright: Playwright) -> Iterator[Browser]:
    """Run Chromium; fails in one line if there is none."""
    named = os.environ.get("CHROMIUM")
    path = next(filter(None, map(shutil.which, [named] if named else _BROWSERS)), None)
    if path is None:
        pytest.fail("no chromium: run `make browser`, or name one in $CHROMIUM", pytrace=False)
    # Chromium's sandbox does not work for root.
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
    browser = playwright.chromium.launch(executable_path=path, args=[*_ARGUMENTS, *sandbox])
    yield browser
    browser.close()


expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium; of the package, since no other event loop can run while it does."""
    with sync_playwright() as playwright, launched(playwright) as browser:
        yield browser


@pytest.fixture(scope="package")
def demo() -> Iterator[Served]:
    """A cluster with pods that fit, pods that do not, and a scheduler at work."""
    with serving("demo", "--keep", "--nodes", str(NODES), "--pods", "2000") as served:
        yield served


@pytest.fixture
def api(demo: Served) -> ClusterApi:
    """The API server behind the demo's page."""
    return ClusterApi(demo.api)


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Open pages of which none may complain: no error, no broken policy, nothing from elsewhere."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []
    expected: list[str] = []

    def complain(message: ConsoleMessage) -> None:
        text = message.text
        if message.type in {"error", "warning"} and not any(each in text for each in expected):
            complaints.append(text)

    def foreign(request: Request) -> None:
        if not request.url.startswith("http://127.0.0.1:"):
            complaints.append(f"request to {request.url}")

    def open_one(address: str, *, complains: str = "", **options: object) -> Page:
        """`complains` is a part of the complaints that the test provokes."""
        expected.extend(filter(None, [complains]))
        options.setdefault("viewport", {"width": 1440, "height": 900})
        context = browser.new_context(**options)  # type: ignore[arg-type]  # passed on as they come
        contexts.append(context)
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        page.on("console", complain)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", foreign)
        page.goto(address)
        page.wait_for_selector("canvas[data-drawn]")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def page(open_page: OpenPage, demo: Served) -> Page:
    """The demo's page."""
    return open_page(demo.address)
