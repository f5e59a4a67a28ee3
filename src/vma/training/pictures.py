"""A picture of a run in progress: samples beside what they were drawn from."""

import numpy as np
import torch
from jaxtyping import Float

from vma.data.episodes import Episode
from vma.memory import Memory
from vma.model import GenerativeModel, Samples
from vma.report.pictures import grid_figure, png
from vma.training.episodes import for_model

ROWS, COLUMNS = 8, 10
GREY, BLUE = "#8a8f98", "#2f6fb5"


@torch.no_grad()
def samples(model: GenerativeModel, episode: Episode, device: torch.device) -> bytes:
    """A row for each of eight memory items, with samples from it; or samples alone where there is no raw memory."""
    _, memory = for_model(episode, device)
    source = torch.Generator(device).manual_seed(0)
    if isinstance(memory, Memory) and model.has_addresses:
        spread = torch.linspace(0, len(memory) - 1, ROWS, device=device).long()
        drawn = model.sample(memory, addresses=spread.repeat_interleave(COLUMNS), generator=source)
        items = memory.items[spread].unsqueeze(1).cpu().numpy()
        return png(grid_figure([items, grid_of(drawn)], ["memory", "samples of p(x|m)"], [GREY, BLUE]))
    drawn = model.sample(memory, ROWS * COLUMNS, generator=source)
    return png(grid_figure([grid_of(drawn)], ["samples of p(x|M)"], [BLUE]))


def grid_of(drawn: Samples) -> Float[np.ndarray, "rows columns *image"]:
    """The samples as a figure shows them, in rows."""
    return drawn.shown.float().cpu().unflatten(0, (ROWS, COLUMNS)).numpy()
