"""What bounds lose when a search finds the items, beside q(a|x) over all of them: paired, on the same reads.

    python -m benchmarks.large_bounds FOLDER 1000000 results/large-bounds.json

FOLDER is that of `benchmarks.large_memories build`. log p(a) p(x,z|m_a) / q(z|m_a,x) does not depend on how a was
drawn. For each target it is computed once for a pool of reads: several z at every candidate, and draws outside of
the candidates for each way of reading. Every way then takes its 64 reads out of this pool, each entry at most once,
so that each repetition is an honest draw of that way, and all ways share their noise. The ways: q(a|x) as it is
(`plain`) and as sharp as it was fitted to the memory by `vma memory sharpen` (`sharp`), over all items (`exact`)
and over so many items that a search finds.
"""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from benchmarks.large_memories import CLASSES, MODEL, READS, SEED, SHOTS, exact, queries_of
from vma.addressing import AddressDistribution
from vma.data import load_dataset
from vma.evaluation.growing_memories import GrowingMemories
from vma.evaluation.statistics import mean_of
from vma.fewshot import LargeMemory, TrainedModel, load
from vma.files import write_atomically
from vma.large import SearchedItems
from vma.proposals import EPSILON, Proposal
from vma.reads import PILOT, Reads, stratified

REPEATS = 64  # of each way of reading, for each target
CANDIDATES = (256, 1024)
OUTSIDE = 128  # reads of the pool outside of the candidates, for each way


@dataclass(frozen=True)
class Way:
    """A way of reading: which places its reads take. Each candidate is one, and everywhere else is one more.

    Attributes:
        candidates: Addresses.
        log_r: Of each candidate.
        reads: Places and shares.
        outside: log r(a) of each read of the pool that lies elsewhere.
    """

    candidates: Int[Tensor, "candidates"]
    log_r: Float[Tensor, "candidates"]
    reads: Reads
    outside: Float[Tensor, "pool"]

    @staticmethod
    def of(
        candidates: Tensor, log_r: Tensor, log_rest: Tensor, outside: Tensor, source: torch.Generator
    ) -> "Way":
        """Reads of r, drawn `REPEATS` times: sums over the best are exact, a quarter is drawn outside of these."""
        places = AddressDistribution(torch.cat((log_r, log_rest.reshape(1))).float().expand(REPEATS, -1))
        return Way(
            candidates, log_r, stratified(places, READS, None, source, outside=READS // PILOT), outside
        )

    def ranks(self) -> Int[Tensor, "repeats samples"]:
        """How many reads of its repetition have taken its place before each one."""
        same = self.reads.addresses[:, :, None] == self.reads.addresses[:, None, :]
        return same.tril(-1).sum(2)

    def most(self) -> Int[Tensor, "candidates"]:
        """How many reads of each candidate a repetition takes at most."""
        taken = torch.zeros(len(self.candidates) + 1, dtype=torch.int64)
        return taken.scatter_reduce(0, self.reads.addresses.flatten(), self.ranks().flatten() + 1, "amax")[
            :-1
        ]

    def bound(self, inside: list[Tensor], elsewhere: Tensor, source: torch.Generator) -> float:
        """The mean over repetitions of log Σ_k mass_k f_k / r(a_k); entries of the pool are taken in turn."""
        tables = [*(f - r for f, r in zip(inside, self.log_r, strict=True)), elsewhere - self.outside]
        sizes = torch.tensor([len(each) for each in tables])
        size = sizes[self.reads.addresses]
        start = (torch.rand(REPEATS, 1, generator=source) * size).long()
        rank = self.ranks()
        assert bool((rank < size).all()), "each entry is taken at most once"
        first = torch.cat((torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)[:-1]))
        entry = first[self.reads.addresses] + (start + rank) % size
        return float((self.reads.log_mass + torch.cat(tables)[entry]).logsumexp(1).mean())


@torch.no_grad()
def log_f_at(
    model: TrainedModel, memory: SearchedItems, x: Tensor, a: Int[Tensor, "reads"], source: torch.Generator
) -> Float[Tensor, "reads"]:
    """log p(a) p(x,z|m_a) / q(z|m_a,x), z drawn anew for each read."""
    p_a = memory.prior()
    flat = AddressDistribution(torch.zeros(1, len(memory)))  # q(a|x) is left out
    found = []
    for part in a.split(512):
        reads = Reads(part[None], torch.zeros(1, len(part)))
        noise = torch.randn((1, len(part), model.model.latent), generator=source)
        found.append(model.model.terms_at(x, memory, p_a, flat, reads, noise).log_w[0])
    return torch.cat(found)


@torch.no_grad()
def losses(
    model: TrainedModel, memory: SearchedItems, x: Tensor, q: AddressDistribution, source: torch.Generator
) -> dict[str, float]:
    """The bound by q(a|x) over all items and by r(a|x) from what a search finds, plain and sharpened."""
    found = {n: replace(memory, candidates=n).search(queries_of(model, x)) for n in CANDIDATES}
    most = found[max(CANDIDATES)]
    union = torch.cat((most[0], q.log_probs[0].topk(most.shape[1]).indices)).unique()
    ways, outside = {}, {}
    for name, sharpness in (("plain", 1.0), ("sharp", memory.sharpness)):
        sharp = AddressDistribution.of_scores(sharpness * q.log_probs)
        ways[f"exact {name}"], outside[f"exact {name}"] = over_all(sharp, union, source)
        for count, a in found.items():
            r = Proposal(a, q.log_probs[:, a[0]], memory.prior(), EPSILON, sharpness)
            ways[f"{count} {name}"], outside[f"{count} {name}"] = over_found(r, source)
    counts = torch.zeros(len(memory), dtype=torch.int64)
    for way in ways.values():
        counts[way.candidates] = torch.maximum(counts[way.candidates], way.most())
    counts = counts[union]
    a = torch.cat((union.repeat_interleave(counts), *outside.values()))
    inside, *others = log_f_at(model, memory, x, a, source).split(
        [int(counts.sum()), *map(len, outside.values())]
    )
    log_f = dict(zip(union.tolist(), inside.split(counts.tolist()), strict=True))
    return {
        name: way.bound([log_f[each] for each in way.candidates.tolist()], there, source)
        for (name, way), there in zip(ways.items(), others, strict=True)
    }


def over_all(q: AddressDistribution, union: Tensor, source: torch.Generator) -> tuple[Way, Tensor]:
    """Reads of a distribution over all items, and the addresses of its pool outside of the best."""
    rest = q.log_probs.scatter(1, union[None], -torch.inf)
    outside = AddressDistribution.of_scores(rest).sample(OUTSIDE, source)[0]
    log_q = q.log_probs[0]
    return Way.of(union, log_q[union], rest.logsumexp(1), log_q[outside], source), outside


def over_found(r: Proposal, source: torch.Generator) -> tuple[Way, Tensor]:
    """Reads of what a search found, and the addresses of its pool outside of that."""
    outside = r.elsewhere(0, OUTSIDE, source)
    log_rest = r.places().log_probs[0, -1]
    return Way.of(r.addresses[0], r.log_r[0], log_rest, r.log_prob(outside[None])[0], source), outside


def several(each: int) -> tuple[Tensor, list[int]]:
    """So many targets of every class of which four drawings are in memory, and the class of each."""
    dataset = load_dataset("omniglot", "test", split="45-5")
    found = GrowingMemories(dataset, 1, SHOTS, SEED)
    chosen, classes = [], []
    for number, images in enumerate(found.images[:CLASSES]):
        others = np.setdiff1d(np.flatnonzero(dataset.class_labels() == found.order[number]), images[1:])
        chosen += others[:each].tolist()
        classes += [number] * min(each, len(others))
    return found.pixels(np.array(chosen)), classes


def main(folder: Path, items: int, out: Path, each: int = 1) -> None:
    """Every target that is not done yet, each with randomness of its own."""
    torch.set_num_threads(1)
    model, (x, groups) = load(MODEL), several(each)
    memory = LargeMemory(model.model, model.fingerprint, folder / f"memory-{items}").searched
    rows = [row for size in about(out) if size["items"] == items for row in size["each"]]
    for i in range(len(rows), len(x)):
        _, q = exact(model, memory, x[i : i + 1], items)
        rows.append(losses(model, memory, x[i : i + 1], q, torch.Generator().manual_seed(SEED + i)))
        found = summary(rows, groups[: i + 1])
        settings = {
            "command": f"python -m benchmarks.large_bounds FOLDER {items} {out} {each}", "model": MODEL,
            "items": items, "reads": READS, "candidates": CANDIDATES, "sharpness": memory.sharpness,
            "epsilon": EPSILON, "repeats": REPEATS, "seed": SEED,
        }  # fmt: skip
        others = [size for size in about(out) if size["items"] != items]
        content = sorted([*others, settings | found], key=lambda size: size["items"])
        write_atomically(out, (json.dumps(content, indent=1) + "\n").encode())


def about(out: Path) -> list[dict[str, Any]]:
    """What is known already."""
    return json.loads(out.read_text()) if out.exists() else []


def summary(rows: list[dict[str, float]], groups: list[int]) -> dict[str, Any]:
    """Means over all targets, of which those of a class are one group."""

    def mean(values: list[float]) -> dict[str, float]:
        found = mean_of(values, groups)
        return {"value": found.value, "error": found.error}

    pairs = [
        (f"exact {first}", f"{count} {second}")
        for first, second in (("plain", "plain"), ("sharp", "sharp"), ("plain", "sharp"))
        for count in CANDIDATES
    ]
    return {
        "classes": len(set(groups)), "targets": len(rows),
        "bound": {name: mean([row[name] for row in rows]) for name in rows[0]},
        "minus": {f"{one} - {two}": mean([row[one] - row[two] for row in rows]) for one, two in pairs},
        "each": [{name: round(value, 3) for name, value in row.items()} for row in rows],
    }  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), *map(int, sys.argv[4:]))
