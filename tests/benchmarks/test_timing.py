"""Medians of rounds, fits and crossings, on times that are known."""

import math

import pytest
import torch

from benchmarks.speed.addressing import growth_exponent
from benchmarks.speed.attention import fixed_and_per_item
from benchmarks.speed.measuring import (
    MatrixProduct,
    Times,
    interleaved,
    peak_memory,
    peak_of_tensors,
    using_threads,
)
from benchmarks.speed.report import machine, seconds, size
from vma import InputError
from vma.reproduce.update_times import CLOCKS


def test_sides_take_turns_after_a_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    order, clock = [], iter(range(100))
    monkeypatch.setitem(CLOCKS, "wall", lambda: float(next(clock)))
    times = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert order == ["a", "b"] * 4
    assert times.seconds == {"a": [1.0] * 3, "b": [1.0] * 3}


def test_a_ratio_is_that_of_rounds() -> None:
    times = Times({"ours": [1.0, 10.0, 2.0], "other": [3.0, 30.0, 4.0]})
    assert times.median("ours") == 2.0
    assert times.ratio("other", "ours") == 3.0


def test_no_rounds_are_refused() -> None:
    with pytest.raises(InputError, match="repeats"):
        interleaved({"a": lambda: None}, 0)


def test_a_growth_exponent_is_found() -> None:
    sizes = [100, 1000, 10_000]
    assert growth_exponent(sizes, [3e-6 * n**0.8 for n in sizes]) == pytest.approx(0.8)


def test_fixed_and_growing_costs_are_told_apart() -> None:
    sizes = [8, 64, 1024]
    assert fixed_and_per_item(sizes, [5.0 + 0.25 * n for n in sizes]) == pytest.approx((5.0, 0.25))


def test_the_matrix_product_has_a_rate() -> None:
    product = MatrixProduct(64)
    times = interleaved({"product": product}, 3)
    assert product.flops == 2 * 64**3
    assert product.flops / times.median("product") > 0


def test_threads_are_set_and_given_back() -> None:
    before = torch.get_num_threads()
    with using_threads(before + 1):
        assert machine()["threads"] == before + 1
    assert torch.get_num_threads() == before
    with pytest.raises(InputError, match="at least 1"), using_threads(0):
        pass


def test_the_machine_is_described() -> None:
    about = machine()
    assert about["processor"]
    assert about["cores"] >= 1
    assert about["torch"] == str(torch.__version__)
    peak = peak_memory()
    assert peak is None or peak > 10_000_000


def test_bytes_of_tensors_are_counted_while_they_live() -> None:
    x = torch.zeros(1000)  # 8000 bytes in float64, made before

    def two_at_a_time() -> object:
        return x.view(10, 100).exp().sin().cos()

    assert peak_of_tensors(two_at_a_time) == 16_000
    assert peak_of_tensors(lambda: x.T if x.ndim == 2 else x.view(10, 100)) == 0


def test_units() -> None:
    assert [seconds(v) for v in (2.5, 0.0123, 4.5e-6)] == ["2.5 s", "12.3 ms", "4.5 µs"]
    assert [size(v) for v in (3.21e9, 5e6, 1200.0, 7.0)] == ["3.21 GB", "5 MB", "1.2 kB", "7 B"]
    assert math.isfinite(len(seconds(0.0)))
