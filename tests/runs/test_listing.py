"""The list of presets: whole, in groups, with times and one that is recommended."""

import pytest

from vma.cli import run
from vma.errors import InputError, unknown_name
from vma.runs.listing import GROUPS, RECOMMENDED, difference, duration, groups, in_order, roughly
from vma.runs.presets import PRESETS


def test_every_preset_is_listed_once_with_a_time() -> None:
    listed = [preset for each in groups().values() for preset in each]
    assert sorted(preset.name for preset in listed) == sorted(PRESETS)
    assert all(preset.seconds > 0 and preset.what for preset in listed)
    assert RECOMMENDED in PRESETS


def test_the_time_of_a_run_counts_updates_awake_and_asleep() -> None:
    settings = PRESETS["omniglot-fewshot-4-fast"]
    asleep = settings.sleep.share * settings.updates
    expected = 2.0 * (settings.updates - asleep) + 0.5 * asleep
    assert duration(settings, {"awake": 2.0, "asleep": 0.5}) == pytest.approx(expected, rel=1e-4)
    assert duration(PRESETS["mnist-recall"], {"awake": 0.1}) == pytest.approx(15_000)


def test_those_that_are_made_from_another_follow_it_and_say_what_is_different() -> None:
    names = in_order()
    place = names.index("omniglot-fewshot-4")
    assert names[place : place + 3] == [f"omniglot-fewshot-4{end}" for end in ("", "-fast", "-in-order")]
    assert difference("omniglot-fewshot-4-fast") == "for a small budget, with 32 maps"
    assert difference("omniglot-fewshot-4") == PRESETS["omniglot-fewshot-4"].description


def test_the_command_says_time_data_and_a_recommendation(capsys: pytest.CaptureFixture[str]) -> None:
    run(["presets"])
    shown = capsys.readouterr().out
    assert all(title in shown for title in GROUPS.values())
    assert "dataset glyphs: ready" in shown
    assert shown.count("recommended") == 1
    assert f"vma train {RECOMMENDED}" in shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (5.0, "1 min"),
        (540.0, "9 min"),
        (3300.0, "55 min"),
        (5400.0, "2 h"),
        (86_000.0, "24 h"),
        (2.6e5, "3 days"),
    ],
)
def test_times_are_rounded_for_a_reader(seconds: float, shown: str) -> None:
    assert roughly(seconds) == shown


def test_the_beginning_of_a_name_is_answered_with_those_that_begin_so() -> None:
    said = str(unknown_name("preset", "omniglot-few", PRESETS))
    assert said.startswith(
        "Unknown preset 'omniglot-few': the names that begin with it are omniglot-fewshot-1, "
    )
    assert "mnist" not in said
    with pytest.raises(InputError, match="Did you mean 'glyphs-soft-fast'"):
        run(["train", "glyphs-soft-fas"])
