"""The classifier keeps scikit-learn's conventions, and says what the memory says."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from tests.helpers.oracles import small_mlp
from tests.helpers.trained_models import drawings, trained
from vma.errors import InputError
from vma.fewshot import TrainedModel
from vma.sklearn import MemoryClassifier

SIZE = (6, 6)
EXPECTED_FAILURES = {
    "check_classifiers_train": "asks for 83 % on clouds of points in the plane, which are no images",
}


@pytest.fixture
def model(tmp_path: Path) -> TrainedModel:
    return trained(tmp_path / "run", small_mlp(height=SIZE[0], width=SIZE[1]))


def test_the_conventions_of_scikit_learn(model: TrainedModel, tmp_path: Path) -> None:
    found: dict[str, set[str]] = {}

    def note(check_name: str, status: str, **_: Any) -> None:
        found.setdefault(status, set()).add(check_name)

    classifier = MemoryClassifier(str(tmp_path / "run"), shape=(1, -1), by="address", invert="no")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of skipped checks, and of noise that looks like no drawing
        check_estimator(classifier, on_fail=None, on_skip=None, callback=note,
                        expected_failed_checks=EXPECTED_FAILURES)  # fmt: skip
    assert found.get("failed", set()) == set()
    assert found["xfail"] == set(EXPECTED_FAILURES)
    assert len(found["passed"]) > 40


def images() -> tuple[np.ndarray, np.ndarray]:
    return drawings(6, SIZE), np.array(["b", "a", "b", "c", "a", "c"])


@pytest.mark.parametrize("by", ["joined", "address"])
def test_probabilities_are_those_of_the_memory(model: TrainedModel, by: str) -> None:
    X, y = images()
    new = drawings(4, SIZE, seed=7)
    classifier = MemoryClassifier(model, by=by).fit(X, y)
    assert classifier.classes_.tolist() == ["a", "b", "c"]
    found = classifier.predict_proba(new)
    for row, expected in zip(found, model.remember(X, y).recognise(new, by=by), strict=True):
        assert dict(zip("abc", row, strict=True)) == pytest.approx(expected.probabilities)
    assert classifier.predict(new).tolist() == [classifier.classes_[row.argmax()] for row in found]
    np.testing.assert_array_equal(found, clone(classifier).fit(X, y).predict_proba(new))


@pytest.mark.parametrize("scale", [16, 255, 0.5])
def test_rows_of_any_range_are_images(model: TrainedModel, scale: float) -> None:
    X, y = images()
    plain = MemoryClassifier(model, by="address").fit(X, y)
    rows = MemoryClassifier(model, by="address").fit(scale * X.reshape(6, -1), y)
    np.testing.assert_allclose(rows.predict_proba(scale * X.reshape(6, -1)), plain.predict_proba(X))
    np.testing.assert_array_equal(rows.memory_.items, plain.memory_.items)


def test_images_may_have_a_shape_of_their_own_or_no_ink(model: TrainedModel) -> None:
    X, y = drawings(4, (4, 9)), [0, 1, 0, 1]
    with pytest.raises(InputError, match="Rows of 35 pixels are no squares: give shape=\\(height, width\\)"):
        MemoryClassifier(model).fit(X.reshape(4, -1)[:, :35], y)
    by_rows = MemoryClassifier(model, shape=(4, 9), by="address").fit(X.reshape(4, -1), y)
    arrays = MemoryClassifier(model, by="address").fit(X, y)
    np.testing.assert_array_equal(by_rows.memory_.items, arrays.memory_.items)
    shares = arrays.predict_proba(np.zeros((1, 4, 9)))
    assert shares.sum() == pytest.approx(1)


def test_parameters_are_kept_as_they_are(model: TrainedModel) -> None:
    classifier = MemoryClassifier(model, by="address", seed=3)
    assert clone(classifier).get_params().keys() == classifier.get_params().keys()
    assert classifier.set_params(samples=2).get_params()["samples"] == 2
    assert "by='address'" in repr(classifier)
