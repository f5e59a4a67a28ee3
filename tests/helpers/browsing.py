"""Hands on the page: drawing, naming, and looking at what is on a canvas."""

from playwright.sync_api import Page, expect

from tests.helpers.served import Points


def draw(page: Page, strokes: list[Points], *, shift: float = 0.0) -> None:
    """Draw on the pad with the mouse."""
    page.locator("#pad").scroll_into_view_if_needed()
    box = page.locator("#pad").bounding_box()
    assert box is not None
    for stroke in strokes:
        places = [
            (box["x"] + (x + shift) * box["width"], box["y"] + (y + shift) * box["height"]) for x, y in stroke
        ]
        page.mouse.move(*places[0])
        page.mouse.down()
        for place in places[1:]:
            page.mouse.move(*place)
        page.mouse.up()


def remember(page: Page, strokes: list[Points], name: str) -> None:
    before = page.locator(".card").count()
    draw(page, strokes)
    page.fill("#name", name)
    page.click("#keep")
    expect(page.locator(".card")).to_have_count(before + 1)


INKED = """selector => {
    const canvas = document.querySelector(selector), copy = new OffscreenCanvas(canvas.width, canvas.height);
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    return data.filter((value, i) => i % 4 == 3 && value > 0).length;
}"""


def inked(page: Page, canvas: str) -> int:
    """How many pixels of a canvas have any ink."""
    return page.evaluate(INKED, canvas)


def wait_for_ink(page: Page, canvas: str) -> None:
    """Until there is some; on a busy machine that may take a while."""
    page.wait_for_function(INKED, arg=canvas)
