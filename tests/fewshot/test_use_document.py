"""The code of docs/use.md runs as it stands, and its commands parse."""

import re
import shlex
from pathlib import Path

import pytest
import tyro
from PIL import Image

import vma
from tests.helpers.oracles import small_mlp
from tests.helpers.trained_models import drawings, trained
from vma.cli import COMMANDS
from vma.fewshot import load

TEXT = (Path(__file__).parents[2] / "docs/use.md").read_text()
QUESTIONS = ("imagine", "recognise", "score", "explain")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(vma, "load", load, raising=False)
    trained(tmp_path / "runs/my-run", small_mlp(height=9, width=8))
    names = [
        "my-symbols/ka/1",
        "my-symbols/ka/2",
        "my-symbols/ga/1",
        "my-symbols/ga/2",
        "new/1",
        "new/2",
        "a",
        "b",
    ]
    for name, image in zip(names, drawings(8, (9, 8)), strict=True):
        path = tmp_path / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(255 - 255 * image).save(path)


@pytest.mark.usefixtures("place")
def test_the_document_runs_from_top_to_bottom() -> None:
    code, *others = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    for other in others:
        exec(compile(other, "use.md", "exec"), {})
    names: dict[str, object] = {}
    exec(compile(code, "use.md", "exec"), names)
    for what, name in re.findall(r"# ((\w+)\.\w+(?:, \2\.\w+)+)", code):
        for attribute in re.findall(r"\.(\w+)", what):
            assert hasattr(names[name], attribute)
    lines = re.findall(r"^    vma (\w+) (.*?)(?:\s+#.*)?$", TEXT, re.MULTILINE)
    assert list(dict.fromkeys(name for name, _ in lines)) == [*QUESTIONS, "export", "info"]
    for name, arguments in lines:
        tyro.cli(COMMANDS[name].load(), args=shlex.split(arguments))
    for file in ("imagined.png", "answers.csv", "scores.json", "why.png", "model.safetensors"):
        assert Path(file).stat().st_size > 100
    assert len(list(Path("more-symbols").glob("*/*.png"))) == 100
