"""The options of pictures, as commands offer them that read single ones."""

from dataclasses import replace

import pytest
from tyro import cli

from vma.cli import run
from vma.commands.picture_options import PictureOptions, picture_options, whole
from vma.data import FolderOptions
from vma.fewshot.images import OPTIONS


@pytest.mark.parametrize("command", ["imagine", "recognise", "score", "explain"])
def test_what_belongs_to_a_dataset_is_not_offered(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run([command, "--help"])
    offered = capsys.readouterr().out
    assert "--folder.crop" in offered
    assert "--folder.margin" in offered
    assert "held-out" not in offered
    assert "--folder.seed" not in offered


def test_all_other_options_are_those_of_a_folder() -> None:
    changed = replace(OPTIONS, margin=0.3, invert="no", colour=True)
    assert whole(picture_options(changed)) == changed
    assert whole(picture_options(OPTIONS)) == OPTIONS
    assert whole(cli(PictureOptions, args=["--margin", "0.2"])) == FolderOptions(margin=0.2)
