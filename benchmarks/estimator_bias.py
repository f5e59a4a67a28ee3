"""Bias and spread of every estimator's gradient, on problems small enough to enumerate.

Random problems of four addresses and no z: log p(a), log q(a|x) and log p(x|a) are free. For each estimator the
expected gradient is compared with the exact gradient of its own objective, for q(a|x) and for the model.

    python -m benchmarks.estimator_bias results/estimator-bias.json
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import torch
from tests.helpers.oracles import Table, distinct_tuples, flat_gradient, tuples
from torch import Tensor

from vma import ESTIMATORS, AddressDistribution, Memory, estimate
from vma.reads import Reads, all_addresses, straight_through

ITEMS, PROBLEMS, GUMBEL_DRAWS = 4, 50, 400


def outcomes(table: Table, name: str, samples: int) -> Iterable[tuple[Reads, float]]:
    """Every way the reads can fall, with its probability; for `gumbel`, whose noise is continuous, a sample."""
    sampling = ESTIMATORS[name].sampling
    q_a = AddressDistribution(table.log_q[None])
    memory = Memory.of(torch.zeros(ITEMS, 1, 1))
    if sampling == "independent":
        return [(table.reads(a), float(p.detach())) for a, p in tuples(table.log_q, samples)]
    if sampling == "all":
        return [(all_addresses(q_a, 1, memory), 1.0)]
    if sampling == "without-replacement":
        return [
            (table.distinct_reads(a), float(p.detach())) for a, p in distinct_tuples(table.log_q, samples)
        ]
    return [(straight_through(q_a, samples, memory), 1 / GUMBEL_DRAWS) for _ in range(GUMBEL_DRAWS)]


def measure(name: str, samples: int) -> dict[str, float | str | int]:
    """Relative bias and relative spread of the gradient, averaged over random problems."""
    rows = []
    for seed in range(PROBLEMS):
        torch.manual_seed(seed)
        table = Table(ITEMS)
        multi = ESTIMATORS[name].objective == "multi-sample"
        exact = flat_gradient(table.expected_bound(samples) if multi else table.elbo(), table.parameters)
        drawn = list(outcomes(table, name, samples))
        gradients = [
            flat_gradient(estimate(table.terms(r), name).surrogate, table.parameters) for r, _ in drawn
        ]
        weights = torch.tensor([p for _, p in drawn])
        rows.append(summary(torch.stack(gradients), weights, exact))
    means = torch.tensor(rows).mean(0).tolist()
    keys = ("bias_q", "bias_model", "spread_q", "spread_model")
    return {"estimator": name, "samples": samples, **dict(zip(keys, means, strict=True))}


def summary(gradients: Tensor, weights: Tensor, exact: Tensor) -> list[float]:
    """Norms of bias and of standard deviation over the norm of the exact gradient, for q and for the model."""
    mean = weights @ gradients
    spread = (weights @ (gradients - mean).square()).sqrt()
    parts = {"q": slice(ITEMS, 2 * ITEMS), "model": slice(2 * ITEMS, 3 * ITEMS)}
    bias = [float((mean - exact)[part].norm() / exact[part].norm()) for part in parts.values()]
    return bias + [float(spread[part].norm() / exact[part].norm()) for part in parts.values()]


def main(path: Path) -> None:
    """Measure every estimator at K = 2 and K = 4, print a table and write the JSON."""
    torch.set_default_dtype(torch.float64)
    rows = []
    for name in ESTIMATORS:
        for samples in (2, 4):
            rows.append(measure(name, samples))
            print("  ".join(f"{v:.2g}" if isinstance(v, float) else f"{v:<20}" for v in rows[-1].values()))
    command = f"python -m benchmarks.estimator_bias {path}"
    path.write_text(
        json.dumps({"command": command, "items": ITEMS, "problems": PROBLEMS, "rows": rows}, indent=1)
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
