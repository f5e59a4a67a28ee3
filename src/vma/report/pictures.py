"""The pictures of a report, as PNG: one-shot samples, where the model looks in memory, learning curves."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image
from torch import Tensor

from vma.data.dataset import Dataset
from vma.data.episodes import EpisodeTensors
from vma.data.randomness import stream
from vma.data.samplers import EpisodeSampler
from vma.memory import Memory
from vma.model import Samples
from vma.report.measure import CLASSES, SHOTS, TARGETS, MemoryModel

PAPER, INK, GREY, LINE, TINT, BLANK = "#ffffff", "#1c1c24", "#77746c", "#dedbd3", "#e4efed", "#f1efe9"
TEAL, AMBER, BLUE = "#0f766e", "#c2620a", "#3b5b92"
CLASS_COLOURS = ("#0f766e", "#c2620a", "#3b5b92", "#b0325a", "#6b8e23", "#7a4fa3", "#c99a06", "#5b6470")
DPI = 160
TOP = 5  # items shown of the largest q(a|x)
ONE_SHOT = 11  # purpose of the random stream

Metrics = Mapping[str, Any]


@runtime_checkable
class Imagining(MemoryModel, Protocol):
    """A model that also samples from p(x|M)."""

    def sample(
        self,
        memory: Memory | None = None,
        samples: int = 16,
        *,
        addresses: Int[Tensor, "samples"] | None = None,
        generator: torch.Generator | None = None,
    ) -> Samples:
        """Draws from p(x|M)."""


@dataclass(frozen=True)
class Pictures:
    """PNG files by what they show; `curves` is None where there is no history."""

    samples: bytes
    addressing: bytes
    curves: bytes | None = None


def draw_pictures(
    model: Imagining,
    dataset: Dataset,
    history: Sequence[Metrics] = (),
    vae_history: Sequence[Metrics] = (),
    *,
    seed: int = 0,
) -> Pictures:
    """All pictures of a report.

    Args:
        model: The model with memory.
        dataset: Images of unseen classes.
        history: Metrics of each update, with the keys update, nll, kl_a, kl_z and perhaps valid_nll.
        vae_history: The same of the VAE; only nll is drawn.
        seed: Decides which classes, images and samples are shown.
    """
    return Pictures(
        one_shot_samples(model, dataset, seed=seed),
        addressing(model, dataset, seed=seed),
        learning_curves(history, vae_history) if history else None,
    )


# One-shot samples


def one_shot_samples(
    model: Imagining, dataset: Dataset, *, rows: int = 8, samples: int = 8, real: int = 3, seed: int = 0
) -> bytes:
    """A row for each of some classes: its one template, `samples` from p(x|m), and `real` other drawings."""
    indices = choose_drawings(dataset, rows, 1 + real, seed)
    drawings = dataset.images[indices].astype(np.float32) / 255
    memory = Memory.of(torch.from_numpy(drawings[:, 0]))
    imagined = imagine(model, memory, samples, seed)
    groups = [drawings[:, :1], imagined, drawings[:, 1:]]
    titles = ["in memory", "imagined from it", "real, for comparison"]
    return png(grid_figure(groups, titles, [TEAL, INK, GREY]))


def choose_drawings(dataset: Dataset, rows: int, columns: int, seed: int) -> Int[np.ndarray, "rows columns"]:
    """Indices of `columns` images of each of `rows` classes, all of them drawn at random by `seed`."""
    draw = stream(seed, purpose=ONE_SHOT)
    labels = dataset.class_labels()
    large = np.flatnonzero(dataset.class_counts() >= columns)
    classes = draw.permutation(large)[:rows]
    return np.stack([draw.permutation(np.flatnonzero(labels == c))[:columns] for c in classes])


def imagine(
    model: Imagining, memory: Memory, samples: int, seed: int
) -> Float[np.ndarray, "memory samples *image"]:
    """For each item alone, `samples` times z ~ p(z|m), as a figure shows them."""
    generator = torch.Generator(next(model.parameters()).device).manual_seed(seed)
    addresses = torch.arange(len(memory), device=generator.device).repeat_interleave(samples)
    drawn = model.sample(memory, addresses=addresses, generator=generator)
    return drawn.shown.unflatten(0, (len(memory), samples)).cpu().float().numpy()


def grid_figure(groups: Sequence[np.ndarray], titles: Sequence[str], colours: Sequence[str]) -> Figure:
    """Groups of columns side by side, each [rows, columns, height, width], with a title above each."""
    rows, gap = len(groups[0]), 0.45
    columns = sum(group.shape[1] for group in groups) + gap * (len(groups) - 1)
    figure = new_figure(9.6, 9.6 * (rows + 0.5) / columns)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-0.02, columns + 0.02), ylim=(rows + 0.02, -0.48))
    axes.axis("off")
    left = 0.0
    for group, title, colour in zip(groups, titles, colours, strict=True):
        axes.text(left + 0.06, -0.12, title, color=colour, fontsize=10.5, weight="bold")
        place_group(axes, group, left, colour)
        left += group.shape[1] + gap
    return figure


def place_group(axes: Axes, group: np.ndarray, left: float, colour: str) -> None:
    """Draw every image of [rows, columns, height, width] as a card; a group of one column is framed."""
    frame, width = (colour, 2.2) if group.shape[1] == 1 else (LINE, 0.6)
    for row, images in enumerate(group):
        for column, image in enumerate(images):
            place_image(axes, image, left + column, float(row), frame, width)


def as_paper(image: np.ndarray) -> np.ndarray:
    """Ink [height, width], or [3, height, width] in colour, as light: white paper is 1, and colours come last."""
    return 1 - (image if image.ndim == 2 else np.moveaxis(image, 0, -1))


def place_image(axes: Axes, image: np.ndarray, x: float, y: float, frame: str, width: float) -> None:
    """An image of ink in the unit square at (x, y), with a frame; y runs down."""
    near, side = 0.04, 0.92
    extent = (x + near, x + near + side, y + near + side, y + near)
    axes.imshow(
        as_paper(image), cmap="gray", vmin=0, vmax=1, extent=extent, interpolation="nearest", aspect="auto"
    )
    corner = (x + near, y + near)
    axes.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=frame, linewidth=width, zorder=3))


# Where the model looks


@dataclass(frozen=True)
class Lookup:
    """Where the model looks for one target.

    Attributes:
        title: By which rule the target was chosen.
        target: The image x.
        label: Its class.
        q: q(a|x); 0 at items that were taken out.
        log_likelihood: The K-sample bound of log p(x|M).
        kept: False at items that were taken out.
    """

    title: str
    target: Float[np.ndarray, "*image"]
    label: int
    q: Float[np.ndarray, "memory"]
    log_likelihood: float
    kept: Bool[np.ndarray, "memory"]


def addressing(model: MemoryModel, dataset: Dataset, *, samples: int = 64, seed: int = 0) -> bytes:
    """q(a|x) over a memory of 8 classes × 4 items for four targets chosen by rule, each with its top items."""
    sampler = EpisodeSampler(dataset, classes=CLASSES, targets=TARGETS, shots=SHOTS, seed=seed)
    episode = sampler.episode(10**6).tensors()  # far from the episodes that are measured
    return png(addressing_figure(lookups(model, episode, samples, seed), episode))


@torch.no_grad()
def lookups(model: MemoryModel, episode: EpisodeTensors, samples: int, seed: int) -> list[Lookup]:
    """The most, the median and the least certain target by the entropy of q(a|x); the first without its class."""
    entropy = model.posterior(episode.targets, Memory.of(episode.memory)).entropy()
    order = entropy.argsort(stable=True).tolist()
    count = len(order)
    everything = torch.ones(len(episode.memory), dtype=torch.bool)
    without = episode.memory_labels != episode.target_labels[order[0]]
    chosen = [
        (f"the most certain of {count} targets", order[0], everything),
        ("the median", order[count // 2], everything),
        ("the least certain", order[-1], everything),
        ("the first one again, its class taken out of memory", order[0], without),
    ]
    return [look_up(model, episode, *each, samples=samples, seed=seed) for each in chosen]


def look_up(
    model: MemoryModel,
    episode: EpisodeTensors,
    title: str,
    target: int,
    kept: Bool[Tensor, "memory"],
    *,
    samples: int,
    seed: int,
) -> Lookup:
    """q(a|x) and the bound of log p(x|M) for one target, with the `kept` items alone in memory."""
    generator = torch.Generator(next(model.parameters()).device).manual_seed(seed)
    x, memory = episode.targets[target : target + 1], Memory.of(episode.memory).keep(kept)
    q = np.zeros(len(kept))
    q[kept.numpy()] = model.posterior(x, memory).log_probs[0].exp().cpu().numpy()
    terms = model.terms(x, memory, samples, generator=generator)
    bound = torch.logsumexp(terms.log_mass + terms.log_w, -1)
    return Lookup(title, x[0].numpy(), int(episode.target_labels[target]), q, float(bound), kept.numpy())


def addressing_figure(found: Sequence[Lookup], episode: EpisodeTensors) -> Figure:
    """The memory as a strip on top, and below it a line for each target, its bars under the items."""
    figure = new_figure(9.6, 0.6 + 1.5 * len(found))
    grid = figure.add_gridspec(
        1 + len(found), 5, width_ratios=(0.95, 0.42, 5.6, 0.12, 3.1), height_ratios=(0.16, *[1] * len(found)),
        left=0.006, right=0.994, top=0.955, bottom=0.02, wspace=0, hspace=0.52,
    )  # fmt: skip
    memory, labels = episode.memory.numpy(), episode.memory_labels.numpy()
    ceiling = 1.12 * max(float(each.q.max()) for each in found)
    left, middle, right = (figure.add_subplot(grid[0, column]) for column in (0, 2, 4))
    draw_headings(left, middle, right, memory, labels)
    for row, each in enumerate(found, start=1):
        draw_target(figure.add_subplot(grid[row, 0]), each)
        draw_bars(figure.add_subplot(grid[row, 2]), each, labels, ceiling)
        draw_top(figure.add_subplot(grid[row, 4]), each, memory, labels)
    return figure


def draw_headings(left: Axes, middle: Axes, right: Axes, memory: np.ndarray, labels: np.ndarray) -> None:
    """The titles of the columns, and above the bars every item in the frame of its class."""
    for axes, text in (
        (left, "target x"),
        (
            middle,
            f"memory M: {len(memory)} items of {labels.max() + 1} unseen classes, a colour for each class",
        ),
        (right, f"the {TOP} most probable items"),
    ):
        axes.axis("off")
        axes.set_title(text, loc="left", fontsize=8.5, color=GREY, pad=4)
    middle.set(xlim=(-0.6, len(memory) - 0.4), ylim=(1, 0), aspect="equal", anchor="N")
    for address, (item, label) in enumerate(zip(memory, labels, strict=True)):
        place_image(middle, item, address - 0.5, 0.0, colour_of(label), 1.0)


def draw_target(axes: Axes, found: Lookup) -> None:
    """The target, in the frame of its class."""
    axes.set(xlim=(0, 1), ylim=(1, 0), aspect="equal", anchor="NW")
    axes.axis("off")
    place_image(axes, found.target, 0.0, 0.0, colour_of(found.label), 2.2)


def draw_bars(axes: Axes, found: Lookup, labels: np.ndarray, ceiling: float) -> None:
    """q(a|x) over all addresses, in the colours of the classes, behind them the target's own class."""
    own, addresses = labels == found.label, np.arange(len(labels))
    axes.bar(addresses[own], ceiling, width=1, color=TINT if found.kept[own].all() else BLANK, zorder=0)
    if not found.kept[own].any():
        centre = (float(addresses[own].mean()), ceiling / 2)
        axes.text(*centre, "taken\nout", ha="center", va="center", fontsize=8, color=GREY)
    axes.bar(addresses, found.q, width=0.8, color=[colour_of(label) for label in labels], zorder=2)
    axes.set(xlim=(-0.6, len(labels) - 0.4), ylim=(0, ceiling), xticks=[])
    axes.set_title(outcome(found, own), loc="right", fontsize=8.5, color=GREY, pad=4)
    axes.set_title(found.title, loc="left", fontsize=8.5, color=INK, weight="bold", pad=4)
    dress_bars(axes)


def dress_bars(axes: Axes) -> None:
    """A line to stand on, and percents at the left."""
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.tick_params(axis="y", labelsize=7, colors=GREY, length=0, pad=2)
    axes.locator_params(axis="y", nbins=3)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GREY)


def outcome(found: Lookup, own: Bool[np.ndarray, "memory"]) -> str:
    """The share of q(a|x) on the target's own class, and the bound of log p(x|M)."""
    share = f"own class {percent(float(found.q[own].sum()))}    " if found.kept[own].any() else ""
    return f"{share}log p(x|M) ≈ {found.log_likelihood:.1f}".replace("-", "−")


def draw_top(axes: Axes, found: Lookup, memory: np.ndarray, labels: np.ndarray) -> None:
    """The items of the largest q(a|x), with their probability and the frame of their class."""
    count = min(TOP, int(found.kept.sum()))
    axes.set(xlim=(0, TOP), ylim=(1.4, 0), aspect="equal", anchor="W")
    axes.axis("off")
    for place, address in enumerate(np.argsort(-found.q, kind="stable")[:count]):
        right = labels[address] == found.label
        place_image(axes, memory[address], float(place), 0.0, colour_of(labels[address]), 1.8)
        mark = " ✓" if right else ""
        axes.text(place + 0.5, 1.08, percent(found.q[address]) + mark, ha="center", va="top", fontsize=8,
                  color=INK if right else GREY, weight="bold" if right else "normal")  # fmt: skip


def percent(share: float) -> str:
    """E.g. `31 %`, `0.4 %` or `<0.1 %`."""
    if share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def colour_of(label: int | np.integer) -> str:
    """The colour of a class."""
    return CLASS_COLOURS[int(label) % len(CLASS_COLOURS)]


# Learning curves


def learning_curves(history: Sequence[Metrics], vae_history: Sequence[Metrics] = ()) -> bytes:
    """−L of both models, and KL_a and KL_z of the one with memory, against updates; asleep, −log q(a|x̃)."""
    figure = new_figure(9.6, 3.1)
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.065, right=0.985, top=0.88, bottom=0.16, wspace=0.16)
    if vae_history:
        draw_curve(left, vae_history, "nll", AMBER, "VAE, no memory")
    draw_curve(left, history, "nll", TEAL, "with memory")
    draw_curve(left, history, "valid_nll", INK, "with memory, held out")
    draw_curve(right, history, "kl_a", BLUE, "KL of the address a")
    draw_curve(right, history, "kl_z", AMBER, "KL of the variation z")
    asleep = [{"update": row["update"], "cost": -row["dream_log_q_a"]} for row in history if "nll" not in row]
    draw_curve(right, asleep, "cost", INK, "asleep: −log q(a|x) of dreams")
    dress(left, "NLL of training images, in nats: lower is better")
    dress(right, "nats that the target adds, of a and of z")
    return png(figure)


def draw_curve(axes: Axes, history: Sequence[Metrics], key: str, colour: str, label: str) -> None:
    """One metric: thin as it was, bold as a running mean; a few values are drawn as dots."""
    values = [(row["update"], row.get(key)) for row in history]
    rows = [(update, value) for update, value in values if value is not None and math.isfinite(value)]
    if not rows:
        return
    update, value = np.array(rows, dtype=float).T
    window = max(1, len(value) // 25)
    smooth = running_mean(value, window)
    if window > 1:
        axes.plot(update, value, color=colour, linewidth=0.6, alpha=0.25)
    few = len(value) <= 40
    axes.plot(
        update, smooth, color=colour, linewidth=1.8, label=label, marker="o" if few else None, markersize=3
    )


def running_mean(values: Float[np.ndarray, "n"], window: int) -> Float[np.ndarray, "n"]:
    """The mean of each value and of up to `window` − 1 before it."""
    sums = np.concatenate([[0.0], values.cumsum()])
    end = np.arange(1, len(values) + 1)
    start = np.maximum(end - window, 0)
    return (sums[end] - sums[start]) / (end - start)


def dress(axes: Axes, title: str) -> None:
    """Title, light grid and legend."""
    axes.set_title(title, loc="left", fontsize=8.5, color=GREY)
    axes.set_xlabel("updates", fontsize=8.5, color=GREY)
    axes.tick_params(labelsize=8, colors=GREY, length=0)
    axes.grid(color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8.5, labelcolor=INK)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches; no global state is touched."""
    return Figure(figsize=(width, height), dpi=DPI, facecolor=PAPER)


def png(figure: Figure) -> bytes:
    """The figure as PNG of 255 colours, a third of the size; the same bytes for the same figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    file = io.BytesIO()
    picture.quantize(255, dither=Image.Dither.NONE).save(file, format="PNG", optimize=True)
    return file.getvalue()
