"""What can be chosen by name: known, registered, or offered by an installed package."""

import math
from pathlib import Path

import pytest

from tests.helpers.packages import install
from vma.errors import InputError
from vma.registry import Registry


def colours() -> Registry[int]:
    return Registry("colour", "vma.test_colours", {"red": 0xF00, "green": 0x0F0})


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of installed packages."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def test_it_is_a_mapping() -> None:
    names = colours()
    assert names["red"] == 0xF00
    assert list(names) == ["red", "green"]
    assert dict(names) == {"red": 0xF00, "green": 0x0F0}
    assert len(names) == 2
    assert "green" in names
    assert "blue" not in names
    assert names.get("red", 0) == 0xF00
    assert names.get("blue") is None


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        InputError, match=r"Unknown colour 'gren': choose one of red, green. Did you mean 'green'"
    ):
        colours()["gren"]


def test_register_adds_a_name_that_is_not_taken() -> None:
    names, others = colours(), colours()
    names.register("blue", 0x00F)
    assert names["blue"] == 0x00F
    assert list(names) == ["red", "green", "blue"]
    assert "blue" not in others
    for taken in ("blue", "red"):
        with pytest.raises(InputError, match=f"'{taken}'.* already: choose another name"):
            names.register(taken, 0xFFF)


def test_a_string_is_imported_when_it_is_asked_for() -> None:
    names: Registry[float] = Registry("number", "vma.test_numbers", {"pi": "math:pi", "odd": "nowhere:odd"})
    assert list(names) == ["pi", "odd"]
    assert names["pi"] == math.pi


def test_an_installed_package_offers_values(packages: Path) -> None:
    code = "BLUE, PINK = 0x00F, 0xFCC\n"
    install(packages, "pigments", code, "[vma.test_colours]\nblue = pigments:BLUE\npink = pigments:PINK\n")
    names = colours()
    assert names["blue"] == 0x00F
    assert list(names) == ["red", "green", "blue", "pink"]
    assert dict(names)["pink"] == 0xFCC
    assert len(names) == 4
    with pytest.raises(InputError, match="There is a colour called 'pink' already"):
        names.register("pink", 0xFFF)
    with pytest.raises(InputError, match="Did you mean 'pink'"):
        names["pnk"]


def test_packages_are_left_alone_until_they_are_needed(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        packages, "slow_pigments", "raise RuntimeError", "[vma.test_colours]\nblue = slow_pigments:BLUE\n"
    )
    names = colours()
    with monkeypatch.context() as patch:
        patch.setattr("vma.registry.entry_points", None)  # looking for packages would fail
        assert names["red"] == 0xF00
        assert "green" in names
    assert list(names) == ["red", "green", "blue"]  # looked for, not imported


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("RED = 1", "AttributeError: module '[a-z0-9_]*' has no attribute 'BLUE'"),
        ("raise ValueError('one\\ntwo')", "ValueError: one two"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_named(
    packages: Path, code: str, cause: str, request: pytest.FixtureRequest
) -> None:
    package = f"broken{request.node.callspec.indices['code']}_pigments"
    install(packages, package, code, f"[vma.test_colours]\nblue = {package}:BLUE\n")
    names = colours()
    with pytest.raises(
        InputError,
        match=rf"entry point blue = {package}:BLUE of the package {package} 1\.2 .*\({cause}\): repair",
    ):
        names["blue"]
    assert names["red"] == 0xF00


def test_a_package_cannot_take_a_name_away(packages: Path) -> None:
    install(packages, "red_pigments", "RED = 0xE00", "[vma.test_colours]\nred = red_pigments:RED\n")
    assert colours()["red"] == 0xF00
    with pytest.raises(
        InputError, match=r"colour called 'red' already, which the package red_pigments 1\.2 offers too"
    ):
        list(colours())
