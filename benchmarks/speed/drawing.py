"""Images drawn pixel by pixel, beside running the whole network for every pixel."""

import time
from dataclasses import replace
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.speed.measuring import interleaved, using_threads
from benchmarks.speed.report import Result, present, seconds, table
from benchmarks.speed.workload import few_shot_preset
from vma.build import build_vma
from vma.checks import check_positive
from vma.kernels.maps import as_rows
from vma.latents import DiagonalGaussian
from vma.likelihoods import ReadingOrder
from vma.memory import Memory
from vma.model import VMA
from vma.reproduce.update_times import Clock, glyph_sampler

OURS, NAIVE, INDEPENDENT = "by wavefronts", "whole network for every pixel", "independent pixels"
ROUNDED = 1e-3  # share of pixels


def bench_drawing(
    *,
    preset: str = "omniglot-fewshot-4-fast",
    maps: int = 32,
    images: int = 16,
    threads: int = 2,
    repeats: int = 5,
    clock: Clock = "wall",
    json: bool = False,
) -> None:
    """Time draws of p(x|M) in reading order, beside the naive way, and beside independent pixels.

    Args:
        preset: A few-shot preset; glyphs stand in for its images, and the weights are untrained.
        maps: Feature maps of every convolution.
        images: Images at a time.
        threads: Threads of torch.
        repeats: Rounds, in each of which every side runs once.
        clock: wall, or cpu for a machine that others use too.
        json: Print the result as one line of JSON, last.
    """
    check_positive(images=images, repeats=repeats)
    started = time.perf_counter()
    config = replace(few_shot_preset(preset, maps).model, height=26, width=26)  # as glyphs have
    with using_threads(threads):
        memory = Memory(glyph_sampler(32, 32).episode(0).tensors().memory)
        drawer = Drawer(build_vma(replace(config, likelihood="reading-order")).float(), memory, images)
        plain = Drawer(build_vma(config).float(), memory, images)
        check_alike(drawer)
        sides = {
            OURS: drawer.by_wavefronts, NAIVE: drawer.pixel_by_pixel, INDEPENDENT: plain.by_wavefronts,
        }  # fmt: skip
        times = interleaved(sides, repeats, clock)
        found: Result = {
            "bench": "drawing",
            "milliseconds": 1000 * times.median(OURS),
            "speedup_vs_naive": times.ratio(NAIVE, OURS),
            "seconds": {name: times.median(name) for name in sides},
            "settings": {
                "preset": preset,
                "maps": maps,
                "images": images,
                "repeats": repeats,
                "clock": clock,
            },
            "seconds_in_all": time.perf_counter() - started,
        }
        rows = [[name, seconds(spent)] for name, spent in found["seconds"].items()]
        title = f"{images} images of {config.height} × {config.width} pixels, {maps} maps"
        text = f"By rounds: {found['speedup_vs_naive']:.0f} × the speed of the whole network for every pixel."
        present(found, [table(title, ("drawing", "time"), rows), text], json)


def check_alike(drawer: "Drawer") -> None:
    """Raise an error unless both ways draw the same, but for pixels whose probability is within rounding of u."""
    different = drawer.by_wavefronts() != drawer.pixel_by_pixel()
    if float(different.float().mean()) > ROUNDED:
        raise AssertionError("The two ways draw different images: they do not compute the same thing.")


class Drawer:
    """A model, a memory, and all that is random in some draws.

    Args:
        model: The model.
        memory: M.
        count: Number of images.
    """

    def __init__(self, model: VMA, memory: Memory, count: int) -> None:
        source = torch.Generator().manual_seed(0)
        self.model, self.memory = model.requires_grad_(False), memory
        self.addresses = torch.randint(len(memory), (count,), generator=source)
        self.noise = torch.randn((count, model.config.latent), dtype=torch.float32, generator=source)
        shape = (count, *model.config.image_shape)
        self.uniforms = torch.rand(shape, dtype=torch.float32, generator=source)

    def by_wavefronts(self) -> Float[Tensor, "samples *image"]:
        """As the library draws."""
        return self.model.draw(self.memory, self.addresses, self.noise, self.uniforms).images

    def pixel_by_pixel(self) -> Float[Tensor, "samples *image"]:
        """As it is written down: decoder, context and all log-odds again, for every pixel."""
        x = torch.zeros_like(self.uniforms)
        for row, column in product(*map(range, x.shape[1:])):
            x[:, row, column] = (self.uniforms < self.probabilities(x))[:, row, column].float()
        return x

    def probabilities(self, x: Float[Tensor, "samples *image"]) -> Float[Tensor, "samples *image"]:
        """p(x_i | x_<i, m, z) of every pixel i."""
        networks, likelihood = self.model.networks, self.model.likelihood
        assert isinstance(likelihood, ReadingOrder)
        features = networks.items(self.memory.read(self.addresses))
        z = DiagonalGaussian.of_statistics(features.prior).sample(self.noise)
        h = as_rows(networks.decode(z, features.decoder))
        return likelihood.logits(h, likelihood.targets(x)[1]).sigmoid()
