"""A small made-up dataset and models on it, and findings as a report could have them."""

import math

import numpy as np

import vma
from vma.data.dataset import Dataset
from vma.evaluation import TrainedRun
from vma.evaluation.statistics import Mean, Share
from vma.generative_model import GenerativeModel
from vma.quickstart.measure import Findings, Training
from vma.runs.settings import TrainSettings

SIDE, CLASS_COUNT, EACH = 6, 12, 9
CONFIG = vma.paper_mlp(height=SIDE, width=SIDE, hidden=(8,), latent=3, matching=4)
TRAINING = Training(updates=300, vae_updates=300, seconds=125.0, classes=500)
FINDINGS = Findings(
    nll_vma=Mean(80.0, 1.0), nll_vae=Mean(90.0, 1.2), gain=Mean(10.0, 0.5),
    kl_a=Mean(2.1, 0.05), kl_z=Mean(9.0, 0.2),
    reconstruction=Mean(-70.0, 1.0), log_memory=math.log(32), log_classes=math.log(8),
    accuracy=Share(0.9, 0.88, 0.92, 1000), ways=5, samples=64, episodes=12, targets=384, memory=32, classes=8,
    unseen_classes=100, pixels=676, weights_vma=1234, weights_vae=123, seed=0, dataset="glyphs (test)",
    provenance="Invented", training=TRAINING,
)  # fmt: skip


def dataset(seed: int = 0) -> Dataset:
    """Random binary images whose first row says their class in binary."""
    draw = np.random.default_rng(seed)
    labels = np.repeat(np.arange(CLASS_COUNT), EACH)
    images = draw.integers(0, 2, (len(labels), SIDE, SIDE), dtype=np.uint8) * np.uint8(255)
    images[:, 0] = ((labels[:, None] >> np.arange(SIDE)) & 1) * 255
    return Dataset("made", "test", images, labels, tuple(f"c{c}" for c in range(CLASS_COUNT)), "made up")


def trained(model: GenerativeModel) -> TrainedRun:
    """A model that is to be looked at on the made-up dataset."""
    return TrainedRun(model, dataset(), TrainSettings(model=CONFIG))
