"""What can be chosen by name: known, registered, or offered by an installed package."""

from pathlib import Path

import pytest

from tests.packages import install
from vma.errors import InputError
from vma.registry import Registry


def colours() -> Registry[str]:
    return Registry("colour", "vma.test_colours", {"red": "#f00", "green": "#0f0"})


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of installed packages."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def test_it_is_a_mapping() -> None:
    names = colours()
    assert names["red"] == "#f00"
    assert list(names) == ["red", "green"]
    assert dict(names) == {"red": "#f00", "green": "#0f0"}
    assert len(names) == 2
    assert "green" in names
    assert "blue" not in names
    assert names.get("red", "") == "#f00"
    assert names.get("blue") is None


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        InputError, match=r"Unknown colour 'gren': choose one of red, green. Did you mean 'green'"
    ):
        colours()["gren"]


def test_register_adds_a_name_that_is_not_taken() -> None:
    names, others = colours(), colours()
    names.register("blue", "#00f")
    assert names["blue"] == "#00f"
    assert list(names) == ["red", "green", "blue"]
    assert "blue" not in others
    for taken in ("blue", "red"):
        with pytest.raises(InputError, match=f"The colour '{taken}' exists already: choose another name"):
            names.register(taken, "#fff")


def test_an_installed_package_offers_values(packages: Path) -> None:
    code = "BLUE, PINK = '#00f', '#fcc'\n"
    install(packages, "pigments", code, "[vma.test_colours]\nblue = pigments:BLUE\npink = pigments:PINK\n")
    names = colours()
    assert names["blue"] == "#00f"
    assert list(names) == ["red", "green", "blue", "pink"]
    assert dict(names)["pink"] == "#fcc"
    assert len(names) == 4
    with pytest.raises(InputError, match="The colour 'pink' exists already"):
        names.register("pink", "#fff")
    with pytest.raises(InputError, match="Did you mean 'pink'"):
        names["pnk"]


def test_packages_are_left_alone_until_they_are_needed(packages: Path) -> None:
    install(
        packages, "slow_pigments", "raise RuntimeError", "[vma.test_colours]\nblue = slow_pigments:BLUE\n"
    )
    names = colours()
    assert names["red"] == "#f00"
    assert "offered" not in vars(names)  # not even looked for
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
    assert names["red"] == "#f00"


def test_a_package_cannot_take_a_name_away(packages: Path) -> None:
    install(packages, "red_pigments", "RED = '#e00'", "[vma.test_colours]\nred = red_pigments:RED\n")
    assert colours()["red"] == "#f00"
    with pytest.raises(InputError, match=r"red_pigments 1\.2 offers the colour 'red', which exists already"):
        list(colours())
