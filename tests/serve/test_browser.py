"""The page in a real browser: Chromium from the distribution's packages, driven by Playwright."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, expect

from tests.helpers.browsing import draw, inked, remember
from tests.helpers.served import BAR, CROSS, RING, Points

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def touch(page: Page, stroke: Points) -> None:
    """Draw a stroke with a finger."""
    fingers = page.context.new_cdp_session(page)
    page.locator("#pad").scroll_into_view_if_needed()
    box = page.locator("#pad").bounding_box()
    assert box is not None
    places = [{"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]} for x, y in stroke]
    fingers.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": places[:1]})
    for place in places[1:]:
        fingers.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [place]})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


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
        assert float(winner.evaluate("c => getComputedStyle(c).getPropertyValue('--p')")) > 0.5
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

    for slider, key, said in (
        ("Across", "ArrowRight", "0.25 more than typical"),
        ("Down", "ArrowLeft", "0.25 less than typical"),
    ):
        page.get_by_role("slider", name=slider).focus()
        press(key)
        expect(page.get_by_role("slider", name=slider)).to_have_attribute("aria-valuetext", said)


def test_a_finger_on_a_phone(visit: Callable[..., Page]) -> None:
    page = visit(**PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    touch(page, RING[0])
    page.fill("#name", "ring")
    page.click("#keep")
    page.click("#tabs [data-task=memory]")
    expect(page.locator(".card")).to_have_count(1)
    assert inked(page, ".card canvas") > 30
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_on_a_phone_the_verdict_is_under_the_pad_and_a_screen_has_one_task(
    visit: Callable[..., Page],
) -> None:
    page = visit(**PHONE)
    remember(page, RING, "ring")
    touch(page, RING[0])
    expect(page.locator("#class")).to_have_text("ring")
    pad, verdict = page.locator("#pad").bounding_box(), page.locator("#verdict").bounding_box()
    assert pad is not None
    assert verdict is not None
    assert pad["y"] + pad["height"] <= verdict["y"]
    assert verdict["y"] + verdict["height"] < PHONE["viewport"]["height"] - 60  # above the tabs
    for task, shown in (("draw", 2), ("memory", 1), ("imagine", 1), ("vary", 1)):
        page.click(f"#tabs [data-task={task}]")
        expect(page.locator("main > section:visible")).to_have_count(shown)
        expect(page.locator(f"main > section.{task}")).to_be_visible()
        expect(page.locator("#tabs [aria-current]")).to_have_attribute("data-task", task)


def test_a_dot_is_ink_and_no_error(visit: Callable[..., Page]) -> None:
    page = visit()
    remember(page, RING, "ring")
    expect(page.locator("#note")).to_contain_text("Remembered as ring")
    draw(page, [[(0.5, 0.5)]])
    expect(page.locator("#answer")).to_be_visible()
    assert inked(page, "#target") > 0
    expect(page.locator("#note")).to_contain_text("Remembered as ring")  # no complaint has come since
    page.fill("#name", "dot")
    page.click("#keep")
    expect(page.locator(".card[data-name=dot]")).to_have_count(1)


def test_without_a_name_a_drawing_joins_no_class_and_a_chip_names_it(visit: Callable[..., Page]) -> None:
    page = visit()
    remember(page, RING, "ring")
    draw(page, RING)
    chip = page.get_by_role("group", name="Names that would fit").get_by_role("button", name="ring")
    expect(chip).to_have_attribute("aria-pressed", "false")
    page.click("#keep")
    expect(page.locator(".card[data-name=A]")).to_have_count(1)
    expect(page.locator(".card[data-name=ring]")).to_have_count(1)
    expect(page.locator("#note")).to_contain_text("Remembered as A, a new name.")
    draw(page, RING)
    chip.click()
    expect(page.locator("#name")).to_have_value("ring")
    expect(chip).to_have_attribute("aria-pressed", "true")
    page.click("#keep")
    expect(page.locator(".card[data-name=ring]")).to_have_count(2)


def test_a_name_that_was_tapped_goes_with_its_drawing_and_one_that_was_typed_stays(
    visit: Callable[..., Page],
) -> None:
    page = visit()
    remember(page, RING, "ring")
    draw(page, RING)
    page.locator(".chip").click()
    expect(page.locator("#name")).to_have_value("ring")
    page.click("#clear")
    expect(page.locator("#name")).to_have_value("")
    draw(page, RING)
    page.fill("#name", "ring")
    page.click("#clear")
    expect(page.locator("#name")).to_have_value("ring")


def test_the_headline_says_new_when_it_is_new(visit: Callable[..., Page]) -> None:
    page = visit()
    for name, strokes in (("ring", RING), ("cross", CROSS)):
        for shift in (-0.02, 0.0, 0.02):
            draw(page, strokes, shift=shift)
            page.fill("#name", name)
            page.click("#keep")
            expect(page.locator("#pad")).to_be_focused()
    expect(page.locator(".card")).to_have_count(6)
    draw(page, BAR)
    expect(page.locator("#class")).to_have_text("New")
    expect(page.locator("#probability")).to_contain_text("closest to")
    page.click("#clear")
    draw(page, RING)
    expect(page.locator("#class")).to_have_text("ring")
    expect(page.locator("#probability")).to_have_text("100 %")


def test_a_first_visit_is_told_three_steps_once(visit: Callable[..., Page]) -> None:
    page = visit(first=True)
    expect(page.locator("#steps li")).to_have_count(3)
    expect(page.locator("#steps")).to_be_visible()
    page.click("#steps-examples")
    expect(page.locator(".card")).to_have_count(15)
    page.reload()
    expect(page.locator(".card")).to_have_count(15)
    expect(page.locator("#steps")).to_be_hidden()
    page.click("#show-steps")
    expect(page.locator("#steps")).to_be_visible()


def test_an_imagined_tile_is_kept_or_varied(visit: Callable[..., Page]) -> None:
    page = visit()
    remember(page, RING, "ring")
    expect(page.locator("#download")).to_be_enabled()
    page.locator(".cell").nth(4).click()
    expect(page.locator("#tile-what")).to_have_text("Imagined from a card of ring")
    before = page.locator(".cell canvas").nth(4).evaluate("canvas => canvas.toDataURL()")
    page.click("#keep-tile")
    expect(page.locator(".card[data-name=ring]")).to_have_count(2)
    assert page.locator(".cell canvas").nth(4).evaluate("canvas => canvas.toDataURL()") == before
    page.click("#vary-tile")
    expect(page.locator("#vary-scope")).to_have_text("an imagined ring")
    expect(page.locator("#keep-varied")).to_be_visible()
    page.click("#keep-varied")
    expect(page.locator(".card[data-name=ring]")).to_have_count(3)
    expect(page.locator("#vary-scope")).to_have_text("an imagined ring")
    page.click("#note-undo")
    expect(page.locator(".card[data-name=ring]")).to_have_count(2)


def test_examples_selection_and_variation(visit: Callable[..., Page]) -> None:
    page = visit(color_scheme="dark", reduced_motion="reduce")
    page.click("#start")
    expect(page.locator(".card")).to_have_count(15)
    expect(page.locator("#tiles canvas")).to_have_count(25)

    page.get_by_role("button", name="All of Tibetan, 3 cards").click()
    expect(page.locator("#imagine-scope")).to_have_text("Tibetan")
    expect(page.locator("#grid .cell[title='Tibetan']")).to_have_count(18)

    image = "document.getElementById('varied').toDataURL()"
    page.wait_for_function("document.getElementById('varied').width == 208")
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
    expect(page.locator("#note")).to_contain_text("Deleted 15 cards.")
    page.click("#note-undo")
    expect(page.locator(".card")).to_have_count(15)


def test_files_in_and_out(visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit()
    photo = Image.new("RGB", (3000, 1500), "white")
    photo.paste((20, 20, 20), (1300, 300, 1700, 1200))
    photo.save(tmp_path / "block.jpg")
    (tmp_path / "not an image.png").write_bytes(b"hello")
    page.set_input_files("#images", [tmp_path / "block.jpg"])
    expect(page.locator("#ask-name")).to_have_value("block")
    page.click("#ask-keep")
    expect(page.locator(".card[data-name=block]")).to_have_count(1)
    page.set_input_files("#images", [tmp_path / "not an image.png"])
    expect(page.locator("#note")).to_contain_text("1 could not be read: not an image.png.")

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


def test_several_files_have_one_name_and_one_sentence(visit: Callable[..., Page], tmp_path: Path) -> None:
    page = visit()
    files = [
        tmp_path / name for name in ("house 1.png", "house 2.png", "house 3.png", "house 4.png", "h.txt")
    ]
    for i, file in enumerate(files[:3]):
        image = Image.new("L", (200, 200), "white")
        image.paste(0, (60 + 10 * i, 40, 140, 150))
        image.save(file)
    Image.new("L", (200, 200), "white").save(files[3])
    files[4].write_text("no image")
    with Image.open(files[2]) as image:
        for x in range(0, 190, 14):
            image.paste(0, (x, 170, x + 9, 179))  # too large for a speck
        image.save(files[2])
    page.set_input_files("#images", files)
    expect(page.locator("#ask-title")).to_have_text("One name for 4 images")
    expect(page.locator("#ask-line")).to_have_text("1 could not be read: h.txt.")
    page.fill("#ask-name", "house")
    page.keyboard.press("Enter")
    expect(page.locator(".card[data-name=house]")).to_have_count(3)
    expect(page.locator("#note")).to_contain_text(
        "3 remembered, 2 could not be read: h.txt, house 4.png. Hardly the drawing of one character: house 3.png "
        "(it has 15 separate parts, more than a character has)."
    )
    page.click("#note-undo")
    expect(page.locator("#no-memory")).to_be_visible()
    page.set_input_files("#images", files[:2])
    expect(page.locator("#ask-name")).to_have_value("house")
    page.click("#ask-cancel")
    expect(page.locator("#no-memory")).to_be_visible()


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
