"""Whether an image's class is missing from memory, judged by where q(a|x) looks alone, without a likelihood.

Of the measures of `vma.fewshot.novelty` it uses the angle and the odds, which tell most, and combines them as a
score combines all three.
"""

from collections import Counter

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from vma.fewshot.items import Labels
from vma.fewshot.lookup import LookUp
from vma.fewshot.novelty import FEWEST, UNUSUAL, Measures, Norm, rule_of
from vma.fewshot.scores import MOST, comparable, turned_copies
from vma.memory import KeyedMemory
from vma.model import VMA

AT_ONCE = 64  # images at a time

Looks = Float[np.ndarray, "images 2"]


@torch.no_grad()
def usual_looks(model: VMA, keyed: KeyedMemory, labels: Labels) -> Norm:
    """What is usual in this memory: its items, each given all the others, and given only those of other classes."""
    chosen = comparable(labels)
    if len(chosen) < FEWEST:
        what = "items that share their label with another" if any(labels) else "items"
        return Norm(None, None, f"novelty needs {FEWEST} or more {what}; this memory has {len(chosen)}")
    items = [chosen[i] for i in np.linspace(0, len(chosen) - 1, min(MOST, len(chosen))).round().astype(int)]
    copies, e = turned_copies(model, keyed, items), model.addressing.queries(keyed.items[items])
    device, codes = e.device, {label: code for code, label in enumerate(Counter(labels))}
    classes = torch.tensor([codes[label] for label in labels], device=device)
    others = torch.arange(len(labels), device=device) != torch.tensor(items, device=device)[:, None]
    turns = len(copies) // len(items)
    known, new = (
        looks(model, keyed, copies, e, given, given[:, items].repeat(1, turns))
        for given in (others, classes != classes[items][:, None])
    )
    return Norm(
        None, rule_of(known, new if len({labels[i] for i in items}) > 1 else known[:0]), turned=copies
    )


@torch.no_grad()
def looks(
    model: VMA,
    keyed: KeyedMemory,
    copies: KeyedMemory,
    e: Float[Tensor, "images matching"],
    given: Bool[Tensor, "images memory"] | None = None,
    copies_given: Bool[Tensor, "images copies"] | None = None,
) -> Looks:
    """Angle and odds of every image, if memory holds only what is `given` for it; by default, everything."""
    here, there = (
        each.memory.in_use() if only is None else each.memory.in_use() & only
        for each, only in ((keyed, given), (copies, copies_given))
    )
    cosines = normalize(e.double(), dim=-1) @ normalize(keyed.keys.double(), dim=-1).T
    angle = cosines.masked_fill(~here, -1.0).amax(1).clamp(-1, 1).arccos()
    masses = [
        model.addressing.similarity.scores(each.keys, e).double().masked_fill(~mask, -torch.inf).logsumexp(1)
        for each, mask in ((copies, there), (keyed, here))
    ]
    return torch.stack((angle, masses[0] - masses[1]), 1).cpu().numpy()


def novel(look: LookUp, norm: Norm) -> list[bool | None]:
    """For every image, whether it is novel; None if that cannot be told."""
    if norm.rule is None or norm.turned is None:
        return [None] * len(look.x)
    found = [looks(look.model, look.keyed, norm.turned, e) for e in look.queries.split(AT_ONCE)]
    measures = [Measures(0.0, *row) for row in np.concatenate(found).tolist()]
    return [norm.rule.p_value(each) < UNUSUAL for each in measures]
