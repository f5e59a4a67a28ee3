"""Without an extra, what needs it says so in a sentence, and the rest works."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.large_folders import filled

WITHOUT = "import sys; sys.modules.update(dict.fromkeys({missing})); from vma.cli import main; main()"
TINY = [
    "train", "glyphs-fewshot", "--model.maps", "8", "--updates", "1", "--episode.classes", "2",
    "--picture-minutes", "1",
]  # fmt: skip


def vma_without(missing: list[str], arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(missing=missing)
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        (["fastapi"], ["serve", "nowhere.safetensors"], "serve"),
        (["uvicorn"], ["serve", "nowhere.safetensors"], "serve"),
        (["matplotlib"], ["reproduce", "--list"], "plots"),
        (["jinja2"], ["report"], "plots"),
        (["faiss"], ["memory", "index", "m", "faiss"], "faiss"),
        (["pymilvus"], ["memory", "index", "m", "milvus", "--server", "http://localhost:1"], "milvus"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(
    missing: list[str], arguments: list[str], extra: str, tmp_path: Path
) -> None:
    filled(tmp_path / "m")
    done = vma_without(missing, arguments, tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        f"vma: This needs {missing[0]}, which is not installed: pip install 'variational-memory[{extra}]'.\n"
    )


def test_training_goes_on_without_tensorboard_and_pictures(tmp_path: Path) -> None:
    done = vma_without(["matplotlib", "tensorboard"], [*TINY, "--folder", "run"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "No file for TensorBoard is written. This needs tensorboard" in done.stdout
    assert done.stdout.count("No pictures of the run are drawn. This needs matplotlib") == 1
    assert (tmp_path / "run/model.safetensors").exists()
    assert not (tmp_path / "run/samples.png").exists()
