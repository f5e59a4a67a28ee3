"""A checkpoint in one file: weights, average, optimiser state and metrics so far; all tensors, nothing pickled."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vma.errors import InputError
from vma.files import from_outside
from vma.runs.folder import Run
from vma.runs.settings import TrainSettings
from vma.storage import not_finite, read_notes
from vma.tensor_files import FileKind, Header, Tensors, read_header, read_tensors, write_tensors

CHECKPOINT = FileKind("vma-checkpoint", "checkpoint")


@dataclass(frozen=True)
class Progress:
    """Where a run stands; all its randomness follows from the seed and the number of updates.

    Attributes:
        update: Updates done.
        seconds: Time spent.
        asleep_since: Updates done when the run fell asleep; None while it is awake.
        awake_share: Share of the run that was done when it fell asleep.
        run: The run that it belongs to (`Run.identity`); empty if an older version did not record it.
    """

    update: int = 0
    seconds: float = 0.0
    asleep_since: int | None = None
    awake_share: float = 1.0
    run: str = ""

    def __post_init__(self) -> None:
        if self.update < 0 or not 0 <= self.seconds < math.inf or not 0 < self.awake_share <= 1:
            raise InputError("A run has done some updates, in some seconds, of which a share is awake.")
        if self.asleep_since is not None and not 0 <= self.asleep_since <= self.update:
            raise InputError("A run falls asleep after some of its updates.")

    @property
    def awake(self) -> int:
        """Updates made awake."""
        return self.update if self.asleep_since is None else self.asleep_since


def save_checkpoint(
    path: Path,
    progress: Progress,
    models: dict[str, nn.Module],
    optimisers: list[torch.optim.Optimizer],
    window: Tensor,
) -> None:
    """Write everything to `path`, atomically; refuse weights that are not finite."""
    tensors, names = {"window": window}, names_of(models)
    for name, model in models.items():
        tensors |= {f"{name}.{key}": value for key, value in model.state_dict().items()}
    if bad := not_finite(tensors | {"window": torch.zeros(1)}):
        raise InputError(
            f"The weights {bad!r} are not finite at update {progress.update}; {describe(path)}. Lower the rate, or "
            "set optimiser.clip."
        )
    for number, optimiser in enumerate(optimisers):
        tensors |= flatten_state(f"optimiser.{number}", optimiser, names)
    write_tensors(path, CHECKPOINT, header_of(progress), tensors)


def names_of(models: dict[str, nn.Module]) -> dict[Tensor, str]:
    """The name of every parameter in its model."""
    return {parameter: name for model in models.values() for name, parameter in model.named_parameters()}


def header_of(progress: Progress) -> Header:
    """The header entries of a checkpoint or a model that record the progress."""
    header = {"update": str(progress.update), "seconds": repr(progress.seconds)}
    if progress.run:
        header["run"] = progress.run
    if progress.asleep_since is None:
        return header
    return {**header, "asleep_since": str(progress.asleep_since), "awake_share": repr(progress.awake_share)}


def flatten_state(prefix: str, optimiser: torch.optim.Optimizer, names: dict[Tensor, str]) -> Tensors:
    """The optimiser's tensors by `prefix.PARAMETER.name`."""
    return {
        f"{prefix}.{names[parameter]}.{key}": torch.as_tensor(value)
        for parameter, values in optimiser.state.items()
        for key, value in values.items()
    }


def load_checkpoint(
    path: Path,
    models: dict[str, nn.Module],
    optimisers: list[torch.optim.Optimizer],
    window: Tensor,
) -> Progress:
    """Read `path` into models, optimisers and window, in place."""
    header, tensors = read_tensors(path, CHECKPOINT)
    names = names_of(models)
    with from_outside(f"{path} does not fit the settings of its run"):
        for name, model in models.items():
            model.load_state_dict(below(tensors, name))
        for number, optimiser in enumerate(optimisers):
            restore_state(optimiser, below(tensors, f"optimiser.{number}"), names)
        window.copy_(tensors["window"])
    if bad := next((each for model in models.values() if (each := not_finite(model.state_dict()))), ""):
        raise InputError(f"{path} holds weights {bad!r} that are not finite: start another run.")
    return progress_of(path, header)


def progress_of(path: Path, header: Header) -> Progress:
    """Where the run stood when `path` was written, from its header."""
    with from_outside(f"{path} does not say where its run stands: it is damaged"):
        asleep = header.get("asleep_since")
        return Progress(
            int(header["update"]),
            float(header["seconds"]),
            None if asleep is None else int(asleep),
            1.0 if asleep is None else float(header["awake_share"]),
            header.get("run", ""),
        )


def read_progress(path: Path) -> Progress:
    """Where the run of a checkpoint file stands."""
    return progress_of(path, read_header(path, CHECKPOINT))


def progress_of_model(path: Path) -> Progress | None:
    """How long the model in a run's folder was trained; None if an older version did not record it."""
    notes = read_notes(path)
    return progress_of(path, notes) if "update" in notes else None


def latest_progress(run: Run) -> Progress:
    """Where a run stands, awake or asleep."""
    return read_progress(run.sleep_file if run.sleep_file.exists() else run.checkpoint_file)


def is_at_its_end(progress: Progress, settings: TrainSettings) -> bool:
    """Whether the updates or the minutes of the settings are used up."""
    return (
        progress.update >= settings.updates or share_of_time(progress.update, progress.seconds, settings) >= 1
    )


def share_of_time(update: int, seconds: float, settings: TrainSettings) -> float:
    """Share of the minutes that is over, at most the share done of the `least_updates` that are due in any case."""
    if not settings.minutes:
        return 0.0
    by_time = seconds / (60 * settings.minutes)
    return min(by_time, update / settings.least_updates) if settings.least_updates else by_time


def below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix.`, by the rest of their names."""
    start = f"{prefix}."
    return {name[len(start) :]: value for name, value in tensors.items() if name.startswith(start)}


def restore_state(optimiser: torch.optim.Optimizer, tensors: Tensors, names: dict[Tensor, str]) -> None:
    """Put flattened state back into an optimiser; its rates and other numbers stay those of the settings."""
    places = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    numbers = {names[parameter]: number for number, parameter in enumerate(places)}
    state: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        parameter, key = name.rsplit(".", 1)
        number = int(parameter) if parameter.isdecimal() else numbers[parameter]  # older files: the place
        check_state(name, value, places[number])
        state.setdefault(number, {})[key] = value
    check_complete(state)
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    for place, values in optimiser.state.items():
        values |= {key: lie_as(value, place) for key, value in values.items()}


def check_complete(state: dict[int, dict[str, Any]]) -> None:
    """Refuse state that differs in kind between parameters, since a part of it is lost then."""
    kinds = {frozenset(values) for values in state.values()}
    if len(kinds) > 1:
        raise InputError(f"It lacks a part of the state of its optimiser: {sorted(map(sorted, kinds))}.")


def check_state(name: str, value: Tensor, parameter: Tensor) -> None:
    """Refuse a tensor that lacks the shape of its parameter: a fused optimiser relies on it without checking."""
    if value.ndim and value.shape != parameter.shape:
        raise InputError(
            f"It has the state {name!r} of {list(value.shape)}, not {list(parameter.shape)}: it is damaged."
        )


def lie_as(value: Tensor, parameter: Tensor) -> Tensor:
    """`value`, laid out in memory like its parameter: a fused optimiser relies on that without checking."""
    return torch.empty_like(parameter).copy_(value) if value.ndim > 1 else value


def describe(path: Path) -> str:
    """A phrase about the last good checkpoint, for an error message."""
    if not path.exists():
        return "no checkpoint had been written yet"
    return f"the last good checkpoint is {path} at update {read_progress(path).update}"
