"""Which files of a run belong together, so that a lost, damaged or foreign one never destroys the others."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from vma.errors import InputError
from vma.files import check_ordinary
from vma.runs.checkpoint import Progress, is_at_its_end, progress_of_model, read_progress
from vma.runs.folder import Run


def file_to_resume(run: Run, sleep_anew: bool = False) -> Path | None:
    """The file from which a run goes on; None if nothing has been trained yet.

    Refused if going on would overwrite a model that was trained for longer, or the model of another run.
    """
    file = run.checkpoint_file if sleep_anew or not run.sleep_file.exists() else run.sleep_file
    model = readable_model(run)
    if not file.exists():
        check_nothing_is_trained(run)
        return None
    found = read_progress(file)
    check_same_run(run, file, found)
    if model is not None:
        check_same_run(run, run.model_file, model)
        if not sleep_anew:
            check_is_not_behind(run, file, found, model)
    return file


def readable_model(run: Run) -> Progress | None:
    """How long the model was trained; None if it is absent or damaged, or does not say."""
    if run.model_file.exists():
        check_ordinary(run.model_file, "model file")  # now rather than when the file is about to be replaced
    try:
        return progress_of_model(run.model_file)
    except InputError:  # it will be written again
        return None


def check_nothing_is_trained(run: Run) -> None:
    """Refuse to start from nothing if a model or metrics show that a checkpoint has been lost."""
    if run.model_file.exists() or run.metrics():
        raise InputError(
            f"{run.checkpoint_file} is gone, though the run has been trained: put back a copy of it, or start "
            "another run in another --folder. Nothing was changed."
        )


def check_same_run(run: Run, file: Path, found: Progress) -> None:
    """Refuse a file of another run; files of older versions do not name their run and are accepted."""
    if found.run and run.identity() != found.run:
        raise InputError(
            f"{file} belongs to another run than {run.settings_file}: put back the file that was there."
        )


def check_is_not_behind(run: Run, file: Path, found: Progress, model: Progress) -> None:
    """Refuse a checkpoint that is older than the model: it is an old copy, or the one asleep has been lost."""
    if (model.asleep_since is not None and found.asleep_since is None) or model.update > found.update:
        slept = " asleep" if model.asleep_since is not None else ""
        raise InputError(
            f"{run.model_file} was trained for {model.update} updates{slept}, and {file} for {found.update}: put "
            "back the checkpoint that belongs to it, or move the model elsewhere. Nothing was changed."
        )


def model_progress(run: Run) -> Progress:
    """How long the model in the folder was trained, as it says itself; in older versions, as the checkpoints say.

    Older versions wrote checkpoints after the model, so the model may be ahead of them.
    """
    found = progress_of_model(run.model_file)
    if found is not None:
        check_same_run(run, run.model_file, found)
        return found
    awake = read_progress(run.checkpoint_file)
    if not run.sleep_file.exists():
        return awake
    slept = read_progress(run.sleep_file)
    return slept if is_at_its_end(slept, run.settings()) else awake


def is_trained(run: Run) -> bool:
    """Whether the run has reached the end of its settings, including its sleep if it has one, and its model too."""
    checkpoint = run.sleep_file if run.sleep_file.exists() else run.checkpoint_file
    if not all(path.exists() for path in (run.settings_file, checkpoint, run.model_file)):
        return False
    latest = read_progress(checkpoint)
    return is_at_its_end(latest, run.settings()) and model_progress(run).update == latest.update


def complaints_of(run: Run) -> list[str]:
    """What is wrong with a run: one sentence for each file that is lost, damaged or of another run."""
    checks: list[Callable[[], object]] = [run.settings]
    checks += [
        partial(check_file, run, file) for file in (run.checkpoint_file, run.sleep_file) if file.exists()
    ]
    checks += [partial(model_progress, run)] if run.model_file.exists() else []
    checks += [] if run.checkpoint_file.exists() else [partial(check_nothing_is_trained, run)]
    return [sentence for check in checks if (sentence := complaint(check))]


def check_file(run: Run, file: Path) -> None:
    """Refuse a checkpoint that cannot be read, or that is of another run."""
    check_same_run(run, file, read_progress(file))


def complaint(check: Callable[[], object]) -> str:
    """The sentence of the error that a check raises; empty if it finds nothing wrong."""
    try:
        check()
    except InputError as error:
        return str(error)
    return ""
