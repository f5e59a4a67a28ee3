"""The page as plain files: in a browser alone, it answers as the server does."""

import asyncio
import base64
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Browser, Error, Page, expect
from scipy import ndimage
from scipy.special import stdtr
from skimage.morphology import skeletonize

from benchmarks.font_scripts import photographed
from tests.helpers.browsing import draw, wait_for_ink
from tests.helpers.pages import lit, sketch
from tests.helpers.served import BAR, CROSS, RING, SIDE, drawing, encode
from vma import InputError, Memory
from vma.cli import run
from vma.data import FolderOptions
from vma.data.picture import prepare
from vma.fewshot import load
from vma.pretrained import pretrained_names
from vma.serve import messages
from vma.serve.answers import read_png
from vma.serve.app import Api
from vma.serve.static_page import write_static
from vma.serve.store import Store
from vma.warps import turned

CLOSE = 1e-3
Answer = TypeVar("Answer")
NEW = [[(0.2, 0.8), (0.35, 0.2), (0.5, 0.8), (0.65, 0.2), (0.8, 0.8)]]


class Quiet(SimpleHTTPRequestHandler):
    """Any web server: it knows nothing of us."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page of a model in the box, written once."""

    @cache
    def made(name: str) -> Path:
        torch.set_default_dtype(torch.float32)
        folder = tmp_path_factory.mktemp("static") / name
        write_static(load(name), folder)
        return folder

    return made


@pytest.fixture
def visit(browser: Browser, folder_of: Callable[[str], Path]) -> Iterator[Callable[[str], Page]]:
    """Open the page of a model; nothing may go wrong unseen, and nothing is asked of anyone else."""
    contexts, servers, troubles, asked = [], [], [], []

    def go(name: str) -> Page:
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder_of(name)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        context = browser.new_context(base_url=address)
        servers.append(server)
        contexts.append(context)
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.on("request", lambda request: asked.append((address, request.url)))
        page.on(
            "console", lambda line: troubles.append(line.text) if line.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto("/")
        expect(page.locator("#model")).to_contain_text(f"{name}, 26×26 pixels", timeout=120_000)
        return page

    yield go
    for each in contexts:
        each.close()
    for server in servers:
        server.shutdown()
        server.server_close()
    assert troubles == []
    assert [url for address, url in asked if not url.startswith((address, f"blob:{address}"))] == []


def ask(page: Page, name: str, *question: Any) -> Any:
    """What the page's own module says."""
    code = "async ([name, question]) => (await import('/page/api.js'))[name](...question)"
    return page.evaluate(code, [name, list(question)])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[[str], Api]]:
    """What the server would say, without a network between."""
    torch.set_default_dtype(torch.float32)
    opened = []

    def start(name: str) -> Api:
        opened.append(Api(Store(load(name), tmp_path / f"{name}.safetensors")))
        return opened[-1]

    yield start
    for api in opened:
        api.close()


small = partial(drawing, side=SIDE)  # of the model's size: it comes out of all steps as it is


def levels(pixels: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(pixels), np.uint8).astype(int)


def apart(question: Coroutine[Any, Any, Answer]) -> Answer:
    """The answer to a question, in a thread: this one has a loop already, the browser's."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, question).result()


def settled(recognise: Callable[[str], Any], image: str) -> Any:
    """The answer, once it is known what is usual."""
    for _ in range(600):
        answer = recognise(image)
        if not answer["pending"]:
            return answer
        threading.Event().wait(0.2)
    raise AssertionError("what is usual was never worked out")


@pytest.mark.parametrize("name", pretrained_names())
def test_it_recognises_and_scores_as_the_server_does(
    name: str, visit: Callable[[str], Page], server: Callable[[str], Api]
) -> None:
    page, api = visit(name), server(name)

    async def both() -> list[dict[str, str]]:
        await api.examples()
        state = await api.remember(messages.Remember(images=[small(RING), small(CROSS)], label="mine"))
        return [card.model_dump() for card in state.cards]

    theirs = apart(both())
    ask(page, "examples")
    ours = ask(page, "remember", [small(RING), small(CROSS)], "mine")["cards"]
    assert [(card["label"], card["pixels"]) for card in ours] == [
        (card["label"], card["pixels"]) for card in theirs
    ]

    def of_the_server(image: str) -> Any:
        return apart(api.recognise(messages.Recognise(image=image))).model_dump()

    number = {card["id"]: i for cards in (ours, theirs) for i, card in enumerate(cards)}
    for strokes, shift in ((RING, 0.03), (CROSS, -0.02), (BAR, 0.0), (NEW, 0.0)):
        image = small(strokes, shift=shift)
        wanted, found = settled(of_the_server, image), settled(partial(ask, page, "recognise"), image)
        assert (found["target"], found["novel"], found["reason"]) == (
            wanted["target"], wanted["novel"], wanted["reason"],
        )  # fmt: skip
        assert number[found["card"]] == number[wanted["card"]]
        for each in ("log_likelihood", "bits_per_pixel", "kl_a", "kl_z"):
            assert found[each] == pytest.approx(wanted[each], abs=CLOSE)
        for mine, other in zip(found["cards"], wanted["cards"], strict=True):
            assert number[mine["id"]] == number[other["id"]]
            assert mine["probability"] == pytest.approx(other["probability"], abs=CLOSE)
        shares = {each["label"]: each["probability"] for each in wanted["classes"]}
        assert {each["label"]: each["probability"] for each in found["classes"]} == pytest.approx(
            shares, abs=CLOSE
        )
        assert np.abs(levels(found["reconstruction"]) - levels(wanted["reconstruction"])).max() <= 1


@pytest.mark.parametrize("name", pretrained_names())
def test_it_draws_what_the_model_draws(name: str, visit: Callable[[str], Page]) -> None:
    torch.set_default_dtype(torch.float32)
    page, model = visit(name), load(name)
    cards = ask(page, "examples")["cards"]
    items = torch.tensor(np.stack([levels(card["pixels"]) for card in cards]) / 255).float().view(-1, 26, 26)
    memory = model.remember(items)

    generator = torch.Generator().manual_seed(3)
    chance = [torch.rand(6, generator=generator), torch.randn(6, 64, generator=generator)]
    numbers = torch.rand(6, 26, 26, generator=generator)
    sums = model.model.prior(memory.keyed).log_probs.exp().cumsum(0)
    a = torch.searchsorted(sums, chance[0] * sums[-1], right=True)
    wanted = model.model.draw(Memory(memory.items), a, 0.7 * chance[1], numbers, 0.7).shown
    given = dict(
        zip(
            ("addresses", "noise", "numbers"), [x.flatten().tolist() for x in (*chance, numbers)], strict=True
        )
    )
    images = ask(page, "imagine", {"count": 6, "temperature": 0.7, "chance": given})["images"]
    assert [image["card"] for image in images] == [cards[i]["id"] for i in a.tolist()]
    for image, each in zip(images, wanted, strict=True):
        assert np.abs(levels(image["pixels"]) / 255 - each.flatten().numpy()).max() <= 1 / 255

    points = [(-2.0, 0.0), (0.0, 0.0), (1.5, -1.0)]
    found = ask(page, "vary", {"card": cards[4]["id"], "points": points})["images"]
    for pixels, each in zip(found, memory.vary(4, points), strict=True):
        assert np.abs(levels(pixels) / 255 - each.flatten().numpy()).max() <= 1 / 255
    if model.config.likelihood == "reading-order":
        cold = ask(page, "imagine", {"count": 2, "temperature": 0, "card": cards[4]["id"]})["images"]
        assert [image["pixels"] for image in cold] == [found[1]] * 2
    other = ask(page, "vary", {"pixels": cards[4]["pixels"], "points": points, "seed": 2})["images"]
    assert other[1] == found[1]
    assert other != found


def alike(page: Page, image: str) -> tuple[np.ndarray, np.ndarray]:
    """The card that a picture becomes here, and the ink that the server makes of it; both doubt it or none."""
    state = ask(page, "remember", [image], "new")
    wanted = prepare(read_png(image), (SIDE, SIDE), FolderOptions())
    assert [each["doubt"] for each in state["doubts"]] == ([wanted.doubt] if wanted.doubt else [])
    return levels(state["cards"][-1]["pixels"]), wanted.ink.flatten().astype(int)


def letters() -> Iterator[tuple[str, Image.Image]]:
    """Letters in bold print, as people have them."""
    font = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans-Bold.ttf"
    for i, letter in enumerate("ЖΩд"):
        size = 50 + 90 * i
        clean = Image.new("L", (3 * size, 3 * size), 255)
        ImageDraw.Draw(clean).text(
            (1.5 * size, 1.5 * size), letter, 0, ImageFont.truetype(font, size), anchor="mm"
        )
        white = Image.new("RGBA", clean.size, "white")
        white.putalpha(Image.eval(clean, lambda level: 255 - level))
        yield "clean", clean
        yield "photographed", photographed(clean, i)
        yield "white on transparent", white
        yield "chalk", Image.eval(clean, lambda level: 240 - level * 7 // 8)
        yield "tiny", clean.resize((31, 22), Image.Resampling.BOX)


def test_a_picture_becomes_the_same_ink_as_with_the_server(visit: Callable[[str], Page]) -> None:
    """Pixel for pixel: paper, polarity, crop, strokes of one pen."""
    page = visit("omniglot")
    for kind, picture in letters():
        found, wanted = alike(page, encode(picture))
        assert (found == wanted).all(), kind
        assert 20 < np.count_nonzero(found) < 250
    for seed in range(4):
        photograph = Image.fromarray(lit(sketch(seed), angle=seed, fall=0.5))
        found, wanted = alike(page, encode(photograph))
        assert (found == wanted).all()
    pad = page.evaluate("""async () => {
      const { Pad } = await import('/page/pad.js');
      const canvas = document.createElement('canvas'), pad = new Pad(canvas, () => {});
      pad.strokes = [{ width: 2.6, points: [[0.2, 0.25], [0.71, 0.8], [0.4, 0.33]] }];
      pad.strokes.push({ width: 1.3, points: [[0.8, 0.2]] });
      return pad.image();
    }""")
    for image in (pad, small(BAR), drawing(NEW, side=333)):
        found, wanted = alike(page, image)
        assert (found == wanted).all()


def test_what_is_odd_about_a_picture_is_said(visit: Callable[[str], Page]) -> None:
    page, rng = visit("omniglot"), np.random.default_rng(0)
    shades = np.clip(np.cumsum(rng.normal(0, 6, (200, 300)), 1) + 128, 0, 255).astype(np.uint8)
    dots = np.full((160, 160), 255, dtype=np.uint8)
    dots[20:140:30, 20:140:30] = dots[21:140:30, 20:140:30] = dots[20:140:30, 21:140:30] = 0
    dots[21:140:30, 21:140:30] = 0
    for picture in (shades, dots):
        found, wanted = alike(page, encode(Image.fromarray(picture)))
        assert (found == wanted).all()
        assert len(ask(page, "remember", [encode(Image.fromarray(picture))], "odd")["doubts"]) == 1
    blank = encode(Image.new("L", (208, 208), 255))
    with pytest.raises(Error, match="There is no ink in the image"):
        ask(page, "remember", [blank], "nothing")


def test_strokes_are_thinned_as_scikit_image_does(visit: Callable[[str], Page]) -> None:
    """Of blots of every size, so that all places of the table are asked."""
    page, rng = visit("omniglot"), np.random.default_rng(1)
    code = """async ([side, blots]) => {
      const { thinned } = await import('/here/thinning.js'), { grid } = await import('/here/grids.js');
      return blots.map((each) => [...thinned(grid(side, side, Uint8Array.from(each))).data]);
    }"""
    fields = [ndimage.gaussian_filter(rng.random((40, 40)), blur) for blur in (0.5, 1, 2, 3) * 8]
    blots = [
        field > np.quantile(field, share)
        for field, share in zip(fields, np.linspace(0.2, 0.8, 32), strict=True)
    ]
    found = page.evaluate(code, [40, [blot.astype(int).flatten().tolist() for blot in blots]])
    for blot, each in zip(blots, found, strict=True):
        assert (skeletonize(blot).astype(int).flatten() == each).all()


def test_memories_go_to_and_fro(visit: Callable[[str], Page], tmp_path: Path) -> None:
    page, model = visit("omniglot"), load("omniglot")
    labels = [card["label"] for card in ask(page, "examples")["cards"]]
    with page.expect_download() as download:
        page.reload()  # the memory has been kept
        page.click("#save")
    download.value.save_as(tmp_path / "memory.safetensors")
    memory = model.open_memory(tmp_path / "memory.safetensors")
    assert list(memory.labels) == labels
    memory.forget([0, 1, 2]).save(tmp_path / "fewer.safetensors")
    page.set_input_files("#memory-file", tmp_path / "fewer.safetensors")
    expect(page.locator(".card")).to_have_count(len(memory) - 3)
    page.click("#undo")
    expect(page.locator(".card")).to_have_count(len(memory))
    (tmp_path / "other.safetensors").write_bytes(b"something else")
    page.set_input_files("#memory-file", tmp_path / "other.safetensors")
    expect(page.locator("#note")).to_contain_text("The file is not a memory file, or is damaged.")


def test_a_visitor_draws_without_a_network(visit: Callable[[str], Page]) -> None:
    page = visit("omniglot-crisp")
    page.context.set_offline(True)
    for strokes, name in ((RING, "ring"), (CROSS, "cross")):
        draw(page, strokes)
        page.fill("#name", name)
        page.click("#keep")
        expect(page.locator(f".group:has-text('{name}')")).to_be_visible()
    draw(page, RING, shift=0.02)
    expect(page.locator("#class")).to_have_text("ring")
    expect(page.locator("#score")).to_contain_text("nats")
    expect(page.locator("#grid canvas")).to_have_count(18)
    wait_for_ink(page, "#varied")


def test_statistics_of_novelty(visit: Callable[[str], Page]) -> None:
    page = visit("omniglot")
    values = [(-1.0, 1.5), (0.0, 4.0), (1.7, 7.0), (2.4, 24.5), (6.0, 2.0)]
    code = "async values => (await import('/here/novelty.js')).tail(...values)"
    found = [page.evaluate(code, list(each)) for each in values]
    assert found == pytest.approx([stdtr(freedom, -t) for t, freedom in values], abs=2e-4)
    for height, width in ((3, 3), (2, 3)):
        ink = torch.arange(6.0 if height == 2 else 9.0).view(height, width)
        code = "async ([size, ink]) => (await import('/here/novelty.js')).turns({ size }, ink).map((e) => [...e])"
        found = page.evaluate(code, [[height, width], ink.flatten().tolist()])
        which = range(1, 8) if height == width else (1, 4, 5)
        assert found == [turned(ink[None], turn).flatten().tolist() for turn in which]


def test_the_folder(
    folder_of: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.set_default_dtype(torch.float32)  # as a user has it
    folder = folder_of("omniglot")
    assert (folder / "runtime/LICENSE.txt").read_text().count("Microsoft") == 1
    assert (folder / "runtime/ort-wasm-simd-threaded.wasm").read_bytes()[:4] == b"\0asm"
    write_static(load("omniglot"), folder)  # over itself
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("all of it")
    with pytest.raises(InputError, match="mine holds something else: name an empty folder"):
        run(["serve", "omniglot", "--static", str(tmp_path / "mine")])
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_every_function_of_the_page_is_there() -> None:
    """The page may ask nothing that only the server's module knows."""
    from vma.serve.app import PAGE
    from vma.serve.static_page import STATIC

    def exported(path: Path) -> set[str]:
        lines = path.read_text().splitlines()
        names = {line.split()[2] for line in lines if line.startswith(("export const", "export function"))}
        return (
            names | {"Refusal"}
            if any("Refusal" in line for line in lines if line.startswith("export"))
            else names
        )

    assert exported(PAGE / "api.js") == exported(STATIC / "api.js")
