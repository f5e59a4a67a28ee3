"""A run's folder: settings, metrics, checkpoints and the saved model, and a lock while it is being written."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
import torch
from filelock import FileLock, Timeout

import vma
from vma.config import completed, config_of_file, typed
from vma.data.picture import EARLIER
from vma.errors import InputError
from vma.files import from_outside, read_ordinary, remove_partial_files, write_atomically
from vma.runs.metrics_file import Row, append_row, keep_rows_until, read_metrics
from vma.runs.settings import TrainSettings

VERSION = 1
USUAL = msgspec.to_builtins(TrainSettings())


@dataclass(frozen=True)
class Run:
    """A folder that holds one run."""

    folder: Path

    @property
    def settings_file(self) -> Path:
        """The resolved settings, versions, revision."""
        return self.folder / "run.json"

    @property
    def metrics_file(self) -> Path:
        """One JSON object per line."""
        return self.folder / "metrics.jsonl"

    @property
    def checkpoint_file(self) -> Path:
        """Everything that a resumed run needs."""
        return self.folder / "checkpoint.safetensors"

    @property
    def sleep_file(self) -> Path:
        """The same, for a run that has fallen asleep."""
        return self.folder / "sleep.safetensors"

    @property
    def model_file(self) -> Path:
        """The model for use, with averaged weights if there are any; the awake one until a sleep is complete."""
        return self.folder / "model.safetensors"

    def create(self, settings: TrainSettings, content: str = "", weights: str = "") -> None:
        """Write run.json; a folder that already holds a run is left alone.

        Args:
            settings: The settings of the run.
            content: The hash of images given from Python; empty for a dataset that has a name.
            weights: The identity of the model that it begins with; empty for random weights.
        """
        if self.settings_file.exists():
            raise InputError(
                f"{self.folder} already holds a run: continue it with 'vma train --resume {self.folder}', "
                "or choose another --folder."
            )
        self.check_empty()
        given = {name: value for name, value in (("content", content), ("began_with", weights)) if value}
        plain = msgspec.to_builtins(settings)
        record = {"version": VERSION, "run": token_hex(8), "settings": plain, **given, **circumstances()}
        write_atomically(self.settings_file, json.dumps(record, indent=1).encode())

    def check_empty(self) -> None:
        """Refuse to start a run over the files of one whose run.json is lost."""
        files = (self.checkpoint_file, self.sleep_file, self.model_file, self.metrics_file)
        if left := [path.name for path in files if path.exists()]:
            raise InputError(
                f"{self.folder} has no run.json, but {', '.join(left)} of a run: put back a copy of run.json, or "
                "choose another --folder."
            )

    def identity(self) -> str:
        """The name that checkpoints and model give to the run; empty if an older version started it."""
        return str(self.record().get("run", ""))

    def content(self) -> str:
        """The hash of the images that the run was given from Python; empty if there were none."""
        return str(self.record().get("content", ""))

    def check_content(self, content: str) -> None:
        """Refuse to go on with images that differ from those before."""
        if content and self.content() not in ("", content):
            raise InputError(
                f"The run {self.folder} was trained on other images or labels: give it the same as before, or "
                "start another run."
            )

    def keep_settings(self, settings: TrainSettings) -> None:
        """Record that the run goes on with these settings; earlier ones stay in its history."""
        record, new = self.record(), json.loads(msgspec.json.encode(settings))
        if record.get("settings") != new:
            before = {"settings": record.get("settings"), "until": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
            record["history"] = [*record.get("history", []), before]
            record["settings"] = new
            write_atomically(self.settings_file, json.dumps(record, indent=1).encode())

    def settings(self) -> TrainSettings:
        """The settings that the run was started with."""
        record = self.record()
        if not isinstance(record.get("version"), int) or record["version"] > VERSION:
            raise InputError(
                f"{self.settings_file} was written by a newer vma (version {record.get('version')}, this one "
                f"reads up to {VERSION}): update vma."
            )
        values = record.get("settings", {})
        if isinstance(values, dict) and "model" in values:
            values = {**values, "model": config_of_file(values["model"])}
        if isinstance(values, dict) and isinstance(values.get("data"), dict):
            values = {**values, "data": data_of_file(values["data"])}
        return settings_from(values)

    def record(self) -> dict[str, Any]:
        """The content of run.json."""
        if not self.settings_file.exists():
            inside = self.folder / "vma" / "run.json"
            hint = f" Did you mean {inside.parent}?" if inside.exists() else ""
            raise InputError(f"There is no run in {self.folder}: it has no run.json.{hint}")
        content = read_ordinary(self.settings_file, "settings")
        with from_outside(f"{self.settings_file} cannot be read"):
            record = json.loads(content)
        if not isinstance(record, dict):
            raise InputError(f"{self.settings_file} does not describe a run: put back a copy of it.")
        return record

    def metrics(self) -> list[Row]:
        """All metrics written so far, without damaged lines and a last line that a crash cut short."""
        return read_metrics(self.metrics_file).rows

    def append_metrics(self, row: Row) -> None:
        """Add a line to the metrics."""
        append_row(self.metrics_file, row)

    def keep_metrics_until(self, update: int) -> str:
        """Drop lines after `update`, which a resumed run rewrites; return a sentence on damaged ones, if any."""
        return keep_rows_until(self.metrics_file, update)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out of the folder while this one writes to it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            held = FileLock(self.folder / "lock").acquire(timeout=0)
        except Timeout:
            raise InputError(
                f"{self.folder} is in use by another process: wait for it, or choose another --folder."
            ) from None
        except OSError as error:
            raise InputError(f"Cannot write to the run folder {self.folder}: {error.strerror}.") from None
        with held:
            remove_partial_files(self.folder)
            yield

    def is_locked(self) -> bool:
        """Whether a process is writing to this run now."""
        if not (self.folder / "lock").exists():
            return False
        try:
            with FileLock(self.folder / "lock").acquire(timeout=0):
                return False
        except Timeout:
            return True


def circumstances() -> dict[str, Any]:
    """When and with what versions a run was started."""
    return {
        "vma": vma.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "revision": revision(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def revision() -> str | None:
    """The git revision of the source, if it is a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def settings_from(values: Any) -> TrainSettings:
    """Settings from plain values; an unknown key or a wrong type is an error that names it."""
    if not isinstance(values, dict):
        raise InputError("The settings must be an object with a name for each value.")
    return typed(completed(values, USUAL, "setting"), TrainSettings, "The settings have")


def data_of_file(data: dict[str, Any]) -> dict[str, Any]:
    """The data settings of a run's file, completed so that a user's own images are read as when it was written.

    Options of `folder` do not affect other datasets, so their defaults of that time make no difference there.
    """
    options = data.get("folder", {})
    if data.get("name") == "folder" and isinstance(options, dict):
        return {**data, "folder": {**EARLIER, **options}}
    return {name: value for name, value in data.items() if name != "folder"}


def default_root() -> Path:
    """The folder that holds all runs: VMA_RUNS, or `runs` in the current folder."""
    return Path(os.environ.get("VMA_RUNS") or "runs")


def all_runs(root: Path) -> list[Run]:
    """The runs under `root`, oldest first, including damaged ones and the two of a quickstart."""
    names = ("run.json", "checkpoint.safetensors", "sleep.safetensors", "metrics.jsonl")
    files = [path for name in names for depth in ("*", "*/*") for path in root.glob(f"{depth}/{name}")]
    started: dict[Path, float] = {}
    for file in files:  # run.json first: it is the oldest
        started.setdefault(file.parent, file.lstat().st_mtime)
    return [Run(folder) for folder in sorted(started, key=lambda folder: started[folder])]
