"""Pictures that several tests look at."""

import pytest
import torch

import vma
from tests.quickstart.made import CONFIG, trained
from vma.quickstart.pictures import Pictures, draw_pictures


@pytest.fixture(scope="module")
def pictures() -> Pictures:
    torch.manual_seed(0)
    history = [
        {"update": n, "nll": 100 / (n + 1), "kl_a": 1.0, "kl_z": 0.1 * n, "valid_nll": None if n % 9 else 5.0}
        for n in range(60)
    ]
    return draw_pictures(trained(vma.build_vma(CONFIG)), history, history)
