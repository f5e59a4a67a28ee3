"""log p(x|M) of an image, and whether the image is novel, that is, of a class that is not in memory."""

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import normalize

from vma.bounds import multi_sample_bound
from vma.checks import check_samples, generator_of
from vma.fewshot.items import Labels
from vma.fewshot.lookup import LookUp, keyed_items, look_up, search_for
from vma.fewshot.novelty import FEWEST, UNUSUAL, Measures, Norm, Table, rule_of
from vma.large.searched import SearchedItems
from vma.memory import KeyedMemory
from vma.model import VMA
from vma.warps import turned

MOST = 50  # items that a norm is made from: more take longer and add little


@dataclass(frozen=True)
class Score:
    """How well a memory explains an image.

    >>> score = vma.load("omniglot-crisp").remember("my-symbols").score("new.png")[0]
    >>> isinstance(score, vma.fewshot.Score), score.log_p < 0
    (True, True)
    >>> score.novel == (score.p_value < 0.05)
    True

    Attributes:
        log_p: The K-sample bound of log p(x|M), in nats.
        bits_per_pixel: −log_p / (ln 2 · pixels).
        surprise: log p(x|M) / log p(x|{x}): 1 for an image that memory explains as well as if it held the image.
        novel: Whether p_value is below 5 %; None if that cannot be told.
        threshold: The log_p below which this image would be novel, given its other measures.
        typical: The log_p that would be usual for this image.
        reason: Why `novel` is None; else empty.
        angle: Angle between the image and the item nearest to it in the matching space, in radians.
        odds: Odds of the image among turned copies of the items (see `Measures`); None where `novel` is None.
        p_value: The probability that an image of a class in memory is at least as unusual as this one.
    """

    log_p: float
    bits_per_pixel: float
    surprise: float
    novel: bool | None
    threshold: float | None
    typical: float | None
    reason: str = ""
    angle: float = math.nan
    odds: float | None = None
    p_value: float | None = None


# What is measured


def log_p(look: LookUp, samples: int, seed: int | None) -> float:
    """L = log 1/K Σ_k w_k (eq. 7) of one image, independent of the other images asked about."""
    check_samples(samples, 1, "A score")
    return float(multi_sample_bound(look.terms(samples, generator_of(seed, look.x.device)))[0])


def own_log_p(look: LookUp, samples: int, seed: int | None) -> float:
    """log p(x|{x}): the log-probability if memory holds only the image itself; complex images have a lower one."""
    return log_p(look.alone(), samples, seed)


def nearest_angle(look: LookUp) -> float:
    """θ = min_a arccos <k_a, e^q> / (‖k_a‖ ‖e^q‖): how far the nearest item is in the matching space."""
    keyed = look.keyed
    cosines = normalize(keyed.keys.double(), dim=-1) @ normalize(look.queries[0].double(), dim=0)
    return float(cosines[keyed.memory.in_use()].max().clamp(-1, 1).arccos())


def odds_of_turned(look: LookUp, copies: KeyedMemory) -> float:
    """log Σ exp S(m_a, x) over the turned copies, minus the same over the items."""
    scores = look.model.addressing.similarity.scores
    there, here = (
        scores(each.keys, look.queries[0])[each.memory.in_use()].double().logsumexp(0)
        for each in (copies, look.keyed)
    )
    return float(there - here)


# What is usual


def usual(model: VMA, keyed: KeyedMemory, labels: Labels, samples: int, seed: int | None) -> Norm:
    """What is usual in this memory: its items, each given all the others, and given only those of other classes."""
    chosen = comparable(labels)
    if len(chosen) < FEWEST:
        what = "items that share their label with another" if any(labels) else "items"
        return Norm(None, None, f"novelty needs {FEWEST} or more {what}; this memory has {len(chosen)}")
    spread = np.linspace(0, len(chosen) - 1, min(MOST, len(chosen))).round().astype(int)
    items = [chosen[i] for i in spread]
    looks = [look_up(model, keyed, keyed.items[i : i + 1]) for i in items]
    own = [own_log_p(look, samples, seed) for look in looks]
    probe = Probe(looks, items, own, turned_copies(model, keyed, items), samples, seed)
    known = probe.measures([[j != i for j in range(len(labels))] for i in items])
    elsewhere = [[label != labels[i] for label in labels] for i in items]
    # If all items are of one class, no target can be of an absent class.
    new = probe.measures(elsewhere) if len({labels[i] for i in items}) > 1 else known[:0]
    return Norm(float(np.median(known[:, 0])), rule_of(known, new), turned=probe.copies)


def comparable(labels: Labels) -> list[int]:
    """The items with another example of their class in memory: those that share a label; all if none has one."""
    if not any(labels):
        return list(range(len(labels)))
    count = Counter(labels)
    return [i for i, label in enumerate(labels) if label is not None and count[label] > 1]


def turned_copies(model: VMA, keyed: KeyedMemory, items: list[int]) -> KeyedMemory:
    """Some items, turned and mirrored in every way that their shape allows."""
    ink = keyed.items[items]
    turns = range(1, 8) if ink.shape[-2] == ink.shape[-1] else (1, 4, 5)
    return model.remember(torch.cat([turned(ink, turn) for turn in turns]))


@dataclass(frozen=True)
class Probe:
    """Items of a memory, measured as if the memory held only some of the others.

    Attributes:
        looks: The items to measure, looked up in the whole memory.
        items: Their numbers.
        own: log p(x|{x}) of each item.
        copies: Turned copies of them.
        samples: K.
        seed: Seed of the draws.
    """

    looks: list[LookUp]
    items: list[int]
    own: list[float]
    copies: KeyedMemory
    samples: int
    seed: int | None

    def measures(self, given: list[list[bool]]) -> Table:
        """The measures of each item, if memory holds only what is `given` for it."""
        masks = torch.tensor(given, device=self.copies.keys.device)
        rows = zip(self.looks, self.own, masks, strict=True)
        return np.array([self.measure(*row) for row in rows])

    def measure(self, look: LookUp, own: float, given: Bool[Tensor, "memory"]) -> Measures:
        """The measures of one item."""
        rest = look.given(look.keyed.only(given))
        turns = len(self.copies) // len(self.items)
        copies = self.copies.only(given[self.items].repeat(turns))
        surprise = log_p(rest, self.samples, self.seed) / own
        return Measures(surprise, nearest_angle(rest), odds_of_turned(rest, copies))


# An image


def score(look: LookUp, norm: Norm, samples: int, seed: int | None) -> Score:
    """The score of an image, relative to what is usual for an image with the same log p(x|{x})."""
    return judge(look, log_p(look, samples, seed), norm, samples, seed)


def judge(look: LookUp, value: float, norm: Norm, samples: int, seed: int | None) -> Score:
    """The score of an image whose log p(x|M) is known."""
    own = own_log_p(look, samples, seed)
    plain = Score(
        log_p=value,
        bits_per_pixel=-value / (math.log(2) * math.prod(look.x.shape[-2:])),
        surprise=value / own,
        novel=None,
        threshold=None,
        typical=None,
        reason=norm.reason,
        angle=nearest_angle(look),
    )
    if norm.rule is None or norm.turned is None or norm.typical is None:
        return plain
    measures = Measures(plain.surprise, plain.angle, odds_of_turned(look, norm.turned))
    p_value = norm.rule.p_value(measures)
    return replace(
        plain,
        novel=p_value < UNUSUAL,
        threshold=norm.rule.largest_surprise(measures) * own,
        typical=norm.typical * own,
        odds=measures.odds,
        p_value=p_value,
    )


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
