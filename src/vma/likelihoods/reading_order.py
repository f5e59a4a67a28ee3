"""p(x|m,z) = Π_i p(x_i | x_j of the neighbours j before i, m, z): ink in reading order, row by row.

The paper leaves such connections out, but pixels that know their neighbours make crisp strokes. A few causal
layers compute the context c of x, once per target; the decoder ends in as many maps h of m and z; and a small
network of SiLU(h + c) gives the log-odds of ink, pixel by pixel.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from vma.config import ModelConfig
from vma.errors import InputError
from vma.kernels.maps import Maps, Outputs, as_rows
from vma.latents import full_precision
from vma.likelihoods.bernoulli import bernoulli_log_prob
from vma.likelihoods.likelihood import Drawing, Features, Images, Likelihood
from vma.likelihoods.wavefront import Wavefront
from vma.networks.features import Output, fill_bias, he_, linear, log_odds
from vma.networks.layers import start

COLDEST = 1e-3  # a lower temperature gives the typical drawing
TRIES, COOL = 8, 0.8  # drawings of which one is typical, and their temperature


class Causal(nn.Conv2d):
    """A convolution in which a pixel sees the rows above it and, in its own row, the pixels before it.

    Args:
        inputs: Maps of the input.
        outputs: Maps of the output.
        size: Width of the neighbourhood; it reaches half as far up.
        itself: Whether a pixel also sees itself, as in all layers but the first.
    """

    mask: Float[Tensor, "rows columns"]

    def __init__(self, inputs: int, outputs: int, size: int, itself: bool) -> None:
        super().__init__(inputs, outputs, (size // 2 + 1, size))
        mask = torch.ones(self.kernel_size)
        mask[-1, size // 2 + itself :] = 0
        self.register_buffer("mask", mask, persistent=False)
        he_(self.weight, inputs * int(mask.sum()))
        with torch.no_grad():
            self.weight.mul_(mask)
        start(self)

    def matrix(self) -> tuple[Float[Tensor, "_ outputs"], Float[Tensor, "outputs"]]:
        """Weights of the neighbours' values as rows, neighbour by neighbour, and the bias."""
        assert self.bias is not None
        taps = self.weight.flatten(2)[:, :, self.mask.flatten() > 0]
        return taps.permute(2, 1, 0).flatten(0, 1), self.bias

    def forward(self, h: Maps) -> Outputs:
        """Maps of h's size."""
        half = self.kernel_size[1] // 2
        return functional.conv2d(functional.pad(h, (half, half, half, 0)), self.weight * self.mask, self.bias)


class Context(nn.Module):
    """c: what a pixel knows of those before it, computed by causal layers with residual sums.

    Nothing is normalised over pixels, since a mean over an image would reveal later pixels.
    """

    def __init__(self, maps: int, neighbourhood: Sequence[int]) -> None:
        super().__init__()
        self.sizes = tuple(neighbourhood)
        first, *others = neighbourhood
        self.first = Causal(1, maps, first, itself=False)
        self.others = nn.ModuleList(Causal(maps, maps, size, itself=True) for size in others)

    def layers(self) -> list[Causal]:
        """All layers, in order."""
        return [self.first, *(layer for layer in self.others if isinstance(layer, Causal))]

    def forward(self, x: Float[Tensor, "batch height width"]) -> Maps:
        """c of every pixel."""
        c = self.first(x.unsqueeze(1)).contiguous(memory_format=torch.channels_last)
        for layer in self.others:
            c = c + layer(functional.silu(c))
        return c


class ReadingOrder(Likelihood):
    """The decoder ends in maps h; logit = w · SiLU(W SiLU(h + c) + b) + b'.

    >>> likelihood = vma.likelihoods.ReadingOrder(maps=8, neighbourhood=(7, 5), ink=0.1)
    >>> likelihood.draw(torch.zeros(2, 8, 16, 16), torch.rand(2, 16, 16)).images.shape
    torch.Size([2, 16, 16])

    Args:
        maps: Number of maps of h and c.
        neighbourhood: Width of each causal layer's neighbourhood.
        ink: Expected share of ink, at which the log-odds start.
    """

    def __init__(self, maps: int, neighbourhood: Sequence[int], ink: float) -> None:
        super().__init__()
        self.output = Output(maps, (0.0,) * maps)
        self.context = Context(maps, neighbourhood)
        self.mix = linear(maps, maps)
        self.last = linear(maps, 1)
        fill_bias(self.last, (log_odds(ink),))

    def check(self, name: str, images: Images) -> None:
        """Accept only black and white: a grey pixel has no probability here, yet its neighbours would see it."""
        if not bool(((images == 0) | (images == 1)).all()):
            raise InputError(
                f"{name} must be black and white, 0 or 1, for the likelihood 'reading-order': threshold them "
                "(binarize), or draw them with stochastic binarization."
            )

    def targets(
        self, x: Float[Tensor, "batch height width"], blind: Bool[Tensor, "batch"] | None = None
    ) -> tuple[Tensor, ...]:
        """x and c, where c is zero for blind targets."""
        c = as_rows(self.context(x)).contiguous()
        return x, c if blind is None else c.masked_fill(blind.view(-1, 1, 1, 1), 0.0)

    def log_prob(
        self, targets: tuple[Tensor, ...], rows: Int[Tensor, "reads"], features: Features
    ) -> Float[Tensor, "reads"]:
        """Σ_i log p(x_i | x_<i, m, z)."""
        x, c = (each.index_select(0, rows) for each in targets)
        return bernoulli_log_prob(x, self.logits(as_rows(features), c))

    def logits(
        self, h: Float[Tensor, "*pixels maps"], c: Float[Tensor, "*pixels maps"]
    ) -> Float[Tensor, "*pixels"]:
        """Log-odds of ink, for rows of h and c with the maps last."""
        y = functional.silu(h + c)
        return self.last(functional.silu(self.mix(y))).squeeze(-1)

    @torch.no_grad()
    def draw(
        self,
        features: Features,
        uniforms: Float[Tensor, "reads height width"],
        temperature: float = 1.0,
    ) -> Drawing:
        """x_i = [u_i < σ(l_i / τ)], one wavefront of pixels after another; the typical drawing for τ = 0."""
        if temperature < COLDEST:
            return self.typical(features)
        size, maps = features.shape[2:], as_rows(full_precision(features)).flatten(1, 2)
        order = Wavefront.of(self.context.sizes, *size, maps.device)
        with torch.autocast(maps.device.type, enabled=False):
            x, means = order.draw(
                [layer.matrix() for layer in self.context.layers()],
                lambda h, c: self.logits(h, c) / temperature,
                maps,
                uniforms.to(maps).flatten(1),
            )
        x, means = x.unflatten(1, size), means.unflatten(1, size)
        return Drawing(x, means, x)

    @torch.no_grad()
    def typical(self, features: Features) -> Drawing:
        """Of TRIES cool drawings at numbers that never change, the one most like all of them, and their mean.

        With every pixel at its median, strokes would be missing, and often all of them: a stroke that may begin at
        any of many pixels begins at none, since each of these is more probably empty.
        """
        count, size = len(features), tuple(features.shape[2:])
        uniforms = uniforms_of(size).repeat_interleave(count, 0)
        drawn = self.draw(features.repeat(TRIES, 1, 1, 1), uniforms, COOL)
        images, means = (each.unflatten(0, (TRIES, count)) for each in (drawn.images, drawn.means))
        chosen = images[most_central(images), torch.arange(count)]
        return Drawing(chosen, means.mean(0), chosen)


def uniforms_of(size: tuple[int, ...]) -> Float[Tensor, "tries height width"]:
    """The numbers that typical drawings are made with."""
    return torch.rand(TRIES, *size, dtype=torch.float32, generator=torch.Generator().manual_seed(0))


def most_central(images: Float[Tensor, "tries count height width"]) -> Int[Tensor, "count"]:
    """argmin_i Σ_j |x_i − x_j| = argmax_i Σ_p x_i(p) (2 Σ_j x_j(p) − tries), for black and white images."""
    agreement = images * (2 * images.sum(0) - len(images))
    return agreement.flatten(2).sum(2).argmax(0)


def from_config(config: ModelConfig) -> ReadingOrder:
    """The likelihood that a configuration describes."""
    return ReadingOrder(config.context_maps, config.neighbourhood, config.ink)
