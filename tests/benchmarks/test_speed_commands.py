"""Each command prints a table and, last, its JSON; what is timed is what it says."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from benchmarks.speed.__main__ import COMMANDS as TABLE
from benchmarks.speed.addressing import bench_addressing
from benchmarks.speed.attention import bench_attention
from benchmarks.speed.data import bench_data
from benchmarks.speed.drawing import bench_drawing
from benchmarks.speed.evaluate import (
    LAST,
    LAYERS,
    LAYOUTS,
    LOOP,
    OURS,
    TextbookLoop,
    bench_evaluate,
    by_layers,
    check_bounds,
    keys_of,
    least_and_most,
    ours,
    reads_of,
    with_loops,
)
from benchmarks.speed.measuring import Times, using_threads
from benchmarks.speed.step import bench_step
from benchmarks.speed.workload import Workload, few_shot_preset
from tests.helpers.many_reads import rows_of_calls
from vma import InputError
from vma.kernels import compiled, one_pass
from vma.reproduce.sharp_addresses import expected_pairs, trained_pairs

ROOT = Path(__file__).parents[2]
COMMANDS = (bench_step, bench_evaluate, bench_attention, bench_addressing, bench_drawing, bench_data)


def speed(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.speed", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_help_lists_every_command() -> None:
    assert [command.load() for command in TABLE.values()] == list(COMMANDS)
    result = speed("--help")
    assert "usage: python -m benchmarks.speed COMMAND" in result.stdout
    assert all(f"\n  {name} " in result.stdout for name in TABLE)


def test_a_command_explains_itself() -> None:
    assert "usage: python -m benchmarks.speed step" in speed("step", "--help").stdout


def test_a_mistake_is_one_sentence_on_stderr_and_exit_code_2() -> None:
    result = speed("data", "--episodes", "0")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "python -m benchmarks.speed: episodes must be 1 or more, not 0.\n"


def test_nothing_that_is_installed_imports_a_benchmark() -> None:
    texts = {path: path.read_text() for path in (ROOT / "src/vma").rglob("*.py")}
    assert [path for path, text in texts.items() if re.search(r"(from|import) benchmarks", text)] == []


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str]) -> Callable[[], dict]:
    """The JSON on the last line of what was printed; the table before it is not empty."""

    def last() -> dict:
        *table, line = capsys.readouterr().out.splitlines()
        assert len(table) >= 3
        return json.loads(line)

    return last


def check_about(found: dict) -> None:
    assert found["machine"].keys() >= {"processor", "cores", "threads", "torch"}
    assert found["settings"]["repeats"] == 1
    assert found["seconds_in_all"] > 0


def test_step(answer: Callable[[], dict]) -> None:
    bench_step(maps=4, memory=8, targets=4, repeats=1, matrix=64, json=True)
    found = answer()
    keys = (
        "updates_per_second", "flops_per_update", "speedup_vs_textbook", "speedup_vs_per_target_memory",
        "speedup_vs_textbook_channels_last", "fraction_of_sgemm", "sgemm_flops_per_second",
        "reading_order_cost",
    )  # fmt: skip
    assert all(found[key] > 0 for key in keys)
    assert found["reads"] == 16
    assert 1 <= found["unique_items"] <= 8
    assert found["flops"]["vma"] < found["flops"]["textbook"] < found["flops"]["memory per target"]
    assert found["flops"]["vma"] == found["flops_per_update"]
    check_about(found)


def test_drawing(answer: Callable[[], dict]) -> None:
    bench_drawing(preset="omniglot-fewshot-4", maps=2, images=2, threads=1, repeats=1, json=True)
    found = answer()
    assert found["milliseconds"] == 1000 * found["seconds"]["by wavefronts"] > 0
    assert found["speedup_vs_naive"] > 1
    check_about(found)


def test_a_preset_that_the_textbook_does_not_know_is_refused() -> None:
    with pytest.raises(InputError, match="'reading-order', which the textbook does not know"):
        few_shot_preset("omniglot-fewshot-4-in-order", 8)


def test_step_without_json_prints_none(capsys: pytest.CaptureFixture[str]) -> None:
    bench_step(maps=4, memory=8, targets=4, repeats=1, matrix=64)
    assert "{" not in capsys.readouterr().out


def test_evaluate(answer: Callable[[], dict]) -> None:
    bench_evaluate(maps=4, memory=(8,), targets=4, samples=8, repeats=1, json=True)
    found = answer()
    (row,) = found["rows"]
    assert row["reads"] == 32
    assert row["speedup_vs_textbook"] == found["speedup_vs_textbook"] > 0
    assert row["speedup_in_each_round"] == [row["speedup_vs_textbook"]]
    assert row["seconds"].keys() == {OURS, LAYERS, *LAYOUTS}
    names = ("vs_textbook_channels_last", "vs_layers", "of_layers_vs_textbook")
    assert min(*row["seconds"].values(), *(row[f"speedup_{name}"] for name in names)) > 0
    assert row["flops"]["textbook"] > row["flops"]["vma"] > 0
    peaks = row["peak_memory_bytes"]
    assert peaks.keys() == {"vma", "textbook"}
    assert all(peak is None or peak > 10_000_000 for peak in peaks.values())
    check_about(found)


def test_the_textbook_loop_takes_its_keys_once_and_its_reads_for_every_target() -> None:
    seconds = {OURS: [1.0, 2.0]}
    for loop, reads in ((LOOP, [2.0, 5.0]), (LAST, [1.0, 4.0])):
        seconds |= {keys_of(loop): [1.0, 0.0], reads_of(loop): reads}
    times = with_loops(Times(seconds), factor=4.0)
    assert times.ratios(LOOP, OURS) == [9.0, 10.0]
    assert times.ratios(LAST, OURS) == [5.0, 8.0]
    assert least_and_most({"speedup_in_each_round": [10.0, 9.0]}) == "9.0 to 10.0"


@pytest.mark.parametrize(
    ("command", "wrong", "message"),
    [
        (bench_evaluate, {"samples": 1}, "samples must be 2 or more, not 1"),
        (bench_evaluate, {"textbook_targets": 0}, "textbook_targets must be 1"),
        (bench_evaluate, {"memory": ()}, "memory needs at least one number"),
        (bench_attention, {"memory": ()}, "memory needs at least one number"),
        (bench_attention, {"memory": (8, 0)}, "memory must be 1 or more, not 0"),
        (bench_addressing, {"matching": 0}, "matching must be 1"),
        (bench_addressing, {"targets": ()}, "targets needs at least one number"),
        (bench_data, {"episodes": 0}, "episodes must be 1"),
        *((each, {"repeats": 0}, "repeats must be 1 or more, not 0") for each in COMMANDS),
    ],
)
def test_what_cannot_be_timed_is_refused_before_anything_is_computed(
    command: Callable[..., None], wrong: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "set_num_threads", None)  # what every command does before it computes
    with pytest.raises(InputError, match=message):
        command(**wrong)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_all_sides_of_evaluate_give_the_same_bounds(
    layout: torch.memory_format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "MANY", 4 * 40)
    passes = rows_of_calls(monkeypatch, one_pass, "largest_scale", 2)
    work = Workload.of(few_shot_preset("omniglot-fewshot-4", 4), items=8, targets=4, samples=40)
    theirs = TextbookLoop(work, 3, layout).bounds()
    with using_threads(1):
        torch.testing.assert_close(by_layers(work)[:3], theirs, rtol=1e-5, atol=1e-3)
        assert not passes
        torch.testing.assert_close(ours(work)[:3], theirs, rtol=1e-5, atol=1e-3)
        assert passes


def test_sides_that_differ_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Workload.of(few_shot_preset("omniglot-fewshot-4", 4), items=8, targets=4, samples=8)
    loops = {LOOP: TextbookLoop(work, 3)}
    check_bounds(work, loops)
    with torch.no_grad():
        loops[LOOP].book.decoder.expand.weight.mul_(1.01)
    with pytest.raises(AssertionError, match=f"bounds of '{LOOP}' differ from ours"):
        check_bounds(work, loops)


def test_attention(answer: Callable[[], dict]) -> None:
    bench_attention(maps=4, memory=(8, 64), targets=4, repeats=1, json=True)
    found = answer()
    names = {"vma", "soft, pixels", "soft, features"}
    for row in found["rows"]:
        for kind in ("seconds", "flops"):
            assert row[kind].keys() == names
            assert min(row[kind].values()) > 0
    few, many = found["rows"]
    assert {"crossing_pixels", "crossing_features"} <= found.keys()
    grown = {name: many["flops"][name] / few["flops"][name] for name in names}
    assert grown["soft, features"] > grown["soft, pixels"] > 1
    assert found["growth"]["soft, features"]["flops_per_item"] > 0
    check_about(found)


def test_addressing(answer: Callable[[], dict]) -> None:
    bench_addressing(memory=(100, 10_000, 20_000), targets=(1, 4), repeats=1, json=True)
    found = answer()
    assert [row["memory"] for row in found["rows"]] == [100, 100, 10_000, 10_000, 20_000, 20_000]
    for row in found["rows"]:
        assert min(row["seconds_per_query"], row["limit_seconds"], row["fraction_of_bandwidth"]) > 0
        assert 8 * row["memory"] <= row["bytes_per_query"] <= 64 * row["memory"] + 1000
    assert found["growth_exponent"].keys() == {"1", "4"}
    assert found["bytes_per_second"] > 0
    check_about(found)


def test_data(answer: Callable[[], dict]) -> None:
    bench_data(memory=8, targets=4, episodes=3, classes=2, drawers=2, repeats=1, json=True)
    found = answer()
    assert found["episodes_per_second"] > 0 < found["glyphs_per_second"]
    assert found["images_per_second"] == pytest.approx(12 * found["episodes_per_second"])
    check_about(found)


@pytest.mark.parametrize(("samples", "items"), [(4, 32), (100, 32), (4, 200)])
def test_an_untrained_model_is_made_to_look_as_a_trained_one(samples: int, items: int) -> None:
    work = Workload.of(few_shot_preset("omniglot-fewshot-4", 8), items, targets=32, samples=samples)
    q_a = work.model.posterior(work.x, work.memory)
    assert expected_pairs(q_a, samples) == pytest.approx(trained_pairs(items, samples), rel=1e-3)
    never = (1 - q_a.log_probs.detach().double().exp()) ** samples
    found, error = work.counts()["unique_pairs"], float((never * (1 - never)).sum().sqrt())
    assert abs(found - 32 * trained_pairs(items, samples)) < 4 * error
    assert work.counts()["unique_items"] < min(items, 32 * samples)


def test_updates_of_a_workload_are_all_the_same() -> None:
    work = Workload.of(few_shot_preset("omniglot-fewshot-4", 4), items=8, targets=4)
    work.update()
    gradients = [p.grad.clone() for p in work.model.parameters()]
    before = [p.detach().clone() for p in work.model.parameters()]
    work.update()
    for parameter, gradient, value in zip(work.model.parameters(), gradients, before, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=0, atol=0)
        torch.testing.assert_close(parameter.detach(), value, rtol=0, atol=0)


def test_presets_without_a_memory_are_refused() -> None:
    with pytest.raises(InputError, match="few-shot preset"):
        few_shot_preset("mnist-recall", 8)
    with pytest.raises(InputError, match="omniglot-fewshot-4"):
        few_shot_preset("omniglot-fewshot-44", 8)
