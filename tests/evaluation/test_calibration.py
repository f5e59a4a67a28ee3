"""Calibration on forecasters whose error is known, and of a small model against its own recognition."""

import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.known_models import coded, trained
from tests.helpers.oracles import SIGMAS, small_convolutional, small_mlp
from vma import InputError
from vma.build import build_model, build_vma
from vma.evaluation import Answer, CalibrationOptions, calibration
from vma.evaluation.calibration import (
    BINS,
    LEAST,
    Bin,
    CalibrationRow,
    Forecast,
    calibration_error,
    error_by_chance,
    of_forecasts,
    reliability,
)
from vma.evaluation.classification import trial_draw
from vma.evaluation.figures import draw_calibration, merge
from vma.evaluation.resumable import Evaluation
from vma.evaluation.tables import table
from vma.fewshot.lookup import look_up
from vma.fewshot.recognition import RULES, shares

TRIALS = 4000


def forecasts(
    draw: np.random.Generator, said: np.ndarray, true: np.ndarray
) -> tuple[list[float], list[bool]]:
    return said.tolist(), (draw.random(len(true)) < true).tolist()


def test_true_probabilities_have_the_error_of_chance() -> None:
    """Over many samples, the ECE of a forecaster whose probabilities are true is what chance makes of 0."""
    draw = np.random.default_rng(0)
    errors, expected = [], []
    for _ in range(200):
        p = draw.uniform(0.2, 1.0, TRIALS)
        bins = reliability(*forecasts(draw, p, p))
        errors.append(calibration_error(bins))
        expected.append(error_by_chance(bins))
    spread = np.std(errors) / math.sqrt(len(errors))
    assert np.mean(errors) == pytest.approx(np.mean(expected), abs=SIGMAS * spread)
    assert np.mean(errors) < 0.02


@pytest.mark.parametrize("shift", [-0.1, 0.05, 0.2])
def test_the_error_of_a_forecaster_that_is_off_by_a_known_amount_is_that_amount(shift: float) -> None:
    draw = np.random.default_rng(1)
    said = draw.uniform(0.4, 0.8, TRIALS)
    bins = reliability(*forecasts(draw, said, said - shift))
    assert calibration_error(bins) == pytest.approx(abs(shift), abs=SIGMAS * 0.5 / math.sqrt(TRIALS))


def test_bins_are_of_equal_width_and_hold_every_forecast() -> None:
    said = [0.05, 0.1, 0.19, 0.55, 1.0, 0.95]
    bins = reliability(said, [False, True, True, True, True, False])
    assert [each.trials for each in bins] == [1, 2, 1, 2]
    second = (bins[1].trials, bins[1].probability, bins[1].right, bins[1].variance)
    assert second == pytest.approx((2, 0.145, 1.0, (0.09 + 0.19 * 0.81) / 2))
    assert bins[-1].right == 0.5
    assert calibration_error(bins) == pytest.approx((0.05 + 2 * 0.855 + 0.45 + 2 * 0.475) / 6)
    assert sum(each.trials for each in reliability(np.linspace(0, 1, 101).tolist(), [True] * 101)) == 101
    assert len(reliability(np.linspace(0, 1, 101).tolist(), [True] * 101)) == BINS


def asked(**changes: Any) -> Evaluation:
    options = CalibrationOptions(**{"tasks": ((3, 2), (2, 1)), "trials": 23, "samples": 2, **changes})
    return calibration(trained(build_vma(small_mlp()), coded(9, 4)), options)


def rows_of(evaluation: Evaluation) -> list[CalibrationRow]:
    return [evaluation.part(number) for number in range(evaluation.parts)]


def without_time(row: CalibrationRow) -> CalibrationRow:
    rules = {name: [replace(each, milliseconds=0.0) for each in said] for name, said in row.rules.items()}
    return replace(row, rules=rules)


def test_what_is_measured_is_what_recognise_says() -> None:
    """The first trial of each rule against `shares` on the same episode: no class is shifted at step 0."""
    about = trained(build_vma(small_mlp()), coded(9, 4))
    options = CalibrationOptions(tasks=((3, 2),), trials=1, samples=2, seed=5)
    (row,) = rows_of(calibration(about, options))
    episode = trial_draw(about.dataset, 3, 2, 5)(0).tensors()
    keyed = about.model.remember(episode.memory)
    for name, (said,) in row.rules.items():
        classes, x = episode.memory_labels.tolist(), episode.targets.double()
        share = shares(look_up(about.model, keyed, x), classes, RULES[name], 2, about.generator(5, 0))[0]
        mass = torch.stack([share[episode.memory_labels == c].sum() for c in range(3)])
        label = int(episode.target_labels)
        assert said.probability == pytest.approx(float(mass.max()))
        assert said.right == (int(mass.argmax()) == label)
        assert said.log_prob == pytest.approx(math.log(float(mass[label])))
        assert said.milliseconds > 0


def test_parts_are_functions_of_their_number_and_cover_all_trials() -> None:
    evaluation = asked()
    rows = rows_of(evaluation)
    assert without_time(evaluation.part(1)) == without_time(rows[1])
    assert [len(row.rules["joined"]) for row in rows] == [20, 3, 20, 3]
    found = evaluation.summary(rows)
    assert [(task.ways, task.shots, task.items) for task in found.tasks] == [(3, 2, 6), (2, 1, 2)]
    for task in found.tasks:
        assert list(task.rules) == list(RULES)
        for each in task.rules.values():
            assert each.accuracy.trials == 23
            assert 0 <= each.calibration_error <= 1
            assert each.log_prob.value <= 0
            assert sum(own.trials for own in each.reliability) == 23


def test_a_model_that_cannot_choose_is_right_by_chance_and_knows_it() -> None:
    """With keys all alike, q(a|x) is flat: every class is the first as often as any."""
    model = build_vma(small_mlp())
    with torch.no_grad():
        for parameter in model.addressing.parameters():
            parameter.zero_()
    options = CalibrationOptions(tasks=((5, 1),), trials=40, rules=("address",), samples=1)
    evaluation = calibration(trained(model, coded(9, 4)), options)
    (task,) = evaluation.results().tasks
    assert task.rules["address"].accuracy.value == 0.2
    assert task.rules["address"].calibration_error == pytest.approx(0, abs=1e-9)
    assert task.rules["address"].log_prob.value == pytest.approx(-math.log(5))


def test_a_probability_of_zero_is_a_large_but_finite_loss() -> None:
    found = of_forecasts([Forecast(1.0, False, math.log(LEAST), 1.0)] * 2)
    assert found.log_prob.value == pytest.approx(-87.3, abs=0.1)
    assert found.calibration_error == 1.0


def test_tasks_are_merged_bin_by_bin_for_the_diagram() -> None:
    first, second = [Bin(10, 0.5, 0.4, 0.25), Bin(5, 1.0, 1.0, 0.0)], [Bin(30, 0.58, 0.6, 0.24)]
    assert merge([first, second], BINS) == [(40, pytest.approx(0.56), 22), (5, 1.0, 5)]


def test_an_answer_has_a_table_and_a_diagram() -> None:
    evaluation = asked(rules=("joined", "address"))
    found = Answer("calibration", evaluation.about, evaluation.results())
    assert table(found).row_count == 4
    with Image.open(io.BytesIO(draw_calibration(found))) as picture:
        assert picture.width > picture.height > 300


def test_options_that_make_no_sense() -> None:
    with pytest.raises(InputError, match="Did you mean 'joined'"):
        asked(rules=("joint",))
    with pytest.raises(InputError, match="samples must be 1 or more"):
        asked(samples=0)
    vae = build_model(small_convolutional(model="vae"))
    with pytest.raises(InputError, match="raw memory"):
        calibration(trained(vae, coded(4, 4)), CalibrationOptions())
