"""The long run on models, memories, checkpoints, files of runs and settings: `python -m tests.fuzz.inside`."""

import torch

from tests.fuzz.long_run import run
from tests.fuzz.run_targets import TARGETS, clean_up

if __name__ == "__main__":
    torch.set_num_threads(1)
    try:
        raise SystemExit(run("tests.fuzz.inside", TARGETS))
    finally:
        clean_up()
