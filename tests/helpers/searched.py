"""Memories that are searched, small enough to be enumerated."""

import torch
from torch import Tensor

from vma import VMA, AddressDistribution, BoundTerms, Memory
from vma.proposals import Proposal, draw_places
from vma.reads import Reads


class SearchTable:
    """|M| addresses and no z: p(a), S and log p(x|a) are numbers, and the search finds a share of the best.

    `recall` is the share of the candidates that are the best ones; the others are the worst.
    """

    def __init__(
        self,
        items: int,
        recall: float,
        epsilon: float,
        candidates: int | None = None,
        targets: int = 1,
        sharpness: float = 1.0,
    ) -> None:
        torch.manual_seed(7)
        self.items, self.targets = items, targets
        self.log_p_a = torch.randn(items).log_softmax(0)
        self.scores = 4 * torch.randn(items)
        self.log_fit = self.scores + torch.randn(items) - 50
        self.prior = AddressDistribution(self.log_p_a)
        count = min(64, items // 2) if candidates is None else candidates
        order, best = self.scores.argsort(descending=True), round(recall * count)
        found = torch.cat((order[:best], order[items - (count - best) :])).expand(targets, -1)
        self.proposal = Proposal(found, self.scores[found], self.prior, epsilon, sharpness)

    def everywhere(self) -> Tensor:
        return torch.arange(self.items).expand(self.targets, -1)

    def log_r(self) -> Tensor:
        return self.proposal.log_prob(self.everywhere())

    def log_w(self) -> Tensor:
        """log p(a) p(x|a) / r(a|x) of every address."""
        return self.log_p_a + self.log_fit - self.log_r()

    @property
    def log_p_x(self) -> Tensor:
        return (self.log_p_a + self.log_fit).logsumexp(0).expand(self.targets)

    def log_posterior(self) -> Tensor:
        return (self.log_p_a + self.log_fit).log_softmax(0).expand(self.targets, -1)

    def at(self, reads: Reads) -> BoundTerms:
        zero = torch.zeros_like(reads.log_mass)
        log_p_a, log_q_a = reads.log_prob(self.prior), reads.log_prob(self.proposal)
        fit = self.log_fit[reads.addresses]
        return BoundTerms(
            log_p_a, log_q_a, zero, zero, fit, reads.log_mass, p_a=self.prior, q_a=self.proposal
        )

    def terms(self, sampling: str, samples: int) -> BoundTerms:
        return draw_places(self.proposal, samples, sampling, None, self.at)

    def reads(self, sampling: str, samples: int) -> Reads:
        seen: list[Reads] = []
        draw_places(
            self.proposal, samples, sampling, None, lambda reads: seen.append(reads) or self.at(reads)
        )
        return seen[0]


class Searched:
    """A memory that is held whole, of which a search shows the best few by the keys of the time it was made."""

    def __init__(self, model: VMA, memory: Memory, candidates: int, epsilon: float = 0.2) -> None:
        with torch.no_grad():
            keyed = model.keyed(memory)
            self.p = AddressDistribution(model.prior(keyed).log_probs)
        self.memory, self.stale, self.candidates, self.share = memory, keyed.keys, candidates, epsilon

    def __len__(self) -> int:
        return len(self.memory)

    @property
    def epsilon(self) -> float:
        return self.share

    @property
    def sharpness(self) -> float:
        return 1.7

    def read(self, a: Tensor) -> Tensor:
        return self.memory.read(a)

    def keys(self, a: Tensor) -> Tensor:
        return self.stale[a]

    def prior(self) -> AddressDistribution:
        return self.p

    def search(self, queries: Tensor) -> Tensor:
        return (queries @ self.stale.T).topk(self.candidates, dim=1).indices
