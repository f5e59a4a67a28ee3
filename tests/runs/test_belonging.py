"""A lost, damaged or foreign file of a run never destroys the rest; what is wrong is said in a sentence."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.helpers.small_runs import fit, small
from vma import InputError
from vma.commands.training import run_row, runs_command
from vma.evaluation.trained_run import describe_model
from vma.runs.belonging import complaint, complaints_of, is_trained, model_progress
from vma.runs.checkpoint import Progress, header_of, load_checkpoint, read_progress, save_checkpoint
from vma.runs.folder import Run, all_runs
from vma.runs.settings import SleepSettings
from vma.storage import load_model, save_model

FILES = ("run.json", "checkpoint.safetensors", "model.safetensors", "sleep.safetensors", "metrics.jsonl")
SLEEP = SleepSettings(share=0.4, dreams=4)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that has slept."""
    return fit(small(updates=10, sleep=SLEEP), tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Another run of the same settings."""
    return fit(small(updates=10, sleep=SLEEP), tmp_path_factory.mktemp("runs") / "other")


@pytest.fixture
def run(original: Run, tmp_path: Path) -> Run:
    """A copy of the first, to be damaged."""
    shutil.copytree(original.folder, tmp_path / "runs" / "run")
    return Run(tmp_path / "runs" / "run")


def content(run: Run) -> dict[str, bytes]:
    return {name: (run.folder / name).read_bytes() for name in FILES if (run.folder / name).is_file()}


def flip(file: Path) -> None:
    """Change a bit near the end, where tensors are."""
    content = bytearray(file.read_bytes())
    content[-20] ^= 4
    file.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "lost": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "a bit": flip,
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_no_damage_of_one_file_destroys_another(name: str, damage: str, run: Run) -> None:
    """Going on, or starting anew, either makes the same run again or leaves every other file as it was."""
    before = content(run)
    DAMAGES[damage](run.folder / name)
    refused = complaint(lambda: fit(run.settings(), run.folder, resume=True))
    if refused:
        assert refused.endswith(".")
        assert all(content(run)[other] == before[other] for other in before if other != name)
    else:
        made = Run(run.folder)
        assert is_trained(made)
        assert load_file(made.model_file).keys() == load_model(made.model_file).state_dict().keys()
        one, two = (json.loads(line) for line in (before["run.json"], made.settings_file.read_bytes()))
        assert one["run"] == two["run"]
    with pytest.raises(InputError):
        fit(small(updates=1), run.folder)


@pytest.mark.parametrize("name", ["checkpoint.safetensors", "sleep.safetensors", "model.safetensors"])
def test_a_file_of_another_run_is_refused(name: str, run: Run, stranger: Run) -> None:
    shutil.copy(stranger.folder / name, run.folder / name)
    before = content(run)
    assert any("belongs to another run" in sentence for sentence in complaints_of(run))
    if name == "checkpoint.safetensors":  # asleep, the run goes on from the other file
        run.sleep_file.unlink()
        run.model_file.unlink()
        before = content(run)
    with pytest.raises(InputError, match="belongs to another run than"):
        fit(run.settings(), run.folder, resume=True)
    assert content(run) == before


def test_an_old_copy_of_a_checkpoint_does_not_replace_a_model_that_was_trained_for_longer(
    tmp_path: Path,
) -> None:
    run = fit(small(updates=4), tmp_path / "run")
    old = run.checkpoint_file.read_bytes()
    fit(small(updates=8), run.folder, resume=True)
    run.checkpoint_file.write_bytes(old)
    before = content(run)
    with pytest.raises(InputError, match=r"was trained for 8 updates, and .* for 4: put back the checkpoint"):
        fit(small(updates=8), run.folder, resume=True)
    assert content(run) == before
    run.model_file.rename(tmp_path / "kept.safetensors")
    assert read_progress(fit(small(updates=8), run.folder, resume=True).checkpoint_file).update == 8


def test_a_model_says_itself_how_long_it_was_trained(run: Run) -> None:
    """A kill between checkpoint and model leaves the model of before: nobody takes it for the one after."""
    model = load_model(run.model_file)
    progress = Progress(6, 3600.0, run=run.identity())
    save_model(model, run.model_file, notes=header_of(progress))
    assert model_progress(run) == progress
    about = describe_model(run, run.settings(), model)
    assert (about.updates, about.sleep_updates, about.hours) == (6, 0, 1.0)
    assert not is_trained(run)
    fit(run.settings(), run.folder, resume=True)
    assert is_trained(run)
    run.checkpoint_file.unlink()
    assert describe_model(run, run.settings(), model).sleep_updates == 4  # the model is enough


def test_weights_that_are_not_finite_are_no_checkpoint(run: Run) -> None:
    before = run.checkpoint_file.read_bytes()
    models = {"model": load_model(run.model_file)}
    with torch.no_grad():
        next(models["model"].parameters()).view(-1)[0] = torch.inf
    with pytest.raises(
        InputError, match=r"not finite at update 9; the last good checkpoint is .* at update 6"
    ):
        save_checkpoint(run.checkpoint_file, Progress(9), models, [], torch.zeros(1))
    assert run.checkpoint_file.read_bytes() == before


def test_optimisers_find_their_state_by_the_names_of_parameters(tmp_path: Path) -> None:
    """So that parts may come in another order than in the version that wrote the file."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    parameters = list(model.parameters())
    one, two = torch.optim.Adam(parameters), torch.optim.Adam(parameters[::-1])
    model(torch.ones(1, 2)).sum().backward()
    one.step()
    save_checkpoint(tmp_path / "file", Progress(1), {"model": model}, [one], torch.zeros(1))
    load_checkpoint(tmp_path / "file", {"model": model}, [two], torch.zeros(1))
    for parameter in parameters:
        for name, value in one.state[parameter].items():
            assert two.state[parameter][name].equal(value)


def test_metrics_after_a_damaged_line_are_kept(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = run.metrics_file.read_text().splitlines()
    damaged = ['{"update": 3, "nl', '{"update": "3"}', "[1]", '{"update": -1}', '{"nll": 1.0}', "[" * 10_000]
    run.metrics_file.write_bytes(
        "\n".join([first, *damaged]).encode() + b"\n\xff\xfe\n" + second.encode() + b"\n{"
    )
    assert [row["update"] for row in run.metrics()] == [5, 10]
    row, wrong = run_row(run)
    assert row[:2] == ["damaged", "10"]
    assert wrong == [f"{run.metrics_file} is damaged at 7 lines: the others are used."]
    run.keep_metrics_until(7)
    assert [row["update"] for row in run.metrics()] == [5]


def test_the_list_of_runs_shows_what_it_can(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    root = run.folder.parent
    for name in FILES:
        for damage, break_it in DAMAGES.items():
            copy = root / f"{damage} {name}"
            shutil.copytree(run.folder, copy)
            break_it(copy / name)
    runs_command(root)
    shown = capsys.readouterr().out
    assert len(all_runs(root)) == 1 + len(FILES) * len(DAMAGES)
    for name in ("run.json", "checkpoint.safetensors"):
        for damage in ("empty", "cut", "a pipe"):
            assert f"{root / f'{damage} {name}' / name}" in shown
    assert f"There is no run in {root / 'lost run.json'}" in shown
    [healthy] = [line for line in shown.splitlines() if line.split()[:1] == ["run"] and "saved" in line]
    assert healthy.split()[2] == "10"
