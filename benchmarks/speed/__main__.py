"""The commands of `python -m benchmarks.speed`, each beside an alternative in the same process."""

from vma.cli import Command, main

COMMANDS = {
    "step": Command("benchmarks.speed.step:bench_step", "one training update, beside the textbook's"),
    "evaluate": Command(
        "benchmarks.speed.evaluate:bench_evaluate", "the K = 1000 bound, beside the textbook's"
    ),
    "attention": Command("benchmarks.speed.attention:bench_attention", "hard and soft reads as memory grows"),
    "addressing": Command("benchmarks.speed.addressing:bench_addressing", "q(a|x) alone, to a million items"),
    "drawing": Command(
        "benchmarks.speed.drawing:bench_drawing", "images in reading order, beside the naive way"
    ),
    "data": Command("benchmarks.speed.data:bench_data", "episodes and glyphs per second"),
}

if __name__ == "__main__":
    main(COMMANDS, "python -m benchmarks.speed")
