"""Omniglot 26×26, few-shot: Figures 3 and 4, the classification of the text, the supplement's curves."""

from vma.evaluation.answers import Answer
from vma.evaluation.classification import ClassifyOptions, ClassifyResults, TaskResult, classify
from vma.evaluation.episodes import NllOptions, nll
from vma.evaluation.posterior import PosteriorOptions, posterior
from vma.evaluation.samples import SamplesOptions, samples
from vma.evaluation.statistics import Share
from vma.plotting.experiments.bars import PAPER_ACCURACY, breakdown_figure, classification_figure
from vma.plotting.experiments.curves import one_shot_figure
from vma.plotting.experiments.grids import one_shot_samples
from vma.plotting.experiments.posterior import posterior_figure
from vma.reproduce.experiment import Experiment, Needed, PlannedEvaluation, Scale, planned
from vma.reproduce.findings import NO_NUMBER, Answers, Finding, finding
from vma.reproduce.shared_evaluations import planned_curve

VMA = {"vma": Needed("omniglot-fewshot-4")}
SHOTS = (1, 4, 8, 16)


# Figure 3


def posterior_plan(scale: Scale) -> dict[str, PlannedEvaluation]:
    """q(a|x) with 8 classes × 10 items in memory."""
    options = PosteriorOptions(
        episodes=scale.count(32), classes=scale.choose(8, 3), shots=scale.choose(10, 2), targets=4,
        samples=min(100, scale.samples()),
    )  # fmt: skip
    return {"posterior": planned("vma", posterior, options)}


def posterior_findings(answers: Answers) -> list[Finding]:
    """How often the right class is found, and how well new targets are told from known ones."""
    answer = answers["posterior"]
    found, absent = answer.results, answer.about["episodes"] * answer.about["targets"]
    present = absent * answer.about["classes"]
    measured = (
        ("H(q(a|x)), class in memory", found.in_memory.entropy, present),
        ("H(q(a|x)), class not in memory", found.absent.entropy, absent),
        ("log p(x|M), class in memory", found.in_memory.log_p, present),
        ("log p(x|M), class not in memory", found.absent.log_p, absent),
    )
    told = (("log p(x|M)", found.novelty_auc), ("H(q(a|x))", found.novelty_auc_entropy))
    return [
        finding(
            "targets whose class gets most of q(a|x)", "reliable, by eye", found.found, answer,
            unit="%", targets=present, samples=0,
        ),
        *[
            finding(name, NO_NUMBER, mean, answer, targets=count)
            for name, mean, count in measured
        ],
        *[
            finding(f"new told from known by {name} (area)", NO_NUMBER, area, answer, unit="", targets=absent)
            for name, area in told
        ],
    ]  # fmt: skip


POSTERIOR = Experiment(
    name="fig3-posterior",
    title="Figure 3: where the model looks",
    paper="Histograms of q(a|x) with the top-5 items for targets of unseen classes, M holding 10 "
    "examples from 8 unseen classes; in the supplement also for a mistaken target and one whose "
    "class is not in memory. No number.",
    caption="The memory, and for the first targets of the first episode that were found, mistaken or "
    "absent: the target, q(a|x) over all items in the colours of their classes (the target's own "
    "is shaded), and the five most probable items.",
    needs=VMA,
    plan=posterior_plan,
    findings=posterior_findings,
    draw=posterior_figure,
)


# Figure 4A


def one_shot_plan(scale: Scale) -> dict[str, PlannedEvaluation]:
    """Samples from a memory of one item; NLL with one item of each class."""
    options = NllOptions(
        episodes=scale.count(32), classes=scale.choose(8, 2), targets=4, shots=1, samples=scale.samples()
    )
    shown = SamplesOptions(rows=scale.choose(10, 3), samples=scale.choose(12, 2))
    return {"samples": planned("vma", samples, shown), "test": planned("vma", nll, options)}


def one_shot_findings(answers: Answers) -> list[Finding]:
    """The NLL with one item of each class."""
    test = answers["test"]
    what = f"NLL with one item of each of {test.about['classes']} unseen classes"
    return [finding(what, "samples, by eye; no number", test.results.nll, test)]


ONE_SHOT = Experiment(
    name="fig4a-oneshot",
    title="Figure 4A: one-shot samples",
    paper="Samples from p(x|M) with a single unseen example in M, of a model trained with 4 examples of"
    " 8 classes. No number.",
    caption="On the left the unseen example in memory, beside it samples (grey is the probability of "
    "ink). Classes and samples are chosen by chance.",
    needs=VMA,
    plan=one_shot_plan,
    findings=one_shot_findings,
    draw=one_shot_samples,
)


# Figure 4B


def breakdown_plan(scale: Scale) -> dict[str, PlannedEvaluation]:
    """NLL and its parts, with as many items per class as in training."""
    classes, targets = scale.choose(8, 2), scale.choose(4, 2)
    return {
        str(shots): planned(
            str(shots), nll, NllOptions(
                episodes=scale.count(32), classes=classes, targets=targets, shots=shots, samples=scale.samples()
            ),
        )
        for shots in SHOTS
    }  # fmt: skip


def breakdown_findings(answers: Answers) -> list[Finding]:
    """KL_a, KL_z and NLL for each number of items; the paper has the first and the last."""
    found = []
    for name, first, last in (("KL_a", "2.0", "4.5"), ("KL_z", "28.2", "21.8"), ("NLL", "75.1", "69.1")):
        for shots, answer in answers.items():
            means = {"KL_a": answer.results.kl_a, "KL_z": answer.results.kl_z, "NLL": answer.results.nll}
            paper = paper_between(int(shots), first, last)
            found.append(finding(f"{name}, {shots} a class", paper, means[name], answer))
    return found


def paper_between(shots: int, first: str, last: str) -> str:
    """The paper's number at 1 and at 16, or the two numbers that it lies between."""
    return {1: first, 16: last}.get(shots, f"between {first} and {last}")


BREAKDOWN = Experiment(
    name="fig4b-kl-breakdown",
    title="Figure 4B: from the variation to the address",
    paper="As the examples per class in memory increase, KL_a rises from 2.0 to 4.5 nats, KL_z falls "
    "from 28.2 to 21.8, and the test NLL improves from 75.1 to 69.1.",
    caption="One model for each number of examples, tested with as many; diamonds are the paper's first "
    "and last values.",
    needs={str(shots): Needed(f"omniglot-fewshot-{shots}") for shots in SHOTS},
    plan=breakdown_plan,
    findings=breakdown_findings,
    draw=breakdown_figure,
)


# Classification


def classification_plan(scale: Scale) -> dict[str, PlannedEvaluation]:
    """5 and 20 ways, 1 and 5 shots, by q(a|x); on fewer trials also by likelihood, which takes far longer."""
    tasks = scale.choose(tuple(PAPER_ACCURACY), ((2, 1), (3, 2)))
    both = {
        "by_address": ClassifyOptions(tasks, trials=scale.count(2000, tiny=4)),
        "by_likelihood": ClassifyOptions(tasks, trials=scale.count(200), samples=scale.choose(64, 1)),
    }
    return {form: planned("vma", classify, options) for form, options in both.items()}


def classification_findings(answers: Answers) -> list[Finding]:
    """The share of right answers for each task, by where the model looks and by likelihood."""
    return [
        *(
            share_finding(task, "q(a|x)", task.by_address, answers["by_address"])
            for task in answers["by_address"].results.tasks
        ),
        *(
            share_finding(task, "likelihood", task.by_likelihood, answers["by_likelihood"])
            for task in answers["by_likelihood"].results.tasks
        ),
    ]


def share_finding(task: TaskResult, by: str, share: Share, answer: Answer[ClassifyResults]) -> Finding:
    """The share of right answers for one task, beside the paper's if it is by q(a|x)."""
    theirs = PAPER_ACCURACY.get((task.ways, task.shots)) if by == "q(a|x)" else None
    paper = NO_NUMBER if theirs is None else f"{100 * theirs:.0f} %"
    what = f"{task.ways}-way {task.shots}-shot, by {by}"
    return finding(what, paper, share, answer, unit="%", targets=answer.about["trials"])


CLASSIFICATION = Experiment(
    name="text-classification",
    title="Text: few-shot classification",
    paper="Without retraining, by q(a|x): 91 % for 5-way 1-shot, 97 % for 5-way 5-shot, 77 % for 20-way"
    " 1-shot and 90 % for 20-way 5-shot.",
    caption="Share of right answers with 95 % intervals; diamonds are the paper's.",
    needs=VMA,
    plan=classification_plan,
    findings=classification_findings,
    draw=classification_figure,
)


# Supplement


def curves_findings(answers: Answers) -> list[Finding]:
    """Where the curves end."""
    answer = answers["curve"]
    last = answer.results.rows[-1]
    values = {"NLL, training classes": last.nll, "KL_a": last.kl_a, "KL_z": last.kl_z}
    return [
        finding(f"{name}, at the end", "curve only; no number", value, answer)
        for name, value in values.items()
    ]


CURVES = Experiment(
    name="supp-curves",
    title="Supplement: learning curves of the one-shot task",
    paper="Typical learning curves for the Omniglot one-shot task. No number.",
    caption="One item of each of 8 classes in memory: NLL, and what the address and the variation carry.",
    needs={"vma": Needed("omniglot-fewshot-1")},
    plan=lambda scale: {"curve": planned_curve("vma")},
    findings=curves_findings,
    draw=one_shot_figure,
)
