"""Datasets from outside the package: arrays, registered by code, offered by an installed package."""

from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch

from tests.helpers.data_files import make_dataset
from tests.helpers.packages import install
from vma import cli
from vma.data import Dataset, Entry, dataset_of, load_dataset, register_dataset
from vma.data.registry import DATASETS, Datasets, as_entry
from vma.errors import InputError

NOISE = """
import numpy as np
from vma.data import Entry, dataset_of

def load(part, *, size=16):
    draw = np.random.default_rng(len(part))
    labels = np.repeat(np.arange(8), 6)
    return dataset_of(draw.random((48, size, size)).round(), labels, name="noise", split=part)

def entry():
    return Entry("random pixels", load=load)
"""


@pytest.fixture(autouse=True)
def datasets(monkeypatch: pytest.MonkeyPatch) -> Datasets:
    """A registry of the test's own in the place of everybody's."""
    own = Datasets(DATASETS.kind, DATASETS.group, dict(DATASETS))
    for module in ("vma.data.registry", "vma.commands.data", "vma.training.episodes"):
        monkeypatch.setattr(f"{module}.DATASETS", own)
    return own


@pytest.fixture
def noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with a dataset `noise`."""
    (tmp_path / "packages").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "packages")
    install(tmp_path / "packages", "vma_noise", NOISE, "[vma.datasets]\nnoise = vma_noise:entry\n")


@pytest.mark.usefixtures("noise")
def test_a_package_offers_a_dataset() -> None:
    test = load_dataset("noise", "test")
    assert (test.name, test.split, test.size, len(test.classes)) == ("noise", "test", (16, 16), 8)
    assert load_dataset("noise", size=20).size == (20, 20)
    with pytest.raises(InputError, match="Unknown part of noise 'valid'"):
        load_dataset("noise", "valid")
    with pytest.raises(InputError, match="Did you mean 'noise'"):
        load_dataset("nois")


@pytest.mark.usefixtures("noise")
def test_commands_know_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cli.run(["data", "list"])
    assert any(line.split()[:2] == ["noise", "ready"] for line in capsys.readouterr().out.splitlines())
    cli.run(["data", "show", "noise", "--part", "test", "--out", str(tmp_path / "noise.png")])
    assert "noise test: 48 images of 8 classes, 16×16" in capsys.readouterr().out
    cli.run(["data", "verify", "noise"])
    assert "ok      noise train" in capsys.readouterr().out
    cli.run(["data", "verify"])
    assert "2 dataset(s) verified: glyphs, noise." in capsys.readouterr().out
    cli.run(["data", "fetch", "noise"])
    assert "needs no download" in capsys.readouterr().out


@pytest.mark.usefixtures("noise")
def test_a_run_is_trained_and_evaluated_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VMA_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    torch.set_default_dtype(torch.float32)
    data = ["--data.name", "noise", "--data.size", "16"]
    model = ["--model.hidden", "8", "8", "--threads", "1"]
    episodes = ["--episode.shots", "2", "--episode.targets", "2", "--updates", "2"]
    cli.run(["train", "mnist-recall-64", *data, *model, *episodes])
    (run,) = (tmp_path / "runs").iterdir()
    cli.run(["evaluate", str(run), "nll", "--episodes", "1", "--samples", "2"])
    assert "nll" in capsys.readouterr().out
    assert len(list((run / "evaluations").glob("nll-*.json"))) == 1


def test_a_broken_package_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "vma_torn", "raise OSError('torn')", "[vma.datasets]\ntorn = vma_torn:entry\n")
    cli.run(["data", "list"])
    listed = capsys.readouterr().out
    assert "omniglot28-stand-in" in listed
    (line,) = [line for line in listed.splitlines() if line.split()[:2] == ["torn", "broken"]]
    assert "vma_torn" in line


def made(part: str) -> Dataset:
    return make_dataset([5, 5])


def test_a_loader_gets_the_options_that_it_names() -> None:
    seen: list[object] = []

    def one_size(part: str) -> Dataset:
        seen.append(part)
        return made(part)

    def some(part: str, *, size: int = 7, data: Path | None = None) -> Dataset:
        seen.append((size, data))
        return made(part)

    def all_of_them(part: str, **options: object) -> Dataset:
        seen.append(options)
        return made(part)

    for load in (one_size, some, all_of_them):
        register_dataset(load.__name__, Entry("notes its options", load=load, sizes=(8, 9)))
        load_dataset(load.__name__, size=8, data="x", download=False)
        load_dataset(load.__name__)
    given = {"size": 8, "data": Path("x"), "download": False}
    assert seen == ["train", "train", (8, Path("x")), (7, None), given, {"download": True}]


def test_a_registered_dataset() -> None:
    register_dataset("made", Entry("made up", ("train", "valid", "test"), load=made))
    assert len(load_dataset("made", "valid")) == 10
    with pytest.raises(InputError, match="made has images of only one size: leave size out"):
        load_dataset("made", size=3)
    with pytest.raises(InputError, match="There is a dataset called 'made' already"):
        register_dataset("made", Entry("again", load=made))
    with pytest.raises(InputError, match="There is a dataset called 'omniglot' already"):
        register_dataset("omniglot", Entry("another", load=made))


def test_what_is_no_dataset_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"'odd' is registered as int: it must be a vma\.data\.Entry"):
        as_entry("odd", 3)
    with pytest.raises(InputError, match=r"makes the dataset 'odd' failed \(ZeroDivisionError"):
        register_dataset("odd", lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    register_dataset("odd", Entry("returns a list", load=lambda part: []))  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match="The loader of odd returned a list"):
        load_dataset("odd")
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    floats = Dataset("grey", "train", np.zeros((2, 3, 3)), None, (), "")
    register_dataset("grey", Entry("floats", load=lambda part: floats))
    with pytest.raises(InputError, match=r"images of float64, not uint8: use vma\.data\.dataset_of"):
        load_dataset("grey")


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64, torch.uint8, torch.bfloat16])
def test_arrays_and_tensors_become_a_dataset(dtype: type) -> None:
    pixels = np.zeros((4, 3, 5), np.uint8)
    pixels[1, 2, 3] = 255
    is_tensor = isinstance(dtype, torch.dtype)
    images = torch.from_numpy(pixels).to(dtype) if is_tensor else pixels.astype(dtype)
    images = images if dtype in (np.uint8, torch.uint8) else images / 255
    data = dataset_of(images, [3, 3, 0, 7])
    np.testing.assert_array_equal(data.images, pixels)
    assert data.images.dtype == np.uint8
    assert (data.name, data.size, data.classes) == ("arrays", (3, 5), ("0", "3", "7"))
    assert data.class_labels().tolist() == [1, 1, 0, 2]


def test_grey_levels_are_rounded_and_colours_kept() -> None:
    levels = np.arange(256) / 255
    np.testing.assert_array_equal(dataset_of(levels[:, None, None]).images.ravel(), np.arange(256))
    assert dataset_of(torch.zeros(2, 3, 4, 5)).channels == 3
    assert dataset_of(torch.zeros(2, 4, 5), name="mine", split="train").name == "mine"


def test_labels_are_positions_or_names() -> None:
    images = np.zeros((3, 2, 2))
    assert dataset_of(images).labels is None
    named = dataset_of(images, ["b", "a", "b"])
    assert (named.classes, named.class_labels().tolist()) == (("a", "b"), [1, 0, 1])
    placed = dataset_of(images, torch.tensor([2, 0, 2]), ("x", "y", "z"))
    assert (placed.classes, placed.class_labels().tolist()) == (("x", "y", "z"), [2, 0, 2])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((np.zeros((2, 4)),), r"\[number, height, width\] or \[number, 3, height, width\], not \[2, 4\]"),
        ((np.zeros((2, 4, 4, 3)),), r"not \[2, 4, 4, 3\]"),
        ((np.zeros((0, 4, 4)),), r"not \[0, 4, 4\]"),
        ((np.zeros((2, 4, 4), np.int64),), "uint8 from 0 to 255 or floats from 0 to 1, not int64"),
        ((np.zeros((2, 4, 4), bool),), "not bool"),
        ((np.full((2, 4, 4), 255.0),), r"must lie in \[0, 1\], not \[255, 255\]: divide 8-bit values by 255"),
        ((np.full((2, 4, 4), np.nan),), r"not \[nan, nan\]"),
        (([[[0.0]], [[0.0, 1.0]]],), "Images must be an array or a tensor, not list"),
        ((np.zeros((2, 4, 4)), [1]), r"2 images need as many labels, not labels of shape \[1\]"),
        ((np.zeros((2, 4, 4)), [0.5, 1]), "must be whole numbers or names, not float64"),
        ((np.zeros((2, 4, 4)), ["a", "b"], ("a", "b")), "must be positions in the classes, not <U1"),
        ((np.zeros((2, 4, 4)), [0, 2], ("a", "b")), "must be from 0 to 1, not 0 to 2"),
        ((np.zeros((2, 4, 4)), [0, 1], ("a", "a")), "named twice"),
        ((np.zeros((2, 4, 4)), None, ("a", "b")), "without labels"),
    ],
)
def test_other_arrays_are_refused(arguments: tuple, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        dataset_of(*arguments)
    assert str(caught.value).endswith(".")
