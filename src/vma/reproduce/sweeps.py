"""Figure 5: the memory grows at test time, by more classes or by more examples of each class."""

import math

from vma.evaluation.answers import Answer
from vma.evaluation.sweeps import ClassesOptions, ShotsOptions, SweepResults, classes_sweep, shots_sweep
from vma.plotting.experiments.sweeps import classes_figure, shots_figure
from vma.reproduce.experiment import Experiment, Needed, PlannedEvaluation, Scale, planned
from vma.reproduce.findings import NO_NUMBER, Answers, Finding, finding

CLASSES = (1, 2, 4, 8, 16, 32, 64, 0)
SHOTS = (1, 2, 4, 8, 12, 16, 19)


def classes_plan(scale: Scale) -> dict[str, PlannedEvaluation]:
    """VMA with 4 and 16 items per class, soft attention with 16, and the VAE: all on the same targets."""
    several, most = scale.choose(CLASSES, (25, 50, 0)), scale.choose(16, 2)
    few, many = scale.choose(4, 1), scale.samples()
    return {
        "vma": planned("vma", classes_sweep, ClassesOptions(several, shots=few, samples=many)),
        "vma 16": planned("vma", classes_sweep, ClassesOptions(several, shots=most, samples=many)),
        "soft": planned("soft", classes_sweep, ClassesOptions(several, shots=most, samples=many)),
        "vae": planned_vae(few, many),
    }


def planned_vae(shots: int, samples: int) -> PlannedEvaluation:
    """The VAE on the targets of the sweeps; it ignores the memory."""
    return planned("vae", classes_sweep, ClassesOptions((0,), shots=shots, samples=samples))


def classes_findings(answers: Answers) -> list[Finding]:
    """The NLL at both ends of every line, how far it rises compared with log C, and the best of all."""
    ours = [answers[key] for key in ("vma", "vma 16") if key in answers]
    found = [each for answer in ours for each in (*ends(answer, "VMA"), *own_class_findings(answer))]
    points = [(point, answer) for answer in ours for point in answer.results.points]
    best, where = min(points, key=lambda pair: pair[0].nll.value)
    what = f"best NLL of VMA, {best.classes} classes × {best.shots}"
    found.append(finding(what, "68.8", best.nll, where))
    if "soft" in answers:
        found += soft_findings(answers["soft"])
    if "vae" in answers:
        found.append(vae_finding("NLL, VAE", answers["vae"]))
    return found


def ends(answer: Answer[SweepResults], name: str) -> list[Finding]:
    """The fewest and the most classes, and the rise between them beside log C."""
    first, last = answer.results.points[0], answer.results.points[-1]
    optimal = math.log(last.classes / first.classes)
    rise = f"{last.classes} classes instead of {first.classes}, {first.shots} items each"
    return [
        *(
            finding(f"NLL, {name}, C = {p.classes}, {p.shots} items each", "only drawn", p.nll, answer)
            for p in (first, last)
        ),
        finding(f"rise of NLL, {name}, {rise}", f"little above log C = {optimal:.2f}", last.rise, answer),
    ]


def own_class_findings(answer: Answer[SweepResults]) -> list[Finding]:
    """Whether q(a|x) finds the target's class, at every number of classes."""
    return [
        finding(f"{name}, C = {p.classes}, {p.shots} items each", NO_NUMBER, own, answer, unit="%")
        for p in answer.results.points
        for name, own in (
            ("mass of q(a|x) on the target's class", p.own_class_mass),
            ("class found by q(a|x)", p.own_class_first),
        )
        if own is not None
    ]


def soft_findings(answer: Answer[SweepResults]) -> list[Finding]:
    """Soft attention: its best with 1 or 2 classes, and how far it rises."""
    points = answer.results.points
    best = min([p for p in points if p.classes <= 2] or points[:1], key=lambda point: point.nll.value)
    what = f"best NLL of soft attention, C = {best.classes}, {best.shots} items each"
    rise = ends(answer, "soft attention")[2]
    return [
        finding(what, "73.4 with 1 or 2 classes × 16", best.nll, answer),
        finding(rise.what, "degrades rapidly", points[-1].rise, answer),
    ]


CLASSES_SWEEP = Experiment(
    name="fig5a-classes",
    title="Figure 5A: more classes in memory",
    paper="Up to 144 classes in memory there is only minimal degradation against average NLL per class "
    "+ log C; the model reaches up to 68.8 nats, the VAE 90.8; soft attention reaches 73.4 with 1"
    " or 2 classes, and degrades rapidly.",
    caption="The same targets at every point; the dashed line is what an optimal model of disjoint "
    "classes would have. On the right, how much of q(a|x) lies on the target's own class (solid), how often no "
    "other class has more (dotted), and chance (dashed).",
    needs={
        "vma": Needed("omniglot-fewshot-4"),
        "vae": Needed("omniglot-vae"),
        "soft": Needed("omniglot-soft"),
    },
    plan=classes_plan,
    findings=classes_findings,
    draw=classes_figure,
)


def shots_plan(scale: Scale) -> dict[str, PlannedEvaluation]:
    """All test classes in memory with 1 to 19 items each, for models trained with 1, 4 and 8; the VAE."""
    options = ShotsOptions(scale.choose(SHOTS, (1, 2)), samples=scale.samples())
    trained = {f"vma {shots}": planned(f"vma{shots}", shots_sweep, options) for shots in (1, 4, 8)}
    return {**trained, "vae": planned_vae(scale.choose(4, 1), scale.samples())}


def shots_findings(answers: Answers) -> list[Finding]:
    """Both ends of every line, and the VAE."""
    found = []
    for key, answer in answers.items():
        if answer.evaluation == "shots":
            name = f"VMA trained with {key.removeprefix('vma ')} a class"
            for point in (answer.results.points[0], answer.results.points[-1]):
                what = f"NLL, {name}, {point.shots} a class, |M| = {point.memory}"
                found.append(finding(what, "only drawn", point.nll, answer))
    if "vae" in answers:
        found.append(vae_finding("NLL at 0: VAE", answers["vae"]))
    return found


def vae_finding(what: str, answer: Answer[SweepResults]) -> Finding:
    """The VAE, whose NLL no memory changes."""
    return finding(what, "90.8", answer.results.points[0].nll, answer)


SHOTS_SWEEP = Experiment(
    name="fig5b-shots",
    title="Figure 5B: more examples of each class in memory",
    paper="All 144 test classes are in memory, with a varying number of examples each; models were "
    "trained with 8 classes and 1, 4 or 8 examples. Readout works reliably with |M| ≥ 2500. At 0 "
    "the best VAE, 90.8.",
    caption="The same targets at every point; at 0 the VAE.",
    needs={
        "vma4": Needed("omniglot-fewshot-4"),
        "vma1": Needed("omniglot-fewshot-1", least=120.0),
        "vma8": Needed("omniglot-fewshot-8", least=120.0),
        "vae": Needed("omniglot-vae"),
    },
    plan=shots_plan,
    findings=shots_findings,
    draw=shots_figure,
)
