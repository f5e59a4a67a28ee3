"""What the page asks for, and what it gets."""

import base64
import itertools
import math
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from tests.helpers.served import BAR, CROSS, RING, SIDE, drawing, encode
from vma.data.picture import DoubtfulPicture
from vma.fewshot import TrainedModel
from vma.serve import Store


def ask(client: httpx.Client, path: str, **message: Any) -> Any:
    response = client.post(f"/api/{path}", json=message)
    assert response.status_code == 200, response.text
    return response.json()


def cards(client: httpx.Client) -> list[dict[str, str]]:
    return client.get("/api/memory").json()["cards"]


def image(pixels: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(pixels), np.uint8).reshape(SIDE, SIDE)


def settled(client: httpx.Client) -> Any:
    """The answer for a ring, once it is known what is usual in this memory."""
    for _ in range(1000):
        answer = ask(client, "recognise", image=drawing(RING))
        if not answer["pending"]:
            return answer
        time.sleep(0.02)
    raise AssertionError("what is usual here was never worked out")


def test_an_empty_memory_says_so(client: httpx.Client) -> None:
    state = client.get("/api/memory").json()
    assert (state["cards"], state["undo"], state["size"]) == ([], None, [SIDE, SIDE])
    for path, message in (("imagine", {}), ("recognise", {"image": drawing(RING)})):
        response = client.post(f"/api/{path}", json=message)
        assert (response.status_code, response.json()) == (
            422,
            {"error": "The memory is empty: remember a drawing first."},
        )


def test_remembered_drawings_are_cards_of_ink(two_cards: httpx.Client) -> None:
    ring, cross = cards(two_cards)
    assert (ring["label"], cross["label"]) == ("ring", "cross")
    middle = SIDE // 2
    assert image(ring["pixels"])[middle, middle] == 0
    assert image(cross["pixels"])[middle, middle] == 255
    assert set(np.unique(image(ring["pixels"]))) == {0, 255}


def test_imagining_from_the_memory_a_name_and_a_card(two_cards: httpx.Client) -> None:
    ring, cross = (card["id"] for card in cards(two_cards))
    everything = ask(two_cards, "imagine", count=40, seed=1)["images"]
    assert len(everything) == 40
    assert {each["card"] for each in everything} == {ring, cross}
    assert all(image(each["pixels"]).shape == (SIDE, SIDE) for each in everything)
    assert {each["card"] for each in ask(two_cards, "imagine", label="cross")["images"]} == {cross}
    assert {each["card"] for each in ask(two_cards, "imagine", card=ring)["images"]} == {ring}


def test_temperature_0_gives_the_mean_and_a_seed_gives_the_same(two_cards: httpx.Client) -> None:
    ring = cards(two_cards)[0]["id"]
    cold = ask(two_cards, "imagine", card=ring, count=3, temperature=0)["images"]
    assert len({each["pixels"] for each in cold}) == 1
    first, again = (ask(two_cards, "imagine", seed=5) for _ in range(2))
    assert first == again != ask(two_cards, "imagine", seed=6)


def test_tiles_are_kept_as_they_are(two_cards: httpx.Client) -> None:
    ring = cards(two_cards)[0]
    state = ask(two_cards, "keep", pixels=[ring["pixels"]], label="again")
    assert [card["label"] for card in state["cards"]] == ["ring", "cross", "again"]
    assert state["cards"][2]["pixels"] == ring["pixels"]
    assert state["undo"] == "keep again"
    grey = base64.b64encode(bytes([90, 200] * (SIDE * SIDE // 2))).decode()
    kept = image(ask(two_cards, "keep", pixels=[grey], label="grey")["cards"][3]["pixels"])
    assert kept[0].tolist() == [0, 255] * (SIDE // 2)  # this model knows no grey


def test_a_tile_is_varied_like_the_card_that_it_becomes(two_cards: httpx.Client) -> None:
    ring, points = cards(two_cards)[0], [[-1.0, 0.5], [0.0, 0.0]]
    as_card = ask(two_cards, "vary", card=ring["id"], points=points)["images"]
    assert ask(two_cards, "vary", pixels=ring["pixels"], points=points)["images"] == as_card


def test_what_is_odd_about_an_image_is_said(client: httpx.Client, recwarn: pytest.WarningsRecorder) -> None:
    dots = Image.new("L", (160, 160), 255)
    for x, y in itertools.product(range(20, 140, 30), repeat=2):
        dots.paste(0, (x, y, x + 4, y + 4))
    state = ask(client, "remember", images=[drawing(RING), encode(dots)], label="x")
    doubt = "it has 16 separate parts, more than a character has"
    assert state["doubts"] == [{"image": 1, "doubt": doubt}]
    ask(client, "recognise", image=encode(dots))
    # nobody reads the server's console
    assert [each for each in recwarn if each.category is DoubtfulPicture] == []
    assert ask(client, "rename", ids=[state["cards"][0]["id"]], label="y")["doubts"] == []


def test_images_without_ink_are_left_out_where_that_is_asked_for(client: httpx.Client) -> None:
    blank = encode(Image.new("L", (26, 26), 255))
    images = [blank, drawing(RING), "nonsense", drawing(CROSS)]
    assert client.post("/api/remember", json={"images": images, "label": "x"}).status_code == 422
    state = ask(client, "remember", images=images, label="x", skip=True)
    assert len(state["cards"]) == 2
    assert [each["image"] for each in state["refused"]] == [0, 2]
    assert "no ink" in state["refused"][0]["error"]
    response = client.post("/api/remember", json={"images": [blank], "label": "x", "skip": True})
    assert response.status_code == 422
    assert len(cards(client)) == 2


def test_vary_moves_from_the_mean(two_cards: httpx.Client) -> None:
    ring = cards(two_cards)[0]["id"]
    (mean,) = ask(two_cards, "vary", card=ring, points=[[0, 0]])["images"]
    assert mean == ask(two_cards, "imagine", card=ring, count=1, temperature=0)["images"][0]["pixels"]
    points = [[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]
    main, others = (ask(two_cards, "vary", card=ring, points=points, seed=seed)["images"] for seed in (0, 3))
    assert main[1] == others[1] == mean
    assert len({*main, *others}) == 7


def test_a_target_is_read_from_the_card_that_looks_like_it(two_cards: httpx.Client) -> None:
    ring, cross = (card["id"] for card in cards(two_cards))
    for strokes, card, label in ((RING, ring, "ring"), (CROSS, cross, "cross")):
        answer = ask(two_cards, "recognise", image=drawing(strokes, shift=0.02))
        shares = {each["id"]: each["probability"] for each in answer["cards"]}
        assert answer["card"] == card == max(shares, key=lambda each: shares[each])
        assert answer["classes"][0]["label"] == label
        assert answer["classes"][0]["probability"] > 0.9
        assert math.fsum(shares.values()) == pytest.approx(1, abs=1e-5)
        assert answer["bits_per_pixel"] == pytest.approx(-answer["log_likelihood"] / math.log(2) / SIDE**2)
        assert answer["kl_a"] == pytest.approx(math.log(2), abs=0.3)
        assert answer["kl_z"] >= 0
        assert image(answer["target"]).any()


def test_novelty_is_worked_out_beside_the_answers(client: httpx.Client) -> None:
    for strokes, label in ((RING, "ring"), (CROSS, "cross")):
        images = [drawing(strokes, shift=shift) for shift in (-0.02, 0.0, 0.02)]
        ask(client, "remember", images=images, label=label)
    answer = ask(client, "recognise", image=drawing(RING))
    assert answer["novel"] is None
    assert answer["pending"]
    assert settled(client)["novel"] is False


def test_too_few_cards_for_novelty_is_a_reason_and_not_pending(two_cards: httpx.Client) -> None:
    answer = settled(two_cards)
    assert answer["novel"] is None
    assert "novelty needs" in answer["reason"]


def test_delete_rename_and_undo_each_of_them(two_cards: httpx.Client) -> None:
    before = cards(two_cards)
    ring = before[0]["id"]
    state = ask(two_cards, "rename", ids=[ring], label="  o ")
    assert [card["label"] for card in state["cards"]] == ["o", "cross"]
    state = ask(two_cards, "forget", ids=[ring])
    assert [card["label"] for card in state["cards"]] == ["cross"]
    assert state["undo"] == "delete"
    state = ask(two_cards, "undo", version=state["version"])
    assert [card["label"] for card in state["cards"]] == ["o", "cross"]
    state = ask(two_cards, "undo", version=state["version"])
    assert state["cards"] == before
    state = ask(two_cards, "undo", version=state["version"])
    assert [card["label"] for card in state["cards"]] == ["ring"]


def test_undo_of_what_another_window_has_changed_is_refused(two_cards: httpx.Client) -> None:
    version = two_cards.get("/api/memory").json()["version"]
    ask(two_cards, "remember", images=[drawing(BAR)], label="bar")
    response = two_cards.post("/api/undo", json={"version": version})
    assert response.status_code == 409
    assert len(cards(two_cards)) == 3


def test_nothing_to_undo_is_a_sentence(client: httpx.Client) -> None:
    version = client.get("/api/memory").json()["version"]
    response = client.post("/api/undo", json={"version": version})
    assert (response.status_code, response.json()) == (422, {"error": "There is nothing to take back."})


def test_everything_can_be_deleted_and_brought_back(two_cards: httpx.Client, memory_path: Path) -> None:
    before = cards(two_cards)
    state = ask(two_cards, "forget", ids=[card["id"] for card in before])
    assert state["cards"] == []
    assert not memory_path.exists()
    assert ask(two_cards, "undo", version=state["version"])["cards"] == before
    assert memory_path.exists()


def test_the_memory_as_a_file_and_back(two_cards: httpx.Client, model: TrainedModel, tmp_path: Path) -> None:
    before = cards(two_cards)
    file = two_cards.get("/api/memory/file")
    assert "attachment" in file.headers["content-disposition"]
    (tmp_path / "saved.safetensors").write_bytes(file.content)
    assert model.open_memory(tmp_path / "saved.safetensors").labels == ("ring", "cross")
    ask(two_cards, "forget", ids=[card["id"] for card in before])
    response = two_cards.post("/api/memory/file", content=file.content)
    assert response.status_code == 200
    opened = response.json()["cards"]
    assert [(card["label"], card["pixels"]) for card in opened] == [
        (card["label"], card["pixels"]) for card in before
    ]


def test_another_server_finds_the_memory_in_its_file(
    two_cards: httpx.Client, model: TrainedModel, memory_path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(memory_path.read_bytes())
    store = Store(model, copy)
    assert store.now.contents.known().labels == ("ring", "cross")
    store.close()


def test_examples_make_an_empty_page_useful(client: httpx.Client) -> None:
    state = ask(client, "examples")
    assert len(state["cards"]) == 15
    assert len({card["label"] for card in state["cards"]}) == 5
    assert all(image(card["pixels"]).any() for card in state["cards"])
    assert len(ask(client, "imagine", label="Tibetan")["images"]) == 16


def test_images_of_any_size_and_polarity(client: httpx.Client) -> None:
    white_on_black = Image.new("RGB", (300, 120))
    white_on_black.paste((255, 255, 255), (130, 20, 170, 100))
    state = ask(client, "remember", images=[encode(white_on_black)], label="bar")
    ink = image(state["cards"][0]["pixels"]) > 0
    assert ink[SIDE // 2, SIDE // 2]
    assert not ink[0].any()
    assert 0 < ink.mean() < 0.2


def test_the_page_and_its_parts_are_served_with_a_strict_policy(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"].startswith("default-src 'self';")
    script = client.get("/page/main.js")
    assert script.status_code == 200
    assert "javascript" in script.headers["content-type"]
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert client.get(path).status_code == 404
