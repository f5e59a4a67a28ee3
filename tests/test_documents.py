"""Numbers in the documents are those of the JSON behind them."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]


def shown(value: float) -> str:
    return "0" if value < 1e-12 else f"{value:.2f}"


def test_the_table_of_estimators_is_the_measured_one() -> None:
    text = (ROOT / "docs/estimators.md").read_text()
    rows = json.loads((ROOT / "results/estimator-bias.json").read_text())["rows"]
    assert rows
    for row in rows:
        values = [shown(row[key]) for key in ("bias_q", "bias_model", "spread_q", "spread_model")]
        assert f"| `{row['estimator']}` | {row['samples']} | {' | '.join(values)} |" in text


def test_the_readme_states_what_the_quickstart_measured() -> None:
    text = (ROOT / "README.md").read_text()
    found = json.loads((ROOT / "results/quickstart.json").read_text())
    for name in ("nll_vma", "nll_vae", "gain"):
        mean = found[name]
        assert f"{mean['value']:.1f} ± {mean['error']:.1f}" in text
    assert f"{100 * found['accuracy']['value']:.1f} %" in text
