"""The model of the paper as one would write it down: what `benchmarks.speed` compares with.

Every read (target, address) is a row of one batch of B·K rows. Each row has its own pyramid of m, its own pyramid
of [x, m], and a decoder that convolves concatenations [h, skip]; nothing is shared between rows. The keys are
computed once per memory, or, with a memory for every target, once per target and item, as in public code.

The function and its parameters are those of `vma.VMA` of the convolutional family: `weights_of` joins the halves of
our layers, so that values and gradients can be compared.
"""

import math
from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from vma import VMA, AddressDistribution, BoundTerms, InputError, ModelConfig

LOG_STD_LIMIT, NORM_FLOOR = 6.0, 1e-4
HALVES = {"encoder_x": "encoder_m", "hidden_z": "hidden_m", "layers_h": "layers_m"}
JOINED = {"encoder": "encoder_first", "hidden": "hidden", "layers": "layers"}
Maps = Float[Tensor, "rows maps _ _"]
Memories = Float[Tensor, "memory height width"] | Float[Tensor, "batch memory height width"]


def sizes_of(pixels: int) -> list[int]:
    """n, ⌈n/2⌉, ⌈n/4⌉, ⌈n/8⌉."""
    return [-(-pixels // 2**i) for i in range(4)]


class Layer(nn.Module):
    """What follows a convolution: ReLU, or GroupNorm, a residual sum and SiLU."""

    def __init__(self, maps: int, style: str) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, maps) if style == "modern" else None

    def forward(self, y: Maps, h: Maps | None = None) -> Maps:
        """The layer's output for y the convolution's and h its input."""
        if self.norm is None:
            return functional.relu(y)
        y = self.norm(y)
        return functional.silu(y + h if h is not None and h.shape == y.shape else y)


class Pyramid(nn.Module):
    """Convolutions two to six."""

    def __init__(self, maps: int, style: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(maps, maps, 3, stride, 1) for stride in (2, 1, 2, 1, 2))
        self.finishes = nn.ModuleList(Layer(maps, style) for _ in range(6))

    def forward(self, y: Maps) -> list[Maps]:
        """Outputs of all six layers, for y the first convolution's."""
        levels = [self.finishes[0](y)]
        for layer, finish in zip(self.layers, list(self.finishes)[1:], strict=True):
            levels.append(finish(layer(levels[-1]), levels[-1]))
        return levels


def activation(style: str) -> nn.Module:
    """Of fully-connected layers."""
    return nn.SiLU() if style == "modern" else nn.ReLU()


def head(config: ModelConfig, outputs: int) -> nn.Sequential:
    """Flatten, hidden layer, `outputs` units."""
    flat = config.maps * sizes_of(config.height)[-1] * sizes_of(config.width)[-1]
    hidden = config.hidden[0]
    layers = nn.Linear(flat, hidden), activation(config.style), nn.Linear(hidden, outputs)
    return nn.Sequential(nn.Flatten(), *layers)


class Embedding(nn.Module):
    """An image → its place in the matching space."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, config.maps, 3, padding=1)
        self.pyramid = Pyramid(config.maps, config.style)
        self.head = head(config, config.matching)

    def forward(self, image: Float[Tensor, "rows height width"]) -> Float[Tensor, "rows matching"]:
        """e = h(image)."""
        return self.head(self.pyramid(self.first(image.unsqueeze(1)))[-1])


class Decoder(nn.Module):
    """[z, v_m] → hidden → smallest scale → six layers up, each on [h, skip]."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        rows, columns = sizes_of(config.height)[::-1], sizes_of(config.width)[::-1]
        maps, hidden = config.maps, config.hidden[0]
        self.smallest = (maps, rows[0], columns[0])
        self.hidden = nn.Linear(2 * config.latent, hidden)
        self.expand = nn.Linear(hidden, math.prod(self.smallest))
        self.activation = activation(config.style)
        layers: list[nn.Module] = []
        for i in range(3):
            extra = (rows[i + 1] - 2 * rows[i] + 1, columns[i + 1] - 2 * columns[i] + 1)
            layers.append(nn.ConvTranspose2d(2 * maps, maps, 3, 2, 1, extra))
            layers.append(nn.Conv2d(2 * maps, maps if i < 2 else 1, 3, padding=1))
        self.layers = nn.ModuleList(layers)
        self.finishes = nn.ModuleList(Layer(maps, config.style) for _ in range(5))

    def forward(
        self, z: Float[Tensor, "rows latent"], context: Float[Tensor, "rows latent"], levels: list[Maps]
    ) -> Float[Tensor, "rows height width"]:
        """Logits."""
        hidden = self.activation(self.hidden(torch.cat((z, context), 1)))
        h = self.activation(self.expand(hidden)).unflatten(1, self.smallest)
        *layers, last = self.layers
        *skips, largest = levels[::-1]
        for layer, skip, finish in zip(layers, skips, self.finishes, strict=True):
            h = finish(layer(torch.cat((h, skip), 1)), h)
        return last(torch.cat((h, largest), 1)).squeeze(1)


class Textbook(nn.Module):
    """p(x|M) and q(a,z|x), a row for every read."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        usual = (
            config.model,
            config.family,
            config.similarity,
            config.prior,
            config.tied,
            config.learned_items,
        )
        if usual != ("vma", "convolutional", "normalized-key", "learned", False, 0):
            raise InputError("The textbook implementation is that of the few-shot presets: use one of them.")
        maps, latent, style = config.maps, config.latent, config.style
        self.key, self.query = Embedding(config), Embedding(config)
        self.prior_query = nn.Parameter(torch.zeros(config.matching))
        self.item_first, self.item_pyramid = nn.Conv2d(1, maps, 3, padding=1), Pyramid(maps, style)
        self.prior, self.context = head(config, 2 * latent), head(config, latent)
        self.encoder_first, self.encoder_pyramid = nn.Conv2d(2, maps, 3, padding=1), Pyramid(maps, style)
        self.encoder_head = head(config, 2 * latent)
        self.decoder = Decoder(config)

    def addressing(
        self, x: Float[Tensor, "batch height width"], memory: Memories, at_once: int = 0
    ) -> tuple[AddressDistribution, AddressDistribution]:
        """p(a) and q(a|x), from keys of `at_once` items at a time; 0 for all at once."""
        images = memory.flatten(0, -3)
        embedded = torch.cat([self.key(part) for part in images.split(at_once or len(images))])
        keys = functional.normalize(embedded, dim=-1, eps=NORM_FLOOR).unflatten(0, memory.shape[:-2])
        scores = torch.einsum("...ae,be->ba" if memory.ndim == 3 else "bae,be->ba", keys, self.query(x))
        prior = (keys @ self.prior_query).log_softmax(-1)
        return AddressDistribution(prior), AddressDistribution(scores.log_softmax(-1))

    def read(
        self, memory: Memories, addresses: Int[Tensor, "batch samples"]
    ) -> Float[Tensor, "rows height width"]:
        """m_a of every read."""
        if memory.ndim == 3:
            return memory[addresses.flatten()]
        return memory[torch.arange(len(memory)).unsqueeze(1), addresses].flatten(0, 1)

    def forward(
        self,
        x: Float[Tensor, "batch height width"],
        memory: Memories,
        addresses: Int[Tensor, "batch samples"],
        noise: Float[Tensor, "batch samples latent"],
        hold_q_z: bool = False,
    ) -> BoundTerms:
        """The terms of the bound at given addresses and noise of z, B·K rows in one pass.

        With `hold_q_z`, q(z|m,x) is held fixed in log q(z|m,x), as DReG asks.
        """
        shape = addresses.shape
        p_a, q_a = self.addressing(x, memory)
        targets = x.repeat_interleave(shape[1], 0)
        z, *rows = self.rows(targets, self.read(memory, addresses), noise, hold_q_z)
        log_p_z, log_q_z, log_p_x = (row.unflatten(0, shape) for row in rows)
        mass = noise.new_full(shape, -math.log(shape[1]))
        log_p_a, log_q_a = p_a.log_prob(addresses), q_a.log_prob(addresses)
        return BoundTerms(log_p_a, log_q_a, log_p_z, log_q_z, log_p_x, mass, z=z, hold_q_z=hold_q_z)

    def rows(
        self,
        x: Float[Tensor, "rows height width"],
        m: Float[Tensor, "rows height width"],
        noise: Float[Tensor, "*reads latent"],
        hold_q_z: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """z, shaped as the noise, and log p(z|m), log q(z|m,x) and log p(x|m,z) of every row."""
        levels = self.item_pyramid(self.item_first(m.unsqueeze(1)))
        prior = gaussian(self.prior(levels[-1]))
        pairs = self.encoder_pyramid(self.encoder_first(torch.stack((x, m), 1)))
        mean, log_std = gaussian(self.encoder_head(pairs[-1]))
        drawn = mean.view_as(noise) + log_std.exp().view_as(noise) * noise
        z = drawn.flatten(0, -2)
        logits = self.decoder(z, self.context(levels[-1]), levels)
        pixels = functional.binary_cross_entropy_with_logits(logits, x, reduction="none")
        if hold_q_z:
            mean, log_std = mean.detach(), log_std.detach()
        log_p_z, log_q_z = normal_log_prob(z, *prior), normal_log_prob(z, mean, log_std)
        return drawn, log_p_z, log_q_z, -pixels.flatten(1).sum(1)


def gaussian(
    statistics: Float[Tensor, "rows twice_latent"],
) -> tuple[Float[Tensor, "rows latent"], Float[Tensor, "rows latent"]]:
    """μ and log σ, the latter bent into ±6."""
    mean, raw = statistics.chunk(2, 1)
    return mean, LOG_STD_LIMIT * torch.tanh(raw / LOG_STD_LIMIT)


def normal_log_prob(
    z: Float[Tensor, "rows latent"], mean: Float[Tensor, "rows latent"], log_std: Float[Tensor, "rows latent"]
) -> Float[Tensor, "rows"]:
    """log N(z; μ, σ²)."""
    each = -0.5 * ((z - mean) / log_std.exp()) ** 2 - log_std - 0.5 * math.log(2 * math.pi)
    return each.sum(1)


def weights_of(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights of `VMA` by name, or their gradients, under the names here: two halves become one layer."""
    found = {}
    for name, tensor in tensors.items():
        half = next((word for word in name.split(".") if word in (*HALVES, *HALVES.values())), None)
        if half in HALVES and name.endswith("weight"):
            # The inputs of a transposed convolution's kernel come first; those of decoder layers 0, 2 and 4.
            transposed = half == "layers_h" and int(name.split(".")[-2]) % 2 == 0
            other = tensors[name.replace(half, HALVES[half])]
            tensor = torch.cat((tensor, other), 0 if transposed else 1)
        if half in HALVES or name.endswith("bias") or half is None:
            short = name.removeprefix("networks.").removeprefix("addressing.")
            found[short.replace(half, JOINED[half.split("_")[0]]) if half else short] = tensor
    return found


def textbook_of(model: VMA) -> Textbook:
    """The textbook implementation with the weights of `model`."""
    weight = next(model.parameters())
    book = Textbook(model.config).to(weight)
    book.load_state_dict(weights_of(model.state_dict()))
    return book
