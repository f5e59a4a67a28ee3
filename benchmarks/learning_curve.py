"""The learning curve of a run, as means over windows, for the lab notes.

python -m benchmarks.learning_curve RUN results/NAME.json WINDOW UPDATE...
"""

import json
import sys
from pathlib import Path
from typing import Any

from vma.runs.checkpoint import read_progress
from vma.runs.folder import Run


def window_means(rows: list[dict[str, Any]], update: int, window: int) -> dict[str, Any]:
    """Means of NLL, KL_a and KL_z over the last `window` updates before `update`."""
    chosen = [row for row in rows if update - window < row["update"] <= update]
    means = {key: sum(row[key] for row in chosen) / len(chosen) for key in ("nll", "kl_a", "kl_z")}
    valid = [row["valid_nll"] for row in chosen if "valid_nll" in row]
    return {"update": update, **means, "valid_nll": valid[-1] if valid else None}


def main(run: Run, path: Path, window: int, updates: list[int]) -> None:
    """Write the curve at the given updates, with the run's own record; print it as a table."""
    record, progress = run.record(), read_progress(run.checkpoint_file)
    rows = [window_means(run.metrics(), update, window) for update in updates]
    for row in rows:
        print("| " + " | ".join("–" if v is None else f"{v:.4g}" for v in row.values()) + " |")
    curve = {"window": window, "updates_done": progress.update, "seconds": progress.seconds, "curve": rows}
    path.write_text(json.dumps({**curve, "run": record}, indent=1))


if __name__ == "__main__":
    if len(sys.argv) < 5:
        raise SystemExit(__doc__)
    main(Run(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]), [int(word) for word in sys.argv[4:]])
