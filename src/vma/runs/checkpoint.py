"""A checkpoint in one file: weights, average, optimiser state, window of metrics; all tensors, nothing pickled."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from vma.errors import InputError
from vma.files import write_atomically
from vma.runs.folder import Run
from vma.runs.settings import TrainSettings

FORMAT = "vma-checkpoint"


@dataclass(frozen=True)
class Progress:
    """Where a run stands; everything random follows from the seed and the number of updates.

    Attributes:
        update: Updates done.
        seconds: Time spent.
        asleep_since: Updates done when the run fell asleep; None while it is awake.
        awake_share: Share of the run that was done then.
    """

    update: int = 0
    seconds: float = 0.0
    asleep_since: int | None = None
    awake_share: float = 1.0


def save_checkpoint(
    path: Path,
    progress: Progress,
    models: dict[str, nn.Module],
    optimisers: list[torch.optim.Optimizer],
    window: Tensor,
) -> None:
    """Write everything to `path`, atomically."""
    tensors = {"window": window}
    for name, model in models.items():
        tensors |= {f"{name}.{key}": value for key, value in model.state_dict().items()}
    for number, optimiser in enumerate(optimisers):
        tensors |= flatten_state(f"optimiser.{number}", optimiser)
    tensors = {key: value.detach().cpu().clone().contiguous() for key, value in tensors.items()}
    write_atomically(path, save(tensors, metadata={"format": FORMAT, **header_of(progress)}))


def header_of(progress: Progress) -> dict[str, str]:
    """What a checkpoint's header says of the progress."""
    header = {"update": str(progress.update), "seconds": repr(progress.seconds)}
    if progress.asleep_since is None:
        return header
    return {**header, "asleep_since": str(progress.asleep_since), "awake_share": repr(progress.awake_share)}


def flatten_state(prefix: str, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors by `prefix.parameter.name`."""
    state = optimiser.state_dict()["state"]
    return {
        f"{prefix}.{index}.{key}": torch.as_tensor(value)
        for index, values in state.items()
        for key, value in values.items()
    }


def load_checkpoint(
    path: Path,
    models: dict[str, nn.Module],
    optimisers: list[torch.optim.Optimizer],
    window: Tensor,
) -> Progress:
    """Read `path` into models, optimisers and window, in place."""
    header, tensors = read_tensors(path)
    try:
        for name, model in models.items():
            model.load_state_dict(below(tensors, name))
        for number, optimiser in enumerate(optimisers):
            restore_state(optimiser, below(tensors, f"optimiser.{number}"))
        window.copy_(tensors["window"])
        return progress_of(header)
    except (KeyError, ValueError, RuntimeError) as error:
        raise InputError(f"{path} does not fit the settings of its run: {error}.") from None


def read_tensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Header and tensors of a checkpoint file."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is not a checkpoint, or is damaged: {error}.") from None
    if header.get("format") != FORMAT:
        raise InputError(f"{path} is not a checkpoint of a vma run.")
    return header, tensors


def progress_of(header: dict[str, str]) -> Progress:
    """Where the run stood when the checkpoint was written."""
    update, seconds = int(header["update"]), float(header["seconds"])
    if "asleep_since" not in header:
        return Progress(update, seconds)
    return Progress(update, seconds, int(header["asleep_since"]), float(header["awake_share"]))


def read_progress(path: Path) -> Progress:
    """Where the run of a checkpoint file stands."""
    return progress_of(read_tensors(path)[0])


def latest_progress(run: Run) -> Progress:
    """Where a run stands, awake or asleep."""
    return read_progress(run.sleep_file if run.sleep_file.exists() else run.checkpoint_file)


def is_at_its_end(progress: Progress, settings: TrainSettings) -> bool:
    """Whether the updates or the minutes of the settings are used up."""
    return progress.update >= settings.updates or 0 < 60 * settings.minutes <= progress.seconds


def below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix.`, without it."""
    start = f"{prefix}."
    return {name[len(start) :]: value for name, value in tensors.items() if name.startswith(start)}


def restore_state(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put flattened state back; rates and other numbers of the groups stay the settings' own."""
    state: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    for parameter, values in optimiser.state.items():
        values |= {key: lie_as(value, parameter) for key, value in values.items()}


def lie_as(value: Tensor, parameter: Tensor) -> Tensor:
    """`value` in the order in memory of its parameter, on which a fused optimiser relies without a check."""
    return torch.empty_like(parameter).copy_(value) if value.ndim > 1 else value


def describe(path: Path) -> str:
    """One phrase on the last good checkpoint, for an error message."""
    if not path.exists():
        return "no checkpoint had been written yet"
    return f"the last good checkpoint is {path} at update {read_progress(path).update}"
