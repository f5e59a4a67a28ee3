"""The code of docs/pictures.md."""

import re
from pathlib import Path

import pytest
import torch

PAGE = Path(__file__).parents[2] / "docs/pictures.md"


def test_thin_strokes_have_less_ink_than_thick_ones(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    torch.set_default_dtype(torch.float32)
    exec(compile(code, "pictures.md", "exec"), {})
    assert capsys.readouterr().out == "True\n"
