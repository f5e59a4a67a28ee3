"""Omniglot at 28×28 with a learned memory: the numbers of the text."""

import math

from vma.evaluation.episodes import NllOptions, nll
from vma.evaluation.samples import SamplesOptions, samples
from vma.plotting.experiments.grids import omniglot28_figure
from vma.reproduce.experiment import Experiment, Needed, PlannedEvaluation, Scale, planned
from vma.reproduce.findings import NO_NUMBER, Answers, Finding, finding
from vma.reproduce.shared_evaluations import planned_curve

MODELS = {"256": "learned |M| = 256", "vae": "VAE", "2048": "learned |M| = 2048, no L2"}
BELOW, ABOVE = "significantly below the VAE's", "above that with memory"
PAPER_TEST = {"256": "103.6 (K = 5000)", "vae": NO_NUMBER, "2048": "> 150"}
PAPER_TRAIN = {"256": BELOW, "vae": ABOVE, "2048": "< 80"}


def plan(scale: Scale) -> dict[str, PlannedEvaluation]:
    """NLL on test and training images for each model; curve and samples of |M| = 256."""
    options = NllOptions(episodes=scale.count(32), samples=scale.samples(5000))
    found = {
        "curve": planned_curve("256"),
        "samples": planned(
            "256", samples, SamplesOptions(rows=scale.choose(8, 3), samples=scale.choose(10, 2))
        ),
    }
    for key in MODELS:
        found[f"test {key}"] = planned(key, nll, options)
        found[f"train {key}"] = planned(key, nll, options, part="train")
    return found


def findings(answers: Answers) -> list[Finding]:
    """NLL, KL_z and KL_a of each model, with a warning if the data is a stand-in for the paper's."""
    return [each for key in MODELS if f"test {key}" in answers for each in findings_of(key, answers)]


def findings_of(key: str, answers: Answers) -> list[Finding]:
    """The rows of one model."""
    test, train = answers[f"test {key}"], answers[f"train {key}"]
    burda = test.data.name == "omniglot28"
    name = MODELS[key] if burda else f"{MODELS[key]}, on {test.data.name}"
    warning = "" if burda else "; on Burda's images, so not comparable"
    said = [
        f"{paper}{warning if any(map(str.isdigit, paper)) else ''}"
        for paper in (PAPER_TEST[key], PAPER_TRAIN[key])
    ]
    found = [
        finding(f"test NLL, {name}", said[0], test.results.nll, test),
        finding(f"training NLL, {name}", said[1], train.results.nll, train),
        finding(f"KL_z, {name}", ABOVE if key == "vae" else BELOW, test.results.kl_z, test),
    ]
    if test.results.items is not None:
        paper = f"typically approaches log |M| = {math.log(test.results.items):.2f}"
        found.append(finding(f"KL_a, {name}", paper, test.results.kl_a, test))
    return found


OMNIGLOT28 = Experiment(
    name="text-omniglot28",
    title="Text: Omniglot 28×28 with a learned memory",
    paper="A learned memory of 256 items, 32 maps and L2 of 3e-4 give a test NLL of 103.6 (K = 5000). "
    "KL_a typically approaches log |M|; KL_z and training NLL are significantly lower than the "
    "VAE's; |M| = 2048 without L2 overfits.",
    caption="Learning curve, and samples that share an item in each row. Where Burda's chardata.mat is "
    "not at hand, a stand-in made from the original drawings is used, and numbers on it are not "
    "comparable with published ones.",
    needs={
        "256": Needed("omniglot28-learned-256"),
        "vae": Needed("omniglot28-vae"),
        "2048": Needed("omniglot28-learned-2048", least=600.0),
    },
    plan=plan,
    findings=findings,
    draw=omniglot28_figure,
)
