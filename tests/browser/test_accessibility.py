"""Contrast, names, captions, landmarks: what people without a mouse or with weak eyes rely on."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .cluster_api import ClusterApi
from .conftest import OpenPage
from .processes import Served

#: Text whose contrast to what is behind it is less than WCAG AA wants.
_WEAK = r"""() => {
  const paint = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (text) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = text;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => colour.slice(0, 3)
    .map((each) => each / 255).map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, at) => sum + each * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = rgba(getComputedStyle(each).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const weak = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].filter((each) => each.nodeType === 3).map((each) => each.data.trim()).join("");
    if (!text || !element.checkVisibility() || element.closest(".hidden, #skip, option, script, noscript")) continue;
    const style = getComputedStyle(element);
    const [one, other] = [luminance(rgba(style.color)), luminance(behind(element))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) weak.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return weak;
}"""  # noqa: E501 (lines of another language)
_NAMELESS = """() => [...document.querySelectorAll("button, input, select, textarea, a[href], canvas")]
  .filter((each) => each.checkVisibility() && !(each.getAttribute("aria-label") || each.textContent.trim()
    || each.labels?.length || each.title))
  .map((each) => each.outerHTML)"""  # noqa: E501 (the same)
_VIEWS = (
    "#/queue",
    "#/pod/default/oversized-00000",
    "#/pod/default/web-00001",
    "#/node/node-0285",
    "#/what-if?kind=add&count=1&like=node-0285",
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_and_controls_have_names(
    open_page: OpenPage, demo: Served, scheme: str
) -> None:
    page = open_page(f"{demo.address}{_VIEWS[0]}", color_scheme=scheme)
    for view in _VIEWS:
        page.evaluate("target => { location.hash = target; }", view)
        expect(page.locator(".loading")).to_have_count(0)
        expect(page.locator("#view > *").first).to_be_attached()
        assert (view, page.evaluate(_WEAK)) == (view, [])
        assert (view, page.evaluate(_NAMELESS)) == (view, [])
        uncaptioned = page.locator("main table:not(:has(caption))")
        assert (view, uncaptioned.count()) == (view, 0)


def test_landmarks_and_skip_link(page: Page) -> None:
    for role in ("banner", "main", "navigation"):
        expect(page.get_by_role(role).first).to_be_attached()
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")

    assert page.evaluate("document.activeElement.id") == "panel"
    expect(page.locator(".group").first).to_be_visible()


def test_the_focus_survives_live_updates(page: Page, api: ClusterApi) -> None:
    for number, which in enumerate(("#stats a", ".chip", ".group a")):
        focused = page.locator(which).first
        focused.focus()
        api.create_pod(f"late-{number}", schedulingGates=[{"name": "example.com/other"}])
        expect(page.locator("#view")).to_contain_text(f"late-{number}")
        expect(focused).to_be_focused()
    for number in range(3):
        api.ask("DELETE", f"/api/v1/namespaces/default/pods/late-{number}")


def test_a_narrow_screen_needs_no_sideways_scrolling(open_page: OpenPage, demo: Served) -> None:
    page = open_page(
        f"{demo.address}#/pod/default/oversized-00000", viewport={"width": 400, "height": 800}
    )
    expect(page.locator(".changes > li").first).to_be_visible()

    assert page.evaluate("document.documentElement.scrollWidth") <= 400
