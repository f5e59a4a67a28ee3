"""What is usual in a memory that is searched, measured on some of its items, each given all the others."""

import numpy as np
import torch
from jaxtyping import Bool, Int

from vma.fewshot.lookup import look_up
from vma.fewshot.novelty import FEWEST, Measures, Norm, rule_of
from vma.fewshot.scores import MOST, log_p, nearest_angle, odds_of_turned, own_log_p, turned_copies
from vma.fewshot.searched_lookup import keyed_items, search_for
from vma.large.searched import SearchedItems
from vma.model import VMA


def usual_of_large(model: VMA, memory: SearchedItems, samples: int, seed: int | None) -> Norm:
    """Like `vma.fewshot.scores.usual`: items given all the others, and given only those of other classes."""
    labels = memory.snapshot.labels
    chosen = comparable_items(memory)
    if len(chosen) < FEWEST:
        what = "items that share their label with another" if (labels >= 0).any() else "items"
        return Norm(None, None, f"novelty needs {FEWEST} or more {what}; this memory has {len(chosen)}")
    spread = chosen[np.linspace(0, len(chosen) - 1, min(MOST, len(chosen))).round().astype(int)]
    keyed = keyed_items(model, memory, spread)
    copies = turned_copies(model, keyed, list(range(len(spread))))
    own = [own_log_p(look_up(model, keyed, x), samples, seed) for x in keyed.items.split(1)]

    def measures(number: int, gone: Int[np.ndarray, "gone"], left: Bool[np.ndarray, "probed"]) -> Measures:
        mask = torch.from_numpy(left).repeat(len(copies) // len(spread))
        rest = search_for(model, memory.without(gone), keyed.items[number : number + 1])
        surprise = log_p(rest, samples, seed) / own[number]
        return Measures(surprise, nearest_angle(rest), odds_of_turned(rest, copies.only(mask)))

    known = [measures(i, spread[[i]], spread != item) for i, item in enumerate(spread)]
    new = []
    if len(np.unique(labels[spread])) > 1 and (labels >= 0).any():
        for i, item in enumerate(spread):
            same = np.flatnonzero(labels == labels[item])
            new.append(measures(i, same, labels[spread] != labels[item]))
    table = np.array(known)
    others = np.array(new) if new else table[:0]
    return Norm(float(np.median(table[:, 0])), rule_of(table, others), turned=copies)


def comparable_items(memory: SearchedItems) -> Int[np.ndarray, "items"]:
    """The items that share their label with another one; all, if none has a label."""
    alive = memory.snapshot.alive()
    labels = memory.snapshot.labels[alive]
    if not (labels >= 0).any():
        return alive
    counts = np.bincount(labels[labels >= 0])
    return alive[(labels >= 0) & (counts[np.maximum(labels, 0)] > 1)]
