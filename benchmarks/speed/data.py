"""Episodes and invented characters per second."""

import time

from benchmarks.speed.measuring import interleaved, using_threads
from benchmarks.speed.report import Result, present, table
from vma.checks import check_positive
from vma.data.glyphs import draw_glyphs
from vma.reproduce.update_times import Clock, glyph_sampler


def bench_data(
    *,
    memory: int = 32,
    targets: int = 32,
    episodes: int = 200,
    classes: int = 20,
    drawers: int = 20,
    repeats: int = 5,
    clock: Clock = "wall",
    json: bool = False,
) -> None:
    """Time few-shot episodes, as tensors ready for a model, and the drawing of glyphs.

    Args:
        memory: |M| of an episode.
        targets: Targets of an episode.
        episodes: Episodes of a round.
        classes: Characters drawn in a round.
        drawers: Drawings of each character.
        repeats: Rounds.
        clock: wall, or cpu for a machine that others use too.
        json: Print the result as one line of JSON, last.
    """
    check_positive(episodes=episodes, classes=classes, drawers=drawers, repeats=repeats)
    started = time.perf_counter()
    with using_threads(1):
        sampler = glyph_sampler(memory, targets)
        sides = {
            "episodes": lambda: [sampler.episode(step).tensors() for step in range(episodes)],
            "glyphs": lambda: draw_glyphs(classes, drawers, 0),
        }
        times = interleaved(sides, repeats, clock)
        per_second = episodes / times.median("episodes")
        found: Result = {
            "bench": "data",
            "episodes_per_second": per_second,
            "images_per_second": per_second * (memory + targets),
            "glyphs_per_second": classes * drawers / times.median("glyphs"),
            "settings": {"memory": memory, "targets": targets, "episodes": episodes, "classes": classes,
                         "drawers": drawers, "repeats": repeats, "clock": clock},
            "seconds_in_all": time.perf_counter() - started,
        }  # fmt: skip
        rows = [[name, f"{found[f'{name}_per_second']:,.0f}"] for name in ("episodes", "images", "glyphs")]
        title = f"episodes of {targets} targets and {memory} items; glyphs of 26 × 26 pixels"
        present(found, [table(title, ("", "per second"), rows)], json)
