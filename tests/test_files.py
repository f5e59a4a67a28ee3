"""Files are written whole, with the manners of what they replace, and no link leads astray."""

import os
import stat
from pathlib import Path

import pytest

from vma.errors import InputError
from vma.files import PARTIAL, STALE_SECONDS, remove_partial_files, write_atomically

NOBODY, NO_PROCESS = 65534, 2**22 + 1  # a user other than ours, and a process that cannot be


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def umask() -> None:
    os.umask(0o022)


def test_a_new_file_is_private_only_where_asked(tmp_path: Path) -> None:
    write_atomically(tmp_path / "open", b"1")
    write_atomically(tmp_path / "deep" / "secret", b"2", private=True)
    assert (mode_of(tmp_path / "open"), mode_of(tmp_path / "deep" / "secret")) == (0o644, 0o600)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444, 0o755])
def test_the_mode_of_a_replaced_file_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    for private in (False, True):
        write_atomically(path, b"new", private=private)
        assert (path.read_bytes(), mode_of(path)) == (b"new", mode)


def test_the_owner_of_a_replaced_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    before = path.stat()
    write_atomically(path, b"new")
    after = path.stat()
    assert path.read_bytes() == b"new"
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)


def test_an_owner_that_may_not_be_given_stays_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)

    def refuse(*_: object) -> None:
        raise PermissionError

    real = os.fstat
    monkeypatch.setattr(os, "fchown", refuse)
    monkeypatch.setattr(
        os, "fstat", lambda handle: os.stat_result([*real(handle)[:4], 7, 7, *real(handle)[6:]])
    )
    write_atomically(path, b"new")
    monkeypatch.undo()
    assert (path.read_bytes(), mode_of(path), path.stat().st_uid) == (b"new", 0o640, os.geteuid())


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "elsewhere" / "file", tmp_path / "link"
    target.parent.mkdir()
    link.symlink_to(target)
    for content in (b"first", b"second"):
        write_atomically(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link"]


def test_the_link_of_another_user_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, link = tmp_path / "precious", tmp_path / "link"
    target.write_bytes(b"precious")
    link.symlink_to(target)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False) if os.geteuid() == 0 else monkeypatch.setattr(
        os, "geteuid", lambda: NOBODY
    )
    with pytest.raises(InputError, match="a link that another user has made: name the file itself"):
        write_atomically(link, b"new")
    assert target.read_bytes() == b"precious"


def test_a_planted_partial_file_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _: "00000000")
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / f".file.{os.getpid()}.00000000{PARTIAL}").symlink_to(victim)
    with pytest.raises(InputError, match="Cannot write"):
        write_atomically(tmp_path / "file", b"new")
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize(("kind", "make"), [("a device or a pipe", os.mkfifo), ("a folder", os.mkdir)])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, kind: str, make) -> None:
    path = tmp_path / "thing"
    make(path)
    with pytest.raises(InputError, match=f"it is {kind}, not a file"):
        write_atomically(path, b"new")
    assert not path.is_file()
    with pytest.raises(InputError, match="a device"):
        write_atomically(Path("/dev/null"), b"new")


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"Cannot write .*file: No space left on device\."):
        write_atomically(path, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def partial(folder: Path, name: str, age: float) -> Path:
    path = folder / name
    path.write_bytes(b"half")
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))
    return path


def test_stale_partial_files_of_a_file_are_removed(tmp_path: Path) -> None:
    old, now = 2 * STALE_SECONDS, 0.0
    gone = [partial(tmp_path, f".file.{NO_PROCESS}{middle}{PARTIAL}", old) for middle in ("", ".0a1b2c3d")]
    kept = [
        partial(tmp_path, f".file.{NO_PROCESS}.11111111{PARTIAL}", now),  # perhaps of another machine
        partial(tmp_path, f".file.{os.getpid()}.22222222{PARTIAL}", old),  # its process is alive
        partial(tmp_path, f".other.{NO_PROCESS}.33333333{PARTIAL}", old),  # of another file
        partial(tmp_path, f".file.mine{PARTIAL}", old),  # of somebody else
    ]
    write_atomically(tmp_path / "file", b"whole")
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in kept)
    remove_partial_files(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_file_and_folders_are_flushed_in_the_order_that_a_power_cut_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New folders by name, then the content before it has its name, then the name."""
    real, flushed = os.fsync, []
    there = tmp_path / "new" / "folder" / "file"

    def remember(handle: int) -> None:
        target = Path(f"/proc/self/fd/{handle}").readlink()
        flushed.append((target.name.split(".")[1] if target.suffix == ".partial" else target, there.exists()))
        real(handle)

    monkeypatch.setattr(os, "fsync", remember)
    write_atomically(there, b"content")
    folders = [tmp_path, tmp_path / "new"]
    assert flushed == [*((folder, False) for folder in folders), ("file", False), (there.parent, True)]
