"""A run's folder: settings, metrics, checkpoints and the saved model, and a lock while it is being written."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from filelock import FileLock, Timeout

import vma
from vma.config import config_of_file, spelled_out
from vma.errors import InputError, unknown_name
from vma.files import remove_partial_files, write_atomically
from vma.runs.settings import TrainSettings

VERSION = 1


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
        """All that a resumed run needs."""
        return self.folder / "checkpoint.safetensors"

    @property
    def sleep_file(self) -> Path:
        """The same for a run that has fallen asleep."""
        return self.folder / "sleep.safetensors"

    @property
    def model_file(self) -> Path:
        """The model for use: averaged weights, if there is an average; the awake one until a sleep is complete."""
        return self.folder / "model.safetensors"

    def create(self, settings: TrainSettings, content: str = "") -> None:
        """Write run.json; a folder that already holds a run is left alone.

        Args:
            settings: The settings of the run.
            content: The hash of images that were given from Python; empty for a dataset that has a name.
        """
        if self.settings_file.exists():
            raise InputError(
                f"{self.folder} already holds a run: continue it with 'vma train --resume {self.folder}', "
                "or choose another --folder."
            )
        given = {"content": content} if content else {}
        record = {"version": VERSION, "settings": msgspec.to_builtins(settings), **given, **circumstances()}
        write_atomically(self.settings_file, json.dumps(record, indent=1).encode())

    def content(self) -> str:
        """The hash of the images that the run was given from Python; empty where it was given none."""
        return str(self.record().get("content", ""))

    def check_content(self, content: str) -> None:
        """Refuse to go on with other images than before."""
        if content and self.content() not in ("", content):
            raise InputError(
                f"The run {self.folder} was trained on other images or labels: give it the same as before, or "
                "start another run."
            )

    def keep_settings(self, settings: TrainSettings) -> None:
        """Write down that the run goes on with these settings; what it had before stays in its history."""
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
        return settings_from(values)

    def record(self) -> dict[str, Any]:
        """What run.json holds."""
        try:
            record = json.loads(self.settings_file.read_bytes())
        except FileNotFoundError:
            inside = self.folder / "vma" / "run.json"
            hint = f" Did you mean {inside.parent}?" if inside.exists() else ""
            raise InputError(f"There is no run in {self.folder}: it has no run.json.{hint}") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{self.settings_file} cannot be read: {error}.") from None
        return record if isinstance(record, dict) else {}

    def metrics(self) -> list[dict[str, Any]]:
        """All metrics written so far; a last line cut short by a crash is left out."""
        rows = []
        if self.metrics_file.exists():
            for line in self.metrics_file.read_text().splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    break
                if isinstance(row, dict) and "update" in row:
                    rows.append(row)
        return rows

    def append_metrics(self, row: dict[str, Any]) -> None:
        """Add a line to the metrics."""
        try:
            with self.metrics_file.open("a") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            raise InputError(f"Cannot write {self.metrics_file}: {error.strerror}.") from None

    def keep_metrics_until(self, update: int) -> None:
        """Drop lines after `update`, which a resumed run will write again."""
        kept = [json.dumps(row) + "\n" for row in self.metrics() if row["update"] <= update]
        write_atomically(self.metrics_file, "".join(kept).encode())

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
    """Settings of plain values: an unknown key or a wrong type is an error that names it."""
    if not isinstance(values, dict):
        raise InputError("The settings must be an object with a name for each value.")
    check_keys(values, TrainSettings(), "")
    try:
        return spelled_out(msgspec.convert(values, TrainSettings))
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InputError):
            raise error.__cause__ from None
        raise InputError(f"The settings have a value of the wrong type: {error}.") from None


def check_keys(values: dict[str, Any], like: Any, prefix: str) -> None:
    """Refuse keys that `like` does not have, at any depth; msgspec would drop them silently."""
    names = {field.name: getattr(like, field.name) for field in fields(like)}
    for key, value in values.items():
        if key not in names:
            raise unknown_name("setting", prefix + key, [prefix + name for name in names])
        if is_dataclass(names[key]) and isinstance(value, dict):
            check_keys(value, names[key], f"{prefix}{key}.")


def default_root() -> Path:
    """Where runs live: VMA_RUNS, or `runs` in the current folder."""
    return Path(os.environ.get("VMA_RUNS") or "runs")


def all_runs(root: Path) -> list[Run]:
    """The runs under `root`, also those of a quickstart, which has two, oldest first."""
    found = [Run(path.parent) for pattern in ("*/run.json", "*/*/run.json") for path in root.glob(pattern)]
    return sorted(found, key=lambda run: run.settings_file.stat().st_mtime)
