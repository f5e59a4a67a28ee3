"""What a run in progress draws: samples, beside the memory items that they were drawn from."""

import numpy as np
import torch
from jaxtyping import Float

from vma.data.episodes import Episode
from vma.generative_model import GenerativeModel, Samples
from vma.memory import Memory
from vma.plotting.grids import SampleRows
from vma.training.episodes import for_model

ROWS, COLUMNS = 8, 10


@torch.no_grad()
def draw_samples(model: GenerativeModel, episode: Episode, device: torch.device) -> SampleRows:
    """One row per memory item, for eight items, with samples from it; only samples if there is no raw memory."""
    _, memory = for_model(episode, device)
    source = torch.Generator(device).manual_seed(0)
    if not isinstance(memory, Memory) or not model.has_addresses:
        return SampleRows(in_rows(model.sample(memory, ROWS * COLUMNS, generator=source)))
    spread = torch.linspace(0, len(memory) - 1, ROWS, device=device).long()
    drawn = model.sample(memory, addresses=spread.repeat_interleave(COLUMNS), generator=source)
    return SampleRows(in_rows(drawn), memory.items[spread].unsqueeze(1).cpu().numpy())


def in_rows(drawn: Samples) -> Float[np.ndarray, "rows columns *image"]:
    """The samples as a figure shows them, in rows."""
    return drawn.shown.float().cpu().unflatten(0, (ROWS, COLUMNS)).numpy()
