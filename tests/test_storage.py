"""Save and load: the same model, or one clear sentence; never a half-written file."""

import errno
import os
from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import save_file

from tests.helpers.oracles import episode, small_convolutional, small_mlp
from vma import VMA, InputError, Memory, ModelConfig, load_model, paper_mlp, save_model
from vma.build import build_vma
from vma.cli import run
from vma.files import write_atomically

FILES = Path(__file__).parent / "files"  # written by version 0.1.0

CONFIGS = [small_mlp(), small_mlp(learned_items=3), small_mlp(tied=True, prior="flat"), small_convolutional()]


@pytest.mark.parametrize("config", CONFIGS, ids=["raw", "learned", "tied", "convolutional"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_loaded_model_gives_identical_outputs(
    config: ModelConfig, dtype: torch.dtype, tmp_path: Path
) -> None:
    model = build_vma(config).to(dtype)
    save_model(model, tmp_path / "model.safetensors")
    other = load_model(tmp_path / "model.safetensors")
    assert other.config == config
    x, memory = episode(config, 3, 4)
    first, second = (
        m.terms(x, memory, 4, generator=torch.Generator().manual_seed(1)) for m in (model, other)
    )
    assert first.log_w.dtype == dtype
    assert torch.equal(first.log_w, second.log_w)


def test_saving_replaces_a_file_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"Cannot write .*file: No space left on device"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# What the version that wrote the file gave.
OLD_LOG_W = [
    [-13.909914, -14.412611, -13.517235, -13.754180],
    [-12.427766, -9.744921, -10.914080, -13.033878],
    [-12.919740, -13.044930, -13.862347, -9.786694],
]


def test_a_perceptron_of_an_older_version_is_what_it_was() -> None:
    """Its file does not say which layers m is given to: then it was the first alone."""
    model = load_model(FILES / "perceptron-0.1.safetensors")
    assert isinstance(model, VMA)
    assert model.config.item_layers == "first"
    x = (torch.arange(48).reshape(3, 4, 4) % 3 == 0).float()
    memory = Memory.of((torch.arange(64).reshape(4, 4, 4) % 5 == 0).float())
    log_w = model.terms(x, memory, 4, generator=torch.Generator().manual_seed(1)).log_w
    torch.testing.assert_close(log_w, torch.tensor(OLD_LOG_W, dtype=torch.float32), rtol=1e-5, atol=1e-5)


# What the version that wrote the file gave.
OLD_LEARNED_LOG_W = [[-200.490967, -198.927917, -199.014008], [-192.366898, -195.220612, -193.789001]]


def test_a_learned_memory_of_an_older_version_is_what_it_was() -> None:
    model = load_model(FILES / "run-learned-0.1/model.safetensors")
    x = (torch.arange(512).reshape(2, 16, 16) % 3 == 0).float()
    log_w = model.terms(x, samples=3, generator=torch.Generator().manual_seed(1)).log_w
    expected = torch.tensor(OLD_LEARNED_LOG_W, dtype=torch.float32)
    torch.testing.assert_close(log_w, expected, rtol=1e-5, atol=1e-5)


def test_a_perceptron_of_the_paper_comes_back(tmp_path: Path) -> None:
    """Its configuration is one that msgspec filled in: nothing of it may get lost on the way to the file."""
    model = build_vma(paper_mlp(height=4, width=4, hidden=(3,), latent=2, matching=2))
    save_model(model, tmp_path / "model.safetensors")
    assert load_model(tmp_path / "model.safetensors").config == model.config
    assert b'"item_layers":"all"' in msgspec.json.encode(model.config)


def test_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(InputError, match="no model file"):
        load_model(path)
    path.write_bytes(b"not a model")
    with pytest.raises(InputError, match="not a model file, or is damaged"):
        load_model(path)
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(InputError, match="not one of a vma model"):
        load_model(path)
    save_file({"a": torch.zeros(1)}, path, {"format": "vma-model", "version": "99", "config": "{}"})
    with pytest.raises(InputError, match="update vma"):
        load_model(path)
    save_file({"a": torch.zeros(1)}, path, {"format": "vma-model", "version": "1", "config": "{"})
    with pytest.raises(InputError, match="no readable configuration"):
        load_model(path)
    save_file({"a": torch.zeros(1)}, path, {"format": "vma-model", "version": "1", "config": "{}"})
    with pytest.raises(InputError, match="do not fit its own configuration"):
        load_model(path)


def test_a_truncated_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_model(build_vma(small_mlp()), path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match="damaged"):
        load_model(path)


def test_info_describes_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.safetensors"
    save_model(build_vma(small_mlp(learned_items=3)), path)
    run(["info", str(path)])
    printed = capsys.readouterr().out
    assert "learned_items  3" in printed
    assert "parameters" in printed
