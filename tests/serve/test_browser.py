"""The page in a real browser: Chromium from the distribution's packages, driven by Playwright."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.helpers.served import BAR, CROSS, RING, Points

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
PATIENCE = 30_000  # milliseconds, for a busy machine


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        reason = "there is no Chromium: install the package chromium of your distribution"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        expect.set_options(timeout=PATIENCE)
        yield browser
        browser.close()


def is_trouble(line: ConsoleMessage) -> bool:
    """Whether the console complains; not of a question about a card that was deleted while it waited."""
    late = "404 (Not Found)" in line.text and line.location["url"].endswith(("api/vary", "api/imagine"))
    return line.type in ("error", "warning") and not late


@pytest.fixture
def visit(browser: Browser, start: Callable[..., str], memory_path: Path) -> Iterator[Callable[..., Page]]:
    """Open the page of a fresh server; whatever the visitor does, nothing may leave it or go wrong unseen."""
    address = start(memory_path)
    asked: list[str] = []
    troubles: list[str] = []
    contexts = []

    def go(**options: object) -> Page:
        context = browser.new_context(base_url=address, **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda line: troubles.append(line.text) if is_trouble(line) else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto("/")
        expect(page.locator("#model")).to_contain_text("26×26")
        return page

    yield go
    for context in contexts:
        context.close()
    assert [line for line in troubles if "422 (Unprocessable" not in line] == []
    assert asked
    assert [url for url in asked if not url.startswith((address + "/", "blob:" + address))] == []


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


def inked(page: Page, canvas: str) -> int:
    """How many pixels of a canvas have any ink."""
    return page.locator(canvas).evaluate("""canvas => {
        const copy = new OffscreenCanvas(canvas.width, canvas.height);
        const context = copy.getContext("2d", { willReadFrequently: true });
        context.drawImage(canvas, 0, 0);
        const { data } = context.getImageData(0, 0, copy.width, copy.height);
        return data.filter((value, i) => i % 4 == 3 && value > 0).length;
    }""")


def test_draw_remember_imagine_recognise_delete_undo_reload(visit: Callable[..., Page]) -> None:
    page = visit()
    expect(page.locator("#no-memory")).to_be_visible()
    remember(page, RING, "ring")
    remember(page, CROSS, "cross")
    assert page.locator(".group").count() == 2

    page.click("#imagine")
    expect(page.locator("#grid canvas")).to_have_count(18)

    for strokes, name in ((RING, "ring"), (CROSS, "cross")):
        draw(page, strokes, shift=0.02)
        expect(page.locator("#class")).to_have_text(name)
        winner = page.locator(".card.winner")
        expect(winner).to_have_count(1)
        expect(winner).to_have_attribute("data-name", name)
        assert float(winner.evaluate("c => getComputedStyle(c).getPropertyValue('--p')")) > 0.9
        expect(page.locator("#score")).to_contain_text("nats")
        expect(page.locator("#kl-a")).to_contain_text("nats")
        assert inked(page, "#reconstruction") > 0
        page.click("#clear")
        expect(page.locator("#answer")).to_be_hidden()
        expect(page.locator(".card.winner")).to_have_count(0)

    page.locator(".card[data-name=ring]").click()
    expect(page.locator("#what")).to_have_text("One card of ring")
    page.click("#forget")
    expect(page.locator(".card")).to_have_count(1)
    page.click("#undo")
    expect(page.locator(".card")).to_have_count(2)

    page.reload()
    expect(page.locator(".card")).to_have_count(2)
    expect(page.locator(".card[data-name=ring]")).to_have_count(1)
    expect(page.locator("#grid canvas")).to_have_count(18)


def test_the_keyboard_alone(visit: Callable[..., Page]) -> None:
    page = visit()
    press = page.keyboard.press

    def draw_with_keys(*keys: str) -> None:
        press("Space")
        for key in keys:
            press(key)
        press("Space")

    press("Tab")
    press("Enter")
    expect(page.locator("#pad")).to_be_focused()
    draw_with_keys(*["Shift+ArrowRight"] * 3)
    expect(page.locator("#keep")).to_be_enabled()
    for _ in range(4):
        press("Tab")
    expect(page.locator("#name")).to_be_focused()
    page.keyboard.type("dash")
    press("Enter")
    expect(page.locator(".card")).to_have_count(1)
    expect(page.locator("#pad")).to_be_focused()

    draw_with_keys(*["Shift+ArrowDown"] * 3)
    press("Backspace")
    expect(page.locator("#keep")).to_be_disabled()
    draw_with_keys(*["Shift+ArrowUp"] * 3)
    for _ in range(4):
        press("Tab")
    page.keyboard.type("stem")
    press("Enter")
    expect(page.locator(".card")).to_have_count(2)

    page.locator(".card[data-name=dash]").focus()
    press("F2")
    expect(page.locator("#new-name")).to_be_focused()
    page.keyboard.type("minus")
    press("Enter")
    expect(page.locator(".card[data-name=minus]")).to_have_count(1)
    page.locator(".card[data-name=minus]").focus()
    press("ArrowRight")
    press("ArrowRight")
    expect(page.locator(".card[data-name=stem]")).to_be_focused()
    press("Delete")
    expect(page.locator(".card")).to_have_count(1)
    press("Control+z")
    expect(page.locator(".card")).to_have_count(2)
    press("Control+z")
    expect(page.locator(".card[data-name=dash]")).to_have_count(1)

    page.locator("#plane").focus()
    press("ArrowRight")
    press("ArrowUp")
    expect(page.locator("#plane")).to_have_attribute("aria-valuetext", "0.25 across, -0.25 down")


def test_a_finger_on_a_phone(visit: Callable[..., Page]) -> None:
    page = visit(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    fingers = page.context.new_cdp_session(page)
    page.locator("#pad").scroll_into_view_if_needed()
    box = page.locator("#pad").bounding_box()
    assert box is not None
    places = [{"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]} for x, y in RING[0]]
    fingers.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": places[:1]})
    for place in places[1:]:
        fingers.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [place]})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.fill("#name", "ring")
    page.click("#keep")
    expect(page.locator(".card")).to_have_count(1)
    assert inked(page, ".card canvas") > 30
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_examples_selection_and_variation(visit: Callable[..., Page]) -> None:
    page = visit(color_scheme="dark", reduced_motion="reduce")
    page.click("#start")
    expect(page.locator(".card")).to_have_count(15)
    expect(page.locator("#tiles canvas")).to_have_count(25)

    page.get_by_role("button", name="All of glyph 2, 3 cards").click()
    expect(page.locator("#imagine-scope")).to_have_text("glyph 2")
    expect(page.locator("#grid .cell[title='glyph 2']")).to_have_count(18)

    image = "document.getElementById('varied').toDataURL()"
    page.wait_for_function("document.getElementById('varied').width == 26")
    before = page.evaluate(image)
    page.locator("#plane").scroll_into_view_if_needed()
    box = page.locator("#plane").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.1 * box["height"])
    page.mouse.up()
    page.wait_for_function(f"before => {image} != before", arg=before)
    page.click("#centre")
    page.wait_for_function(f"before => {image} == before", arg=before)

    page.click("#rename")
    page.fill("#new-name", "  ")
    page.keyboard.press("Enter")
    expect(page.locator("#note")).to_contain_text("label: String should have at least 1 character")
    page.fill("#new-name", "hook")
    page.keyboard.press("Enter")
    expect(page.locator("#what")).to_have_text("All of hook, 3 cards")
    expect(page.locator(".group > button[aria-pressed=true]")).to_have_text("hook")

    page.keyboard.press("Escape")
    expect(page.locator("#what")).to_have_text("Whole memory: 15 cards, 5 names")
    page.click("#forget")
    expect(page.locator("#no-memory")).to_be_visible()
    page.click("#undo")
    expect(page.locator(".card")).to_have_count(15)


def test_files_in_and_out(visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit()
    photo = Image.new("RGB", (3000, 1500), "white")
    photo.paste((20, 20, 20), (1300, 300, 1700, 1200))
    photo.save(tmp_path / "block.jpg")
    (tmp_path / "not an image.png").write_bytes(b"hello")
    page.set_input_files("#images", [tmp_path / "block.jpg"])
    expect(page.locator(".card[data-name=block]")).to_have_count(1)
    page.set_input_files("#images", [tmp_path / "not an image.png"])
    expect(page.locator("#note")).to_contain_text("not an image.png is not an image")

    with page.expect_download() as download:
        page.click("#save")
    download.value.save_as(tmp_path / "saved.safetensors")
    expect(page.locator("#download")).to_be_enabled()
    with page.expect_download() as download:
        page.click("#download")
    with Image.open(download.value.path()) as sheet:
        assert sheet.format == "PNG"
        assert sheet.size == (6 * (26 * 8 + 16) + 16, 3 * (26 * 8 + 16) + 16)

    remember(page, BAR, "bar")
    page.set_input_files("#memory-file", [tmp_path / "saved.safetensors"])
    expect(page.locator(".card")).to_have_count(1)
    expect(page.locator(".card[data-name=block]")).to_have_count(1)
    page.click("#undo")
    expect(page.locator(".card[data-name=bar]")).to_have_count(1)


def test_names_are_shown_and_never_run(visit: Callable[..., Page]) -> None:
    page = visit()
    name = "<img src=x onerror=alert(1)>"
    remember(page, RING, name)
    expect(page.locator(".group > button")).to_have_text(name)
    draw(page, RING)
    expect(page.locator("#class")).to_have_text(name)
    assert page.locator("main img").count() == 0


def test_two_windows_see_each_others_changes(visit: Callable[..., Page]) -> None:
    first, second = visit(), visit()
    remember(first, RING, "ring")
    second.evaluate("dispatchEvent(new Event('focus'))")
    expect(second.locator(".card")).to_have_count(1)
    second.locator(".card").focus()
    second.keyboard.press("Delete")
    expect(second.locator("#no-memory")).to_be_visible()
    first.evaluate("dispatchEvent(new Event('focus'))")
    expect(first.locator("#no-memory")).to_be_visible()
