"""The boundary to what is outside: damage of any kind is a sentence, and a mistake of our own stays one."""

import os
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save

from vma.errors import InputError, one_line
from vma.files import at_home, check_ordinary, from_outside, read_ordinary, write_if_absent
from vma.tensor_files import FileKind, checksum, read_header, read_tensors, tensor_bytes, write_tensors

KIND = FileKind("vma-test", "test", version=2)
TENSORS = {"b": torch.arange(6.0).reshape(2, 3), "a": torch.tensor(3), "c": torch.zeros(0)}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_tensors(tmp_path / "file", KIND, {"note": "é"}, TENSORS)
    header, tensors = read_tensors(tmp_path / "file", KIND)
    assert header == {"format": "vma-test", "version": "2", "note": "é"}
    assert all(tensors[name].equal(each) for name, each in TENSORS.items())
    assert read_header(tmp_path / "file", KIND)["note"] == "é"


def test_the_checksum_knows_every_bit_of_the_tensors(tmp_path: Path) -> None:
    content = tensor_bytes(KIND, {"note": "x"}, TENSORS)
    start = 8 + struct.unpack("<Q", content[:8])[0]
    for place in range(start, len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        (tmp_path / "file").write_bytes(damaged)
        with pytest.raises(InputError, match="does not hold what was written"):
            read_tensors(tmp_path / "file", KIND)


def test_the_checksum_knows_header_names_types_and_shapes() -> None:
    usual = checksum({"note": "x"}, TENSORS)
    assert usual == checksum({"note": "x"}, dict(reversed(TENSORS.items())))
    b, others = TENSORS["b"], {"a": TENSORS["a"], "c": TENSORS["c"]}
    changed = [b.t().contiguous(), b.reshape(6), b.double(), b.view(torch.int32)]
    sums = [checksum({"note": "x"}, {**others, "b": each}) for each in changed]
    sums += [
        checksum({"note": "y"}, TENSORS),
        checksum({"not": "ex"}, TENSORS),
        checksum({"note": "x"}, {**others, "d": b}),
    ]
    assert len({usual, *sums}) == 1 + len(sums)


def test_a_file_of_an_older_version_has_no_checksum(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(save(TENSORS, {"format": "vma-test", "version": "1"}))
    assert read_tensors(tmp_path / "file", KIND)[0]["version"] == "1"
    for version in ("3", "x", "", "²", "9" * 5000):
        (tmp_path / "file").write_bytes(save(TENSORS, {"format": "vma-test", "version": version}))
        with pytest.raises(InputError, match="newer than this vma reads"):
            read_tensors(tmp_path / "file", KIND)
    assert load(tensor_bytes(KIND, {}, TENSORS)).keys() == TENSORS.keys()


def test_what_is_no_ordinary_file_is_not_opened(tmp_path: Path) -> None:
    """A pipe would be waited for until somebody writes; a device never ends."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match="is not an ordinary file, so it is no picture"):
            read_ordinary(path, "picture")
    for path in (tmp_path / "nothing", tmp_path / "a\0b"):
        with pytest.raises(InputError, match="There is no picture"):
            check_ordinary(path, "picture")


def test_the_home_of_nobody() -> None:
    assert at_home(Path("~")) == Path.home()
    with pytest.raises(InputError, match="names the home of somebody who is not known here"):
        at_home(Path("~nobody-of-that-name/x"))


class Odd(Exception):
    """An error of some parser that nobody has heard of."""


STRANGE = (
    ValueError("why"),
    KeyError("why"),
    RecursionError(),
    MemoryError(),
    struct.error("why"),
    EOFError(),
)


@pytest.mark.parametrize("error", [Odd("why"), UnicodeDecodeError("utf-8", b"x", 0, 1, "why"), *STRANGE])
def test_any_error_of_a_parser_is_a_sentence(error: Exception) -> None:
    with pytest.raises(InputError, match=r"^It is damaged: .+\.$") as caught, from_outside("It is damaged"):
        raise error
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    "error", [NameError("x"), AttributeError("x"), AssertionError(), InputError("A sentence.")]
)
def test_mistakes_of_ours_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, from_outside("It is damaged"):
        raise error
    assert caught.value is error


def test_what_strangers_put_into_a_sentence_does_no_harm() -> None:
    assert one_line("a\x1b[31m\nb\ud800é") == r"a\x1b[31m\nb\ud800é"
    assert str(InputError("x" * 10**6 + " is wrong.")).endswith(" is wrong.")
    assert len(str(InputError("x" * 10**6))) < 1100


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    assert write_if_absent(tmp_path / "file", b"first")
    assert not write_if_absent(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
