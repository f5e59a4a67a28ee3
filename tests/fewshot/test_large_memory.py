"""A memory on disk answers as a small one does, from Python and from the shell."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.oracles import small_convolutional
from tests.helpers.trained_models import SIZE, trained
from vma.cli import run
from vma.errors import InputError
from vma.evaluation import measures
from vma.fewshot import ImageMemory, LargeMemory, TrainedModel
from vma.fewshot.rekeying import rekey
from vma.large.snapshot import open_snapshot
from vma.large.verifying import check_files
from vma.proposals import SearchedMemory


def drawings(count: int, seed: int = 0) -> np.ndarray:
    """Rectangles, whose border is empty."""
    draw, images = np.random.default_rng(seed), np.zeros((count, *SIZE), np.uint8)
    for image in images:
        top, left = draw.integers(1, 8), draw.integers(1, 10)
        image[top : top + draw.integers(3, 8), left : left + draw.integers(3, 10)] = 255
    return images


LABELS = [None if i % 4 == 3 else "abc"[i % 4] for i in range(24)]


@pytest.fixture
def model(tmp_path: Path) -> TrainedModel:
    return trained(tmp_path / "run")


@pytest.fixture
def both(model: TrainedModel, tmp_path: Path) -> tuple[LargeMemory, ImageMemory]:
    """The same 24 items, on disk and not; a search finds all of them."""
    large = model.create_memory(tmp_path / "m")
    assert large.add(list(drawings(24)[:10]), LABELS[:10]) == range(10)
    assert large.add(list(drawings(24)[10:]), LABELS[10:]) == range(10, 24)
    return large, model.remember(list(drawings(24)), LABELS)


def test_answers_are_those_of_a_small_memory(both: tuple[LargeMemory, ImageMemory]) -> None:
    large, small = both
    x = drawings(2, seed=9)
    for rule in ("joined", "address", "likelihood"):
        for each in x:
            our, their = large.recognise(each, by=rule)[0], small.recognise(each, by=rule)[0]
            assert our.label == their.label
            assert our.probabilities.keys() == their.probabilities.keys()
            expected = list(their.probabilities.values())
            np.testing.assert_allclose(sorted(our.probabilities.values()), sorted(expected), atol=1e-3)
    ours, theirs = large.explain(x[0]), small.explain(x[0])
    assert ours.looked_at is not None
    by_item = dict(zip(ours.looked_at.tolist(), ours.q.tolist(), strict=True))
    np.testing.assert_allclose([by_item[i] for i in range(24)], theirs.q, atol=1e-4)
    assert [each.item for each in ours.top] == [each.item for each in theirs.top]
    assert ours.log_p == pytest.approx(theirs.log_p, abs=2)
    assert large.of_a_class == 24 / 9
    score = large.score(x[0], samples=8)[0]
    assert score.angle == pytest.approx(small.score(x[0], samples=8)[0].angle, abs=1e-5)
    assert score.novel is not None


def test_it_imagines_and_varies_from_what_is_asked_for(both: tuple[LargeMemory, ImageMemory]) -> None:
    large, small = both
    assert large.imagine(4, seed=1).images.shape == (4, *SIZE)
    assert {LABELS[i] for i in large.imagine(8, label="b", seed=1).items.tolist()} == {"b"}
    assert set(large.imagine(3, item=7, seed=1).items.tolist()) == {7}
    at = [(0.0, 0.0), (1.0, 1.0)]
    torch.testing.assert_close(large.vary(5, at), small.vary(5, at), atol=1e-4, rtol=0)
    with pytest.raises(InputError, match="Unknown label 'z'"):
        large.imagine(2, label="z")
    with pytest.raises(InputError, match="leave one out"):
        large.imagine(2, label="a", item=0)


def test_it_changes_in_place_and_is_opened_again(
    both: tuple[LargeMemory, ImageMemory], model: TrainedModel
) -> None:
    large, _ = both
    assert large.index.count() == 24
    large.forget([0, 23])
    large.relabel([1], "new")
    assert large.add(drawings(1, seed=5), "late") == range(24, 25)
    again = model.open_memory(large.folder)
    assert isinstance(again, LargeMemory)
    for memory in (large, again):
        assert (len(memory), memory.index.count()) == (23, 23)
        assert 24 in memory.looks(drawings(1, seed=5), None)[0].items
        assert memory[24].label == "late"
        assert memory[1].label == "new"
        assert memory[3].name == "(item 3)"
    assert isinstance(large.searched, SearchedMemory)


def test_evaluations_take_it(both: tuple[LargeMemory, ImageMemory]) -> None:
    large, small = both
    x = torch.from_numpy(drawings(6, seed=3)).float() / 255
    found = [measures(large.model, x, memory, 64) for memory in (large.searched, small.keyed)]
    assert np.mean(found[0].nll) == pytest.approx(np.mean(found[1].nll), abs=1)
    assert np.mean(found[0].kl_a) == pytest.approx(np.mean(found[1].kl_a), abs=0.2)


def test_keys_of_another_model_are_refused_and_made_anew(
    both: tuple[LargeMemory, ImageMemory], tmp_path: Path
) -> None:
    large, _ = both
    large.forget([2])
    other = trained(tmp_path / "other", seed=2)
    with pytest.raises(InputError, match="make all keys anew with 'vma memory rekey'"):
        other.open_memory(large.folder)
    rekey(other, large.folder, lambda done, total: None)
    found = other.open_memory(large.folder)
    assert isinstance(found, LargeMemory)
    check_files(found.snapshot, lambda done, total: None)
    expected = other.remember(list(drawings(24))).keyed.keys
    np.testing.assert_allclose(found.snapshot.keys[np.arange(24)], expected, atol=1e-5)
    a = torch.from_numpy(found.snapshot.alive())
    assert float(found.snapshot.prior.log_prob(a).exp().sum()) == pytest.approx(1, abs=1e-12)
    large_images = trained(tmp_path / "large", replace(small_convolutional(), height=20))
    with pytest.raises(InputError, match="holds images of 17x22, which this model does not take"):
        rekey(large_images, large.folder, lambda done, total: None)


def test_a_sharpness_is_fitted_to_a_memory_and_kept(
    both: tuple[LargeMemory, ImageMemory], model: TrainedModel, tmp_path: Path
) -> None:
    large, _ = both
    x = torch.from_numpy(drawings(1, seed=9)).float() / 255
    before = model.model.proposal(x, large.searched)
    found = large.sharpen(items=8)
    assert found != 1
    after = model.model.proposal(x, large.searched)
    assert torch.equal(after.addresses, before.addresses)
    expected = replace(before, sharpness=found)
    torch.testing.assert_close(after.log_r, expected.log_r)
    assert not torch.allclose(after.log_r, before.log_r)
    again = model.open_memory(large.folder)
    assert isinstance(again, LargeMemory)
    assert again.searched.sharpness == found
    assert again.sharpen(items=8) == found  # what was fitted before does not matter
    with pytest.raises(
        InputError, match="fitted to 8 or more items; this memory has 24, and 4 were asked for"
    ):
        large.sharpen(items=4)
    rekey(trained(tmp_path / "other", seed=5), large.folder, lambda done, total: None)
    assert open_snapshot(large.folder).manifest.sharpness == 1


def vma(*arguments: object) -> None:
    run([str(each) for each in arguments])


def test_the_shell_builds_goes_on_and_asks(
    model: TrainedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for i, (image, label) in enumerate(zip(drawings(8), LABELS[:8], strict=True)):
        path = tmp_path / "symbols" / (label or "none") / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(255 - image).save(path)
    np.save(tmp_path / "more.npy", drawings(5, seed=4))
    m, run_folder, target = tmp_path / "m", tmp_path / "run", tmp_path / "symbols/a/0.png"
    vma("memory", "build", tmp_path / "symbols", "--out", m, "--model", run_folder)
    assert "8 new items" in capsys.readouterr().out
    vma("memory", "build", tmp_path / "symbols", tmp_path / "more.npy", "--out", m, "--model", run_folder)
    assert "5 new items" in capsys.readouterr().out
    vma("memory", "forget", m, 12)
    vma("memory", "relabel", m, 11, "--label", "late")
    vma("memory", "info", m)
    vma("memory", "verify", m, "--model", run_folder)
    said = capsys.readouterr().out
    assert "12 (1 forgotten)" in said
    assert "12 items, as many as were written; Σ p(a) = 1" in said
    vma("recognise", run_folder, target, "--memory", m, "--out", tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())[0]["items"]
    vma("score", run_folder, target, "--memory", m, "--samples", 4)
    vma("explain", run_folder, target, "--memory", m, "--samples", 4, "--out", tmp_path / "why.png")
    vma("explain", run_folder, target, "--memory", m, "--samples", 4, "--out", tmp_path / "why.json")
    assert len(json.loads((tmp_path / "why.json").read_text())["looked_at"]) == 12
    vma("imagine", run_folder, "--memory", m, "--n", 4, "--out", tmp_path / "new.png")
    vma("memory", "index", m, "exact")
    capsys.readouterr()
    vma("memory", "sharpen", m, "--items", 8, "--model", run_folder)
    sharpness = f"{open_snapshot(m).manifest.sharpness:.2f}"
    assert f"is read with a sharpness of {sharpness}." in capsys.readouterr().out
    vma("memory", "info", m)
    assert f"sharpness {sharpness}" in capsys.readouterr().out
    assert (tmp_path / "why.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(InputError, match="exists and is not empty"):
        vma("memory", "build", tmp_path / "more.npy", "--out", tmp_path / "symbols", "--model", run_folder)
    with pytest.raises(InputError, match="is not a memory on disk"):
        vma("memory", "add", tmp_path / "symbols", tmp_path / "more.npy", "--model", run_folder)
    with pytest.raises(InputError, match="Unknown index 'nothing'"):
        vma("memory", "index", m, "nothing")
