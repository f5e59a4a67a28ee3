"""Learning curves of a run, and of the VAE that it is compared with."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from vma.plotting.style import AMBER, BLUE, INK, TEAL, dress, new_figure, png

Metrics = Mapping[str, Any]


def learning_curves(history: Sequence[Metrics], vae_history: Sequence[Metrics] = ()) -> bytes:
    """−L of both models, and KL_a and KL_z of the one with memory, against updates; asleep, −log q(a|x̃)."""
    figure = new_figure(9.6, 3.1)
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.065, right=0.985, top=0.88, bottom=0.16, wspace=0.16)
    draw_likelihoods(left, history, vae_history)
    draw_divergences(right, history)
    return png(figure)


def draw_likelihoods(axes: Axes, history: Sequence[Metrics], vae_history: Sequence[Metrics]) -> None:
    """−L of both models, and that of held-out classes."""
    if vae_history:
        draw_curve(axes, vae_history, "nll", AMBER, "VAE, no memory")
    draw_curve(axes, history, "nll", TEAL, "with memory")
    draw_curve(axes, history, "valid_nll", INK, "with memory, held out")
    dress(axes, "NLL of training images, in nats: lower is better")


def draw_divergences(axes: Axes, history: Sequence[Metrics]) -> None:
    """KL_a and KL_z, and asleep −log q(a|x̃)."""
    draw_curve(axes, history, "kl_a", BLUE, "KL of the address a")
    draw_curve(axes, history, "kl_z", AMBER, "KL of the variation z")
    asleep = [{"update": row["update"], "cost": -row["dream_log_q_a"]} for row in history if "nll" not in row]
    draw_curve(axes, asleep, "cost", INK, "asleep: −log q(a|x) of dreams")
    dress(axes, "nats that the target adds, of a and of z")


def draw_curve(axes: Axes, history: Sequence[Metrics], key: str, colour: str, label: str) -> None:
    """One metric: a thin line for its values, a bold one for a running mean; a few values also as dots."""
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
