"""All numbers in settings are finite and in a range that is stated where they are declared."""

import inspect
import math
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from vma import InputError, ModelConfig
from vma.checks import MOST, check_counts, check_samples
from vma.data.picture import FolderOptions
from vma.evaluation.episodes import NllOptions
from vma.ranges import Within, numbers_in, ranges_of
from vma.reproduce.experiment import Scale
from vma.runs.folder import settings_from
from vma.runs.presets import PRESETS
from vma.runs.settings import TrainSettings


def kinds(settings: Any) -> dict[str, type]:
    """All dataclasses of some settings, by the dotted name of their field."""
    found = {"": type(settings)}
    for field in fields(settings):
        if is_dataclass(each := getattr(settings, field.name)):
            found |= {f"{field.name}.{name}".strip("."): kind for name, kind in kinds(each).items()}
    return found


KINDS = kinds(TrainSettings())


def is_number(hint: Any) -> bool:
    """Whether a type has numbers in it, at any depth."""
    return hint in (int, float) or any(is_number(part) for part in get_args(hint))


@pytest.mark.parametrize("name", KINDS)
def test_every_number_in_settings_states_its_range(name: str) -> None:
    hints = get_type_hints(KINDS[name])
    numbers = {field for field, hint in hints.items() if is_number(hint)}
    assert numbers == ranges_of(KINDS[name]).keys()


def outside(within: Within) -> list[Any]:
    """What is not in a range: beyond its ends, not finite, no number."""
    beyond = [within.low - 1, within.high + 1, 10**400, -(10**400), True, "3", 3j]
    ends = [end for end, open_end in ((within.low, within.above), (within.high, within.below)) if open_end]
    broken = [within.low + 0.5] if within.whole else []
    return [*beyond, *ends, *broken, math.nan, math.inf, -math.inf]


def made(kind: type, **values: Any) -> Any:
    """Settings as a user makes them, without the types that are checked in the tests alone."""
    settings = object.__new__(kind)
    inspect.unwrap(kind.__init__)(settings, **values)
    return settings


@pytest.mark.parametrize("name", KINDS)
def test_no_number_outside_its_range_gets_into_settings(name: str) -> None:
    kind = KINDS[name]
    for field, within in ranges_of(kind).items():
        for value in outside(within):
            several = isinstance(getattr(kind(), field), tuple)
            with pytest.raises(InputError, match=rf"{field} must be {within}, not .*"):
                made(kind, **{field: (value,) if several else value})


def test_presets_and_numbers_of_numpy_are_within() -> None:
    assert PRESETS
    assert made(ModelConfig, maps=np.int64(8), ink=np.float32(0.5)).maps == 8
    assert FolderOptions(binarize=None).binarize is None
    assert list(numbers_in(((1, 2), None, 3))) == [1, 2, 3]


def test_a_file_with_numbers_that_are_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"optimiser.rate must be a number above 0.0"):
        settings_from({"optimiser": {"rate": math.inf}})
    with pytest.raises(InputError, match=r"one of more than 30 digits|wrong type"):
        settings_from({"updates": 10**400})


def test_absurd_counts_are_refused() -> None:
    with pytest.raises(InputError, match=r"budget must be a number from 0\.0 to .*, not nan"):
        Scale(budget=math.nan)
    with pytest.raises(InputError, match=f"samples must be {MOST} or less, not 1000000000000"):
        check_counts(NllOptions(samples=10**12), samples=1)
    with pytest.raises(InputError, match=f"needs K <= {MOST} samples, not one of more than 30 digits"):
        check_samples(10**40, 1, "This")
