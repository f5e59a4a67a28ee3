"""What run.json says of older runs."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.helpers.small_runs import small
from vma.data import FolderOptions
from vma.errors import InputError
from vma.runs.folder import Run
from vma.runs.settings import DataSettings, TrainSettings

OLD_DEFAULTS = FolderOptions(
    upright=False, level=False, uneven=False, crop=False, margin=0.1, thin=False, binarize=0.5
)
NEWER = ("upright", "uneven", "thin")


def written(folder: Path, settings: TrainSettings, without: tuple[str, ...]) -> Run:
    """A run as a version wrote it that did not know the options `without`."""
    run = Run(folder)
    folder.mkdir()
    run.create(settings)
    record = json.loads(run.settings_file.read_text())
    options = record["settings"]["data"]["folder"]
    record["settings"]["data"]["folder"] = {key: options[key] for key in options if key not in without}
    run.settings_file.write_text(json.dumps(record))
    return run


@pytest.mark.parametrize("options", [OLD_DEFAULTS, replace(OLD_DEFAULTS, level=True, margin=0.2)])
def test_an_older_run_on_pictures_of_ones_own_reads_them_as_it_did(
    options: FolderOptions, tmp_path: Path
) -> None:
    settings = small(data=DataSettings("folder", size=16, folder=options))
    assert written(tmp_path / "some", settings, NEWER).settings().data.folder == options
    every = tuple(msgspec.to_builtins(options))
    assert written(tmp_path / "none", settings, every).settings().data.folder == OLD_DEFAULTS


def test_a_run_on_pictures_of_ones_own_keeps_its_options(tmp_path: Path) -> None:
    settings = small(data=DataSettings("folder", size=16, folder=FolderOptions(thin=False)))
    assert written(tmp_path / "run", settings, ()).settings() == settings


def test_of_other_data_the_options_of_folders_say_nothing(tmp_path: Path) -> None:
    data = DataSettings("glyphs", size=16, folder=OLD_DEFAULTS)
    assert written(tmp_path / "run", small(data=data), NEWER).settings().data.folder == FolderOptions()


def test_options_that_are_none_are_named(tmp_path: Path) -> None:
    run = written(tmp_path / "run", small(data=DataSettings("folder", size=16)), ())
    run.settings_file.write_text(run.settings_file.read_text().replace('"thin"', '"thinn"'))
    with pytest.raises(InputError, match=r"data\.folder\.thinn"):
        run.settings()
