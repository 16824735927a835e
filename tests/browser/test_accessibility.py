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


#: Elements that are cut off or covered sideways.
_BEYOND = """() => [...document.querySelectorAll("body *")]
  .filter((each) => each.checkVisibility() && !each.closest(".hidden, #skip, .wide-table, .table-scroll, .brand span")
    && each.getBoundingClientRect().right > innerWidth + 1)
  .map((each) => each.outerHTML.slice(0, 80))"""  # noqa: E501 (the same)


def test_a_phone_shows_everything(open_page: OpenPage, demo: Served) -> None:
    page = open_page(
        f"{demo.address}#/pod/default/oversized-00000", viewport={"width": 390, "height": 844}
    )
    for view, there in (
        ("#/pod/default/oversized-00000", ".changes > li"),
        ("#/queue", ".group"),
        ("#/node/node-0299", ".devices"),
        ("#/what-if?kind=loss&zone=zone-a", ".figure"),
    ):
        page.evaluate("target => { location.hash = target; }", view)
        expect(page.locator(f"#view {there}").first).to_be_visible()
        assert (view, page.evaluate(_BEYOND)) == (view, [])
    expect(page.locator(".totals")).to_contain_text("memory")
    # The map is as tall as it has to be.
    hidden = (
        "document.querySelector('.map').scrollHeight > document.querySelector('.map').clientHeight"
    )
    assert page.evaluate(hidden) is False


#: The element with the focus: what it is, whether it can be seen, and whether a ring shows it.
_FOCUSED = """() => {
  const { activeElement: each } = document;
  const { outlineStyle, outlineWidth } = getComputedStyle(each);
  return { name: each.outerHTML.slice(0, 120), body: each === document.body, seen: each.checkVisibility(),
    ring: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 };
}"""  # noqa: E501 (the same)
_REACHABLE = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((each) => each.checkVisibility()).length"""  # noqa: E501 (the same)


@pytest.mark.parametrize("view", ["#/what-if?kind=apply", "#/pod/default/oversized-00000"])
def test_the_tab_key_reaches_everything_with_a_ring(
    open_page: OpenPage, demo: Served, view: str
) -> None:
    page = open_page(f"{demo.address}{view}")
    expect(page.locator("#view form, #view .nodes-list").first).to_be_attached()
    expect(page.locator(".loading")).to_have_count(0)
    reachable = page.evaluate(_REACHABLE)
    seen = []
    for _ in range(reachable + 5):
        page.keyboard.press("Tab")
        focused = page.evaluate(_FOCUSED)
        if focused["body"]:
            break
        seen.append(focused)

    assert [each["name"] for each in seen if not (each["seen"] and each["ring"])] == []
    assert len(seen) == reachable
