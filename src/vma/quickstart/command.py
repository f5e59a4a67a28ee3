"""`vma quickstart`: train on invented characters for two minutes, then show what it does with unseen ones."""

import time
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

import msgspec

from vma.data import load_dataset
from vma.errors import InputError
from vma.evaluation import open_run
from vma.files import write_atomically
from vma.pretrained import DEFAULT
from vma.quickstart.machine import Machine, told
from vma.quickstart.measure import Training, measure
from vma.runs.checkpoint import read_progress
from vma.runs.folder import Run, default_root
from vma.runs.presets import PRESETS
from vma.runs.settings import SleepSettings, TrainSettings
from vma.training.loop import train_run

VMA_SHARE = 0.72  # of the minutes; the VAE then makes as many updates, which take less time
LEAST_UPDATES = 400  # made however long they take: with fewer there is nothing to see


def quickstart(minutes: float = 2.0, folder: Path | None = None, seed: int = 0) -> None:
    """Train on invented characters, then report on characters that were never seen.

    Args:
        minutes: Time for training, for the model with memory and for the one without together; on a busy machine
            it takes longer, since a few hundred updates are made in any case.
        folder: Where runs and report are kept; the default is runs/quickstart-TIME.
        seed: Seed of everything random.
    """
    import_module(
        "vma.quickstart.page"
    )  # now, so that missing packages are noticed before two minutes of training
    if not minutes > 0:
        raise InputError(f"The quickstart needs some minutes to train, not {minutes:g}: give it 2.")
    folder = folder or default_root() / f"quickstart-{time.strftime('%Y%m%d-%H%M%S')}"
    machine, settings = Machine.now(), small_settings(seed)
    print(machine, flush=True)
    print(f"1/3  A model with a memory, {VMA_SHARE * minutes:.1f} minutes", flush=True)
    with_memory, without = Run(folder / "vma"), Run(folder / "vae")
    timed = replace(settings, minutes=VMA_SHARE * minutes, threads=machine.threads)
    if not train_run(timed, with_memory):
        return
    updates = read_progress(with_memory.checkpoint_file).update
    print(f"2/3  The same without a memory (a VAE), for as many updates: {updates}", flush=True)
    if not train_run(replace(as_vae(settings, updates), threads=machine.again().threads), without):
        return
    print("3/3  Looking at characters that neither has seen", flush=True)
    machine.again().calm()
    report(folder, with_memory, without, command=command_of(minutes, seed), machine=machine)
    print(
        f"Next: vma serve {DEFAULT}   (a page to draw on; the trained model in the box answers)", flush=True
    )


def command_of(minutes: float, seed: int) -> str:
    """The command that gives the same again."""
    given = {"--minutes": (minutes, 2.0), "--seed": (seed, 0)}
    words = [f"{name} {value:g}" for name, (value, usual) in given.items() if value != usual]
    return " ".join(["vma quickstart", *words])


def small_settings(seed: int) -> TrainSettings:
    """A model that learns something in two minutes on two cores, by the best recipe for that (lab notes)."""
    preset = PRESETS["glyphs-fewshot-fast"]
    return replace(
        preset,
        model=replace(preset.model, maps=16, style="paper"),
        optimiser=replace(preset.optimiser, name="muon-kernels", warmup=50),
        sleep=SleepSettings(),
        seed=seed,
        updates=20_000,
        least_updates=LEAST_UPDATES,
        log_every=5,
        validate_every=100,
    )


def as_vae(settings: TrainSettings, updates: int) -> TrainSettings:
    """The same settings for a model without memory."""
    model = replace(settings.model, model="vae")
    return replace(settings, preset="glyphs-vae-fast", model=model, updates=updates, sleep=SleepSettings())


def report(folder: Path, with_memory: Run, without: Run, command: str, machine: Machine) -> None:
    """Measure both models on unseen classes, and write report.html and findings.json."""
    from vma.quickstart.page import summary, write_report  # here, since plotting takes a second to import
    from vma.quickstart.pictures import draw_pictures, from_the_box

    seen = load_dataset("glyphs", "train")
    ours, theirs = (read_progress(run.checkpoint_file) for run in (with_memory, without))
    training = Training(
        updates=ours.update,
        vae_updates=theirs.update,
        seconds=ours.seconds + theirs.seconds,
        classes=len(seen.classes) - with_memory.settings().data.held_out,
        threads=machine.threads,
        load=machine.load,
        cores=machine.cores,
    )
    trained, vae = open_run(with_memory), open_run(without)
    findings = measure(trained, vae, training, show=told)
    print("     drawing", flush=True)
    pictures = draw_pictures(trained, with_memory.metrics(), without.metrics(), shipped=from_the_box())
    write_atomically(folder / "findings.json", msgspec.json.encode(asdict(findings)))
    write_report(folder / "report.html", findings, pictures, command=command)
    print(f"{summary(findings)}\n\nThe report: {folder / 'report.html'}", flush=True)
