"""Where the model looked: q(a|x), the divergences, and its reconstruction from the item that it chose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.bounds import decomposition, multi_sample_bound
from vma.checks import check_samples
from vma.errors import InputError
from vma.fewshot.exhibits import Card, Exhibit, Row, Showable, png_bytes
from vma.fewshot.items import Item
from vma.fewshot.lookup import LookUp
from vma.fewshot.recognised import percent
from vma.fewshot.recognition import decide
from vma.files import at_home, write_atomically
from vma.latents import DiagonalGaussian
from vma.model import VMA


@dataclass(frozen=True)
class ExplainedItem:
    """An item that the model looked at.

    >>> top = vma.load("omniglot-crisp").remember("my-symbols").explain("my-symbols/ka/1.png").top
    >>> isinstance(top[0], vma.fewshot.ExplainedItem), top[0].label, top[0].source
    (True, 'ka', 'my-symbols/ka/1.png')

    Attributes:
        item: Its number.
        label: Its label; None if it has none.
        q: Its share of q(a|x).
        source: The file that it came from; None if it came from no file.
        content: The item itself.
    """

    item: int
    label: str | None
    q: float
    source: str | None
    content: Item = field(compare=False, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Showable):
    """Where the model looked for one image, and what it found.

    >>> found = vma.load("omniglot-crisp").remember("my-symbols").explain("my-symbols/ka/1.png")
    >>> isinstance(found, vma.fewshot.Explanation), found.label
    (True, 'ka')
    >>> found.q.shape, found.kl_a > 0
    (torch.Size([4]), True)

    Attributes:
        target: The image as the model saw it.
        q: q(a|x) over all items.
        kl_a: KL(q(a|x) ‖ p(a)), in nats: how much the image told about where to look.
        kl_z: E_q(a|x)[KL(q(z|m_a,x) ‖ p(z|m_a))], in nats: how much it told about its difference from the item.
        log_p: The K-sample bound of log p(x|M), in nats.
        top: The items with the largest q(a|x).
        reconstruction: What the model draws, given the first of these items and the mean of q(z|m,x).
        label: The class with the most mass of q(a|x).
        probabilities: The mass of every class.
        looked_at: The items that q is over, if a search chose them; None if it is over all items.
    """

    target: Float[Tensor, "*image"]
    q: Float[Tensor, "memory"]
    kl_a: float
    kl_z: float
    log_p: float
    top: tuple[ExplainedItem, ...]
    reconstruction: Float[Tensor, "*image"]
    label: str
    probabilities: dict[str, float]
    looked_at: Int[Tensor, "memory"] | None = None

    def save(self, path: str | Path) -> None:
        """Write it as a picture (.png), or all numbers (.json)."""
        target = at_home(Path(path))
        if target.suffix.lower() not in (".png", ".json"):
            raise InputError(f"{target} must end in .png or .json.")
        picture = target.suffix.lower() == ".png"
        write_atomically(target, png_bytes(self.picture()) if picture else self.to_json())

    def to_json(self) -> bytes:
        """All numbers."""
        top = [
            {"item": each.item, "label": each.label, "q": each.q, "source": each.source} for each in self.top
        ]
        images = {"target": self.target.tolist(), "reconstruction": self.reconstruction.tolist()}
        names = ("label", "probabilities", "log_p", "kl_a", "kl_z")
        numbers = {name: getattr(self, name) for name in names} | {"top": top, "q": self.q.tolist()} | images
        if self.looked_at is not None:
            numbers["looked_at"] = self.looked_at.tolist()
        return msgspec.json.format(msgspec.json.encode(numbers)) + b"\n"

    def exhibit(self) -> Exhibit:
        """The image, its reconstruction, and the items that the model looked at."""
        made = (Card(self.target, "image"), Card(self.reconstruction, "rebuilt"))
        looked = (each.content.card(f"{each.content.name} {percent(each.q)}") for each in self.top)
        nats = f"log p(x|M) {self.log_p:.1f}, KL_a {self.kl_a:.2f}, KL_z {self.kl_z:.2f} nats"
        return Exhibit(f"{self.found()}; {nats}", (Row("", made), Row("q(a|x)", tuple(looked))))

    def found(self) -> str:
        """The class with the most mass."""
        return f"{self.label}: {percent(self.probabilities[self.label])} of q(a|x)"

    def __repr__(self) -> str:
        items = ", ".join(f"{each.item} ({percent(each.q)})" for each in self.top)
        numbers = f"log_p {self.log_p:.1f}, KL_a {self.kl_a:.2f}, KL_z {self.kl_z:.2f}"
        return f"Explanation({self.found()}; items {items}; {numbers})"


@torch.no_grad()
def explain(
    look: LookUp,
    names: Sequence[str],
    item_of: Callable[[int], Item],
    samples: int,
    top: int,
    generator: torch.Generator | None,
) -> Explanation:
    """Everything about one image, from `samples` reads of memory."""
    check_samples(samples, 1, "An explanation")
    terms, x, q = look.terms(samples, generator), look.x[0], look.q_a.log_probs[0].exp()
    found, parts = decide(q, names, top), decomposition(terms)
    return Explanation(
        target=x,
        q=q,
        kl_a=float(parts.kl_a[0]),
        kl_z=float(parts.kl_z[0]),
        log_p=float(multi_sample_bound(terms)[0]),
        top=tuple(explained(item_of(i), share) for i, share in found.items),
        reconstruction=reconstruct(look.model, look.keyed.items, x, found.items[0][0]),
        label=found.label,
        probabilities=found.probabilities,
    )


def explained(item: Item, share: float) -> ExplainedItem:
    """An item with its share of q(a|x)."""
    return ExplainedItem(item.number, item.label, share, item.source, item)


def reconstruct(
    model: VMA, items: Float[Tensor, "memory *image"], x: Float[Tensor, "*image"], item: int
) -> Float[Tensor, "*image"]:
    """What the model typically draws at the mean of q(z|m,x)."""
    networks = model.networks
    m = items[item : item + 1]
    statistics = networks.encode(networks.targets(x[None]), networks.item_half(m))
    mean = DiagonalGaussian.of_statistics(statistics).mean
    drawn = model.likelihood.typical(networks.decode(mean, networks.items(m).decoder))
    return drawn.shown[0]
