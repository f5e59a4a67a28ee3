"""The page for everybody: axe-core, contrast of borders, sizes of targets, and what a screen reader is told."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.helpers.browsing import draw
from tests.helpers.served import RING, drawing

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
TASKS = ("draw", "memory", "imagine", "vary")
CONTROLS = "button:visible:enabled:not(.link), input[type=text]:visible, #pad:visible, #plane:visible"
TARGETS = "button:visible, input:visible, #pad:visible, #plane:visible"
SMALL = """targets => targets.map((each) => [each.id, each.textContent, each.getBoundingClientRect()])
    .filter(([id, text, { width, height }]) => Math.min(width, height) < 44)"""
CONTRAST = """control => {
    const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((level) => {
            const share = level / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const opaque = (colour) => !/, 0\\)$|transparent/.test(colour);
    const behind = (element) => {
        const colour = getComputedStyle(element).backgroundColor;
        return opaque(colour) || !element.parentElement ? colour : behind(element.parentElement);
    };
    const { borderTopColor, borderTopWidth } = getComputedStyle(control);
    if (borderTopWidth === "0px") return null;
    const [a, b] = [borderTopColor, behind(control.parentElement)].map(light).sort((a, b) => b - a);
    return (a + 0.05) / (b + 0.05);
}"""


def check(page: Page) -> None:
    """That axe-core finds nothing to complain about in what is on the screen."""
    found = Axe().run(page)
    complaints = [
        (each["id"], node["html"], node["failureSummary"])
        for each in found.response["violations"]
        for node in each["nodes"]
    ]
    assert complaints == []
    assert len(found.response["passes"]) > 10


def fill(page: Page) -> None:
    """Load the examples, and draw."""
    page.evaluate("document.getElementById('start').click()")
    expect(page.locator(".card")).to_have_count(15)
    expect(page.locator("#download")).to_be_enabled()
    expect(page.locator("#tiles canvas")).to_have_count(25)
    draw(page, RING)
    expect(page.locator("#answer")).to_be_visible()
    page.evaluate("document.getAnimations().forEach((each) => each.finish())")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_and_borders(visit: Callable[..., Page], scheme: str) -> None:
    page = visit(first=True, color_scheme=scheme, reduced_motion="reduce")
    expect(page.locator("#steps")).to_be_visible()
    check(page)
    fill(page)
    page.locator(".cell").first.click()
    check(page)
    contrasts = page.locator(CONTROLS).evaluate_all(f"controls => controls.map({CONTRAST})")
    drawn = [each for each in contrasts if each is not None]
    assert len(drawn) > 30
    assert min(drawn) >= 3


def test_a_phone(visit: Callable[..., Page]) -> None:
    page = visit(first=True, **PHONE, reduced_motion="reduce")
    check(page)
    page.click("#close-steps")
    fill(page)
    for task in TASKS:
        page.click(f"#tabs [data-task={task}]")
        expect(page.locator(f"main > .{task}")).to_be_visible()
        check(page)
        small = page.locator(TARGETS).evaluate_all(SMALL)
        assert small == []


def test_both_axes_of_the_map_are_sliders(visit: Callable[..., Page]) -> None:
    page = visit(color_scheme="dark", reduced_motion="reduce")
    fill(page)
    image = "canvas => canvas.toDataURL()"
    expect(page.locator("#keep-varied")).to_be_visible()
    for name in ("Across", "Down"):
        slider = page.get_by_role("slider", name=name)
        before = page.locator("#varied").evaluate(image)
        slider.fill("2")
        expect(slider).to_have_attribute("aria-valuetext", "2.00 more than typical")
        for _ in range(200):
            if page.locator("#varied").evaluate(image) != before:
                break
            page.wait_for_timeout(50)
        else:
            pytest.fail(f"moving {name} changes nothing")


def test_files_are_asked_about_in_a_dialog(visit: Callable[..., Page]) -> None:
    page = visit(reduced_motion="reduce")
    page.set_input_files("#images", [drawing_file()])
    expect(page.get_by_role("dialog", name="What is it?")).to_be_visible()
    check(page)
    page.keyboard.press("Escape")
    expect(page.locator("#no-memory")).to_be_visible()


def drawing_file() -> Any:
    """A drawing, as a browser is handed a file."""
    return {"name": "ring.png", "mimeType": "image/png", "buffer": base64.b64decode(drawing(RING))}
