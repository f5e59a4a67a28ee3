"""Small inputs that ask for gigabytes: each ends in an answer or a sentence, within stated memory."""

import json
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save

from tests.helpers.memory_limits import MEGABYTE, call_within
from vma.config import ModelConfig
from vma.data.arrays import read_mat, read_maybe_gzip, read_npz
from vma.data.picture import FolderOptions
from vma.errors import InputError
from vma.fewshot.images import as_ink
from vma.limits import MATRICES, PICTURE
from vma.storage import load_model, save_model

THIN = [(60_000, 1), (1, 200_000), (2, 3_000_000)]


def take(count: int) -> None:
    bytearray(count)


def test_the_limit_of_memory_holds() -> None:
    """The measure itself: what fits is answered, and what does not is an error."""
    assert call_within(64, take, 32 * MEGABYTE)[0] == "answer"
    # Far more than a process that has run other tests has to spare.
    assert call_within(64, take, 4096 * MEGABYTE)[0] == "MemoryError"


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("size", THIN)
def test_thin_pictures_are_fitted_without_a_square(
    tmp_path: Path, size: tuple[int, int], colour: bool
) -> None:
    path = tmp_path / "thin.png"
    Image.new("L", size, 0).save(path)
    assert path.stat().st_size < 10_000
    kind, said = call_within(128, as_ink, path, (26, 26), FolderOptions(invert="no", colour=colour))
    assert kind == "answer" or "There is no ink" in said, (kind, said)


def test_a_thin_picture_is_the_line_that_it_is() -> None:
    """What a square canvas would give: the ink's share of the row in the middle."""
    fitted = FolderOptions(invert="no", level=False, uneven=False, crop=False, thin=False, binarize=None)
    wide = as_ink(np.full((1, 5200), 255, np.uint8), (26, 26), fitted).images[0]
    assert wide.nonzero()[:, 0].unique().tolist() in ([12], [13])
    assert wide.sum() == pytest.approx(26 / 200, abs=26 / 510)


def png_of(width: int, height: int, kind: int, depth: int) -> bytes:
    """All zeros, without the pixels in memory."""
    channels = {0: 1, 2: 3, 6: 4}[kind]
    row = bytes(1 + width * channels * depth // 8)
    packer = zlib.compressobj(9)
    content = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()

    def chunk(name: bytes, inside: bytes) -> bytes:
        return struct.pack(">I", len(inside)) + name + inside + struct.pack(">I", zlib.crc32(name + inside))

    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", content) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("side", "kind", "depth"), [(9000, 0, 1), (5000, 0, 16)])
def test_pictures_with_too_many_pixels_are_refused_before_one_is_read(
    tmp_path: Path, side: int, kind: int, depth: int
) -> None:
    path = tmp_path / "huge.png"
    path.write_bytes(png_of(side, side, kind, depth))
    raised, said = call_within(64, as_ink, path, (26, 26))
    assert (raised, "make it smaller" in said) == ("InputError", True)


def test_the_largest_picture_is_read_within_a_gigabyte_and_a_half(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    path.write_bytes(png_of(PICTURE // 8000, 8000, 6, 8))  # transparent, which takes most
    kind, said = call_within(1536, as_ink, path, (26, 26))
    assert kind == "InputError"
    assert "no ink" in said


def archive(path: Path, content: bytes, packing: int, declared: int | None = None) -> None:
    with zipfile.ZipFile(path, "w", packing, compresslevel=9) as file:
        file.writestr("x.npy", content)
    if declared is not None:  # in the entry and in the directory
        size = struct.pack("<I", len(content))
        path.write_bytes(path.read_bytes().replace(size, struct.pack("<I", declared)))


def test_archives_that_unpack_to_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    for packing in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        for declared in (None, 1000):
            archive(path, bytes(2**26), packing, declared)
            raised, said = call_within(32, read_npz, path, 2**20)
            assert raised == "InputError", (packing, declared, said)
            assert "was not read" in said or "unusual way" in said or "damaged" in said


def test_archives_of_many_entries(tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    with zipfile.ZipFile(path, "w") as file:
        for number in range(50_001):
            file.writestr(f"{number}.npy", b"")
    with pytest.raises(InputError, match="50001 entries, more than 50000"):
        read_npz(path)


def test_a_gzip_file_stops_at_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    packer = zlib.compressobj(9, wbits=31)
    path.write_bytes(b"".join(packer.compress(bytes(2**24)) for _ in range(8)) + packer.flush())
    raised, said = call_within(32, read_maybe_gzip, path, 2**20)
    assert (raised, "more than the 1048576 bytes" in said) == ("InputError", True)


def mat_of(matrices: int, packed: bool = False) -> bytes:
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x100) + b"IM"
    inside = (
        struct.pack("<IIII", 6, 8, 6, 0) + struct.pack("<IIii", 5, 8, 1, 1)
        + struct.pack("<HHI", 1, 1, ord("x")) + struct.pack("<IId", 9, 8, 1.0)
    )  # fmt: skip
    matrix = struct.pack("<II", 14, len(inside)) + inside
    if packed:
        content = zlib.compress(matrix)
        matrix = struct.pack("<II", 15, len(content)) + content
    return header + matrix * matrices


@pytest.mark.parametrize("packed", [False, True])
def test_matlab_files_of_many_elements(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "many.mat"
    path.write_bytes(mat_of(3, packed))
    assert read_mat(path)["x"].tolist() == [[1.0]]
    path.write_bytes(mat_of(MATRICES + 1, packed))
    with pytest.raises(InputError, match="more than 64 matrices"):
        read_mat(path)


def test_a_matrix_of_many_elements_is_not_looked_through(tmp_path: Path) -> None:
    path = tmp_path / "deep.mat"
    inside = struct.pack("<HHI", 1, 1, 0) * 100_000
    path.write_bytes(mat_of(0) + struct.pack("<II", 14, len(inside)) + inside)
    with pytest.raises(InputError, match="more than 1024 elements"):
        read_mat(path)


HUGE = {
    "wide layers": {"hidden": (2**26,)},
    "many maps": {"maps": 2**15},
    "a large latent": {"latent": 2**27},
    "large images": {"height": 2**14, "width": 2**14},
    "a large memory": {"learned_items": 2**24},
    "a large match": {"matching": 2**27},
}


@pytest.mark.parametrize("changes", HUGE.values(), ids=HUGE.keys())
@pytest.mark.parametrize("kind", ["vma", "vae", "soft-attention"])
def test_a_model_file_that_asks_for_more_than_it_holds(tmp_path: Path, changes: dict, kind: str) -> None:
    path = tmp_path / "small.safetensors"
    config = {"model": kind, "maps": 16, **changes}
    header = {"format": "vma-model", "version": "1", "config": json.dumps(config)}
    path.write_bytes(save({"weight": torch.zeros(10, dtype=torch.float32)}, header))
    raised, said = call_within(512, load_model, path)
    assert (raised, "damaged" in said) == ("InputError", True), said


def test_models_are_within_what_their_files_hold(tmp_path: Path) -> None:
    """The rule does not refuse what it should not: with every family, and types of weights."""
    from vma.build import build_model

    for number, changes in enumerate(
        ({}, {"model": "vae"}, {"model": "gmn"}, {"style": "modern"}, {"likelihood": "reading-order"},
         {"family": "mlp", "learned_items": 7}, {"likelihood": "categorical", "channels": 3})
    ):  # fmt: skip
        path = tmp_path / f"{number}.safetensors"
        save_model(build_model(ModelConfig(**{"maps": 8, **changes})), path)
        assert load_model(path).config.maps == 8
