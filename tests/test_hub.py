"""Models on the Hugging Face hub's layout: the same model comes back, offline, or one clear sentence."""

import json
import sys
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch

import vma
from tests.helpers.trained_models import drawings, trained
from vma import InputError
from vma.cli import run
from vma.fewshot import TrainedModel
from vma.pretrained import card_of, pretrained_names

FILES = ["README.md", "config.json", "model.safetensors"]


@pytest.fixture(autouse=True)
def as_a_user_has_it() -> None:
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def model(tmp_path: Path) -> TrainedModel:
    return trained(tmp_path / "run")


def test_a_folder_gives_the_same_model(model: TrainedModel, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "shared")
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == FILES
    back = vma.from_pretrained(tmp_path / "shared")
    assert (back.fingerprint, back.config, back.name) == (model.fingerprint, model.config, "shared")
    memories = [each.remember(drawings(4), ["a", "a", "b", "b"]) for each in (model, back)]
    first, second = (memory.imagine(3, seed=1).images for memory in memories)
    assert first.equal(second)
    assert vma.load(tmp_path / "shared").fingerprint == model.fingerprint


@pytest.mark.parametrize("name", pretrained_names())
def test_a_model_in_the_box_goes_round_in_half_precision(name: str, tmp_path: Path) -> None:
    box = vma.from_pretrained(name)
    assert box.fingerprint == vma.load(name).fingerprint
    box.save_pretrained(tmp_path / "mine", half=True)
    assert vma.from_pretrained(str(tmp_path / "mine")).fingerprint == box.fingerprint
    assert (tmp_path / "mine/model.safetensors").stat().st_size < 3e6
    assert {parameter.dtype for parameter in box.model.parameters()} == {torch.float32}


def test_cards(model: TrainedModel, tmp_path: Path) -> None:
    vma.load("omniglot").save_pretrained(tmp_path / "box", half=True)
    text, card = (tmp_path / "box/README.md").read_text(), card_of("omniglot")
    assert text.startswith("---\nlibrary_name: vma\nlicense: mit\ntags:\n- few-shot\n")
    for said in (card.data, card.bad_for, card.command, *(str(each) for each in card.numbers)):
        assert said in text
    assert "To be told" not in text
    model.save_pretrained(tmp_path / "mine")
    text = (tmp_path / "mine/README.md").read_text()
    assert "license:" not in text
    assert f"{sum(each.numel() for each in model.model.parameters()):,} parameters" in text
    assert "## To be told" in text
    model.save_pretrained(tmp_path / "mine", card="All of it.", overwrite=True)
    assert (tmp_path / "mine/README.md").read_text() == "All of it."


def test_a_run_of_the_name_of_a_model_in_the_box_does_not_get_its_card(tmp_path: Path) -> None:
    assert vma.load("omniglot").card == card_of("omniglot")
    assert trained(tmp_path / "omniglot").card is None


def test_nothing_is_overwritten_by_mistake(model: TrainedModel, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "shared")
    with pytest.raises(InputError, match="shared holds a model already: choose another folder"):
        model.save_pretrained(tmp_path / "shared")


def test_a_configuration_that_is_not_that_of_the_weights(model: TrainedModel, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "shared")
    file = tmp_path / "shared/config.json"
    values = json.loads(file.read_text())
    file.write_text(json.dumps({**values, "prior": "flat"}))
    with pytest.raises(InputError, match=r"config\.json is not that of the weights beside it"):
        vma.from_pretrained(tmp_path / "shared")
    file.write_text(json.dumps({**values, "architectures": ["VMA"]}))
    with pytest.raises(InputError, match="Unknown configuration key 'architectures'"):
        vma.from_pretrained(tmp_path / "shared")
    file.write_text("[1]")
    with pytest.raises(InputError, match=r"config\.json is not readable as JSON"):
        vma.from_pretrained(tmp_path / "shared")


def test_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no folder .*/nowhere, nor a model in the box.*OWNER/NAME"):
        vma.from_pretrained(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty is a folder without a model\.safetensors"):
        vma.from_pretrained(tmp_path / "empty")


def test_a_repository_in_the_cache_is_read_offline(
    model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, place = "0" * 40, tmp_path / "cache/models--someone--symbols"
    model.save_pretrained(place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs/main").write_text(commit)
    asked = offline_hub(monkeypatch, tmp_path / "cache")
    found = vma.from_pretrained("someone/symbols")
    assert (found.fingerprint, found.name) == (model.fingerprint, "symbols")
    assert asked == [FILES]  # and nothing else, whatever the repository has
    with pytest.raises(InputError, match="repository someone/other cannot be had from the Hugging Face hub"):
        vma.from_pretrained("someone/other")
    with pytest.raises(InputError, match="repository someone/symbols cannot be had"):
        vma.from_pretrained("someone/symbols", revision="v9")


def offline_hub(monkeypatch: pytest.MonkeyPatch, cache: Path) -> list[list[str]]:
    """The hub's own function, with a cache of ours and no network; the files that it was asked for."""
    real, asked = huggingface_hub.snapshot_download, []

    def snapshot_download(repository: str, *, revision: str | None, allow_patterns: list[str]) -> Any:
        asked.append(sorted(allow_patterns))
        return real(
            repository,
            revision=revision,
            allow_patterns=allow_patterns,
            cache_dir=cache,
            local_files_only=True,
        )

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return asked


def test_without_the_extra_a_repository_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"needs huggingface_hub, .*pip install 'variational-memory\[hub\]'"):
        vma.from_pretrained("someone/symbols")


def test_the_command(model: TrainedModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["export", str(tmp_path / "run"), str(tmp_path / "shared"), "--hub"])
    assert "README.md" in capsys.readouterr().out
    assert vma.from_pretrained(tmp_path / "shared").fingerprint == model.fingerprint
