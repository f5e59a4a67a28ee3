"""Numbers and names as a figure writes them."""

from vma.plotting.wording import length, minus, percent, shorten, thousands


def test_small_shares_are_not_called_none() -> None:
    assert [percent(share) for share in (0.314, 0.004, 0.0001)] == ["31 %", "0.4 %", "<0.1 %"]


def test_names_are_shortened_in_the_middle_and_hold_no_markup() -> None:
    assert len(shorten("x" * 99)) <= 28
    assert shorten("a" * 50 + "z" * 50, 10) == "aaaaa…zzzz"
    assert shorten("$x$") == r"\$x\$"


def test_numbers_are_easy_to_read() -> None:
    assert thousands(12345) == "12 345"
    assert length(10_000) == "10 000 updates"
    assert length(10_000, 3333) == "10 000 updates and 3 333 asleep"
    assert (
        length(1, 2, "first.safetensors")
        == "1 update and 2 asleep after those of the model that it began with"
    )
    assert minus("-3.2") == "−3.2"
