"""The README's code runs as it stands, and its commands exist."""

import re
from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.helpers.trained_models import drawings, trained

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
DOCUMENTS = README + (ROOT / "docs/data.md").read_text()


def symbols_and_a_model(folder: Path) -> None:
    """What the README's reader is said to have: a run, a folder of symbols, and a new image."""
    trained(folder / "runs/my-run")
    images = drawings(5)
    names = ("my-symbols/ka/1", "my-symbols/ka/2", "my-symbols/ga/1", "my-symbols/ga/2", "new")
    for name, image in zip(names, images, strict=True):
        path = folder / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(255 - 255 * image).save(path)


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", DOCUMENTS, re.DOTALL))
def test_code_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    symbols_and_a_model(tmp_path)
    torch.set_default_dtype(torch.float32)
    exec(compile(code, "README.md", "exec"), {})


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^\s*make ([a-z]+)", README, re.MULTILINE)) <= targets


def test_linked_files_exist() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
