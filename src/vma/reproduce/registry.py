"""All experiments by name, in the order of the paper."""

from vma.errors import unknown_name
from vma.reproduce import controls, crossover, estimators, mnist, omniglot, omniglot28, sweeps, table1
from vma.reproduce.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        mnist.RECALL,
        mnist.LEARNED,
        omniglot.POSTERIOR,
        omniglot.ONE_SHOT,
        omniglot.BREAKDOWN,
        sweeps.CLASSES_SWEEP,
        sweeps.SHOTS_SWEEP,
        table1.TABLE1,
        omniglot28.OMNIGLOT28,
        omniglot.CLASSIFICATION,
        controls.FLAT_PRIOR,
        controls.SIMILARITIES,
        controls.MANY_CLASSES,
        crossover.CROSSOVER,
        omniglot.CURVES,
        estimators.EXPERIMENT,
    )
}


def find_experiment(name: str) -> Experiment:
    """The experiment of that name; for an unknown name, an error that lists the known ones."""
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
