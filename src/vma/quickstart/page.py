"""The report as one self-contained HTML file, and as a few lines for a terminal."""

import math
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from vma.evaluation.statistics import Mean
from vma.files import write_atomically
from vma.plotting.embedding import data_uri
from vma.pretrained import DEFAULT, card_of
from vma.quickstart.measure import Findings, Training
from vma.quickstart.pictures import Pictures

CLEAR = 2.0  # standard errors that make a difference clear
ENOUGH = 1000  # updates of a training that is not called too short
UNUSED = 0.5  # nats below which a latent variable counts as hardly used


@dataclass(frozen=True)
class Sentences:
    """What the numbers mean, in words that depend on the numbers."""

    likelihood: str
    accuracy: str
    address: str
    variation: str
    training: str


def write_report(
    path: Path, findings: Findings, pictures: Pictures, *, command: str = "vma quickstart"
) -> None:
    """Write the page to `path`, completely or not at all.

    Args:
        path: Where to write it.
        findings: All numbers.
        pictures: All pictures.
        command: The command that gives the same report again.
    """
    write_atomically(path, render(findings, pictures, command).encode())


def render(findings: Findings, pictures: Pictures, command: str) -> str:
    """The page as text; every value is escaped."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"nats": nats, "percent": percent, "minutes": minutes, "thousands": thousands}
    source = files("vma.quickstart").joinpath("template.html").read_text(encoding="utf-8")
    return environment.from_string(source).render(
        f=findings,
        say=sentences(findings),
        bars=bars(findings),
        samples=data_uri(pictures.samples),
        addressing=data_uri(pictures.addressing),
        curves=None if pictures.curves is None else data_uri(pictures.curves),
        bits_per_pixel=findings.nll_vma.value / findings.pixels / math.log(2),
        command=command,
        card=card_of(DEFAULT),
    )


def bars(findings: Findings) -> dict[str, float]:
    """Lengths of the page's bars in percent, relative to the largest value that is compared."""
    ours, theirs = findings.nll_vma.value, findings.nll_vae.value
    scale = max(ours, theirs)
    address = max(findings.log_memory, findings.kl_a.value)
    lengths = {
        "vma": ours / scale if scale > 0 else 0.0,
        "vae": theirs / scale if scale > 0 else 0.0,
        "accuracy": findings.accuracy.value,
        "chance": 1 / findings.ways,
        "kl_a": findings.kl_a.value / address,
        "classes": findings.log_classes / address,
    }
    return {name: 100 * min(1.0, max(0.0, finite(length))) for name, length in lengths.items()}


def finite(value: float) -> float:
    """`value`, or 0 if it is not finite."""
    return value if math.isfinite(value) else 0.0


def sentences(findings: Findings) -> Sentences:
    """One sentence for each headline number, true whatever the number is."""
    return Sentences(
        compare_likelihood(findings.gain, findings.kl_a.value),
        compare_accuracy(findings),
        explain_address(findings),
        explain_variation(findings.kl_z),
        warn_of(findings.training),
    )


def compare_likelihood(gain: Mean, kl_a: float) -> str:
    """Which of the two models explains unseen images better, if that is clear, and whether due to its memory."""
    if not (math.isfinite(gain.value) and math.isfinite(gain.error)):
        return "The two could not be compared: a likelihood is not a finite number."
    size = f"{abs(gain.value):.1f} ± {gain.error:.1f} nats"
    if abs(gain.value) <= CLEAR * gain.error:
        return f"No clear difference from the VAE, which has no memory ({size})."
    if gain.value > 0 and kl_a < UNUSED:
        return f"{size} less than the VAE, but not by searching the memory, which is hardly used yet."
    if gain.value > 0:
        return f"The memory helps: {size} less than the VAE, which has none."
    return f"The memory does not help here: {size} more than the VAE, which has none."


def compare_accuracy(findings: Findings) -> str:
    """How the accuracy compares with guessing."""
    share, chance = findings.accuracy, 1 / findings.ways
    task = f"Given one example of each of {findings.ways} new classes, it names the class of a further image"
    if share.low > chance:
        return f"{task}, better than by chance."
    if share.high < chance:
        return f"{task}, worse than by chance."
    return f"{task}, no better than by chance."


def explain_address(findings: Findings) -> str:
    """What KL_a amounts to, between nothing and one certain item."""
    kl, classes = findings.kl_a.value, findings.log_classes
    if not math.isfinite(kl):
        return "The divergence is not a finite number."
    if kl < UNUSED:
        return "Looking at the target hardly changes where the model reads: the memory is not searched yet."
    if kl < 0.75 * classes:
        return "The target narrows down where to read, but does not single out a class yet."
    if kl < classes + 0.5 * (findings.log_memory - classes):
        return f"About as much as it takes to single out one class of {findings.classes}."
    return "More than it takes to single out a class: it reads particular items."


def explain_variation(kl: Mean) -> str:
    """Whether z is used, and hence whether samples differ from one another."""
    if not math.isfinite(kl.value):
        return "KL_z is not a finite number."
    if kl.value < UNUSED:
        return (
            f"z is hardly used (KL_z = {kl.value:.2f} nats): expect the samples of a row to be nearly alike."
        )
    return f"What varies within a row is z, which carries KL_z = {kl.value:.1f} nats per image."


def warn_of(training: Training) -> str:
    """A warning that stands first if training was too short to judge by; else empty."""
    if training.updates >= ENOUGH:
        return ""
    busy = training.cores and training.load > training.cores / 2
    cause = (
        f" The machine was busy (a load of {training.load:.1f} on {training.cores} cores)." if busy else ""
    )
    return (
        f"Trained too briefly: {training.updates} updates, where {ENOUGH} are needed before the figures say much "
        f"of the method.{cause} Give it more time: vma quickstart --minutes 10."
    )


def summary(findings: Findings) -> str:
    """The findings in a few plain lines."""
    f, say = findings, sentences(findings)
    accuracy = f"{percent(f.accuracy.value)} ({percent(f.accuracy.low)} to {percent(f.accuracy.high)})"
    return "\n".join(
        [
            *([f"\n*** {say.training} ***\n"] if say.training else []),
            f"On {f.unseen_classes} unseen classes of {f.dataset}, after {f.training.updates} updates:",
            f"  NLL (K = {f.samples})       {nats(f.nll_vma)}   VAE {nats(f.nll_vae)}   nats per image",
            f"  {f.ways}-way 1-shot       {accuracy}, chance {percent(1 / f.ways)}",
            f"  KL_a              {nats(f.kl_a, 2)} nats   log |M| = {f.log_memory:.2f}",
            f"  KL_z              {nats(f.kl_z, 2)} nats",
            say.likelihood,
            say.address,
        ]
    )


def nats(mean: Mean, digits: int = 1) -> str:
    """E.g. `86.5 ± 0.4`."""
    return f"{mean.value:.{digits}f} ± {mean.error:.{digits}f}".replace("-", "−")


def percent(share: float) -> str:
    """E.g. `93.1 %`."""
    return f"{100 * share:.1f} %".replace(".0 %", " %")


def minutes(seconds: float) -> str:
    """E.g. `2 min 5 s`."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def thousands(number: int) -> str:
    """E.g. `12 345`, with a narrow space that does not break."""
    return f"{number:,}".replace(",", "\u202f")
