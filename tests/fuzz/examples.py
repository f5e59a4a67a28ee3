"""Small right inputs of every kind, which mutations begin with."""

import base64
import gzip
import io
import json
import struct
import zipfile
import zlib

import numpy as np
from PIL import Image
from scipy.io import savemat

from tests.helpers.served import BAR, CROSS, RING, drawing


def shape(side: int = 20) -> np.ndarray:
    """A picture of a cross with a grey dot."""
    levels = np.full((side, side + 4), 255, np.uint8)
    levels[side // 2, 3:-3] = levels[3:-3, side // 2] = 0
    levels[2:5, 2:5] = 120
    return levels


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    """The bytes of an image file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def pictures() -> list[bytes]:
    """Image files of all formats and many modes."""
    grey = Image.fromarray(shape())
    turned = Image.Exif()
    turned[0x0112] = 6
    clear = grey.convert("RGBA")
    clear.putalpha(Image.fromarray(255 - shape()))
    deep = Image.fromarray(shape().astype(np.uint16) * 257)
    return [
        *(encoded(grey.convert(mode), "PNG") for mode in ("1", "L", "LA", "P", "RGB", "RGBA")),
        encoded(clear, "PNG"),
        encoded(deep, "PNG"),
        encoded(deep, "TIFF"),
        encoded(Image.fromarray(shape().astype(np.float32) / 255), "TIFF"),
        encoded(grey, "JPEG", exif=turned),
        encoded(grey.convert("CMYK"), "JPEG", progressive=True),
        encoded(grey, "GIF", save_all=True, append_images=[grey.rotate(90)]),
        encoded(grey.convert("P"), "GIF", transparency=0),
        encoded(grey, "BMP"),
        *(encoded(grey, "TIFF", compression=how) for how in ("raw", "tiff_lzw", "tiff_deflate", "packbits")),
        encoded(grey.convert("RGB"), "WEBP", lossless=True),
        encoded(clear, "WEBP"),
    ]


def npy(array: np.ndarray) -> bytes:
    """The bytes of an `.npy` file."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def arrays() -> list[bytes]:
    """`.npy` files of several types and orders."""
    return [
        npy(np.arange(12, dtype=np.uint8).reshape(3, 4)),
        npy(np.asfortranarray(np.ones((2, 3, 4), np.float32))),
        npy(np.zeros((0, 5))),
        npy(np.array("text")),
        npy(np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])),
        npy(np.array(7, dtype=">i8")),
    ]


def zipped(packing: int, entries: dict[str, bytes]) -> bytes:
    """The bytes of a zip archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


def archives() -> list[bytes]:
    """`.npz` files, packed in every way."""
    entries = {f"x{number}.npy": content for number, content in enumerate(arrays())}
    ways = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    return [zipped(way, entries) for way in ways]


def gzips() -> list[bytes]:
    """Packed files, one of several parts, and one that is not packed."""
    plain = b"\0\0\x08\x01" + struct.pack(">I", 40) + bytes(range(40))
    return [gzip.compress(plain, mtime=0), gzip.compress(plain) + gzip.compress(plain), plain]


def matlabs() -> list[bytes]:
    """MATLAB files of numbers, text, cells and structures, packed or not."""
    values = {
        "data": np.arange(12.0).reshape(3, 4), "small": np.array([1], np.uint8), "text": "words",
        "cells": np.array([1, "a"], dtype=object), "structure": {"field": np.eye(2)}, "complex": np.array([1j]),
        "deep": np.zeros((2, 3, 4), np.int16), "truth": np.array([True, False]),
    }  # fmt: skip
    found = []
    for packed in (False, True):
        for names in (["data"], ["data", "small", "deep", "truth"], list(values)):
            file = io.BytesIO()
            savemat(file, {name: values[name] for name in names}, do_compression=packed)
            found.append(file.getvalue())
    return found


def safetensors(tensors: dict[str, np.ndarray], header: dict[str, str]) -> bytes:
    """The bytes of a safetensors file."""
    from safetensors.numpy import save

    return save(tensors, metadata=header)


def memories(side: int) -> list[bytes]:
    """Memory files, with labels and without, with keys and without."""
    items = np.random.default_rng(0).integers(0, 2, (3, side, side), dtype=np.uint8) * 255
    header = {"format": "vma-memory", "version": "1", "model": "0" * 64}
    return [
        safetensors({"items": items}, {**header, "labels": json.dumps(["ka", None, "é"])}),
        safetensors(
            {"items": items, "keys": np.ones((3, 4), np.float32)},
            {**header, "labels": json.dumps([None] * 3)},
        ),
    ]


def labels() -> list[bytes]:
    """Names in several writings."""
    words = (
        "ka",
        "two words",
        "été",
        "日本",
        "=1+1",
        "\x1b[31mred",
        "a\nb",
        "$\\frac{1}{2}$",
        "<b>&amp;",
        "👩‍👩‍👧",
    )
    return [word.encode() for word in words] + ["café".encode("latin-1"), "日本".encode("utf-16"), b""]


def request(line: str, body: bytes = b"", **headers: str) -> bytes:
    """The bytes of a request."""
    named = {"Host": "127.0.0.1:8000", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body:
        named["Content-Length"] = str(len(body))
    lines = [f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def post(path: str, message: object) -> bytes:
    """A message as the page sends it."""
    body = json.dumps(message).encode()
    return request(f"POST /api/{path}", body, Content_Type="application/json", Origin="http://127.0.0.1:8000")


def requests(side: int) -> list[bytes]:
    """Requests of every kind."""
    ring, cross, bar = (drawing(strokes, side=26) for strokes in (RING, CROSS, BAR))
    level = base64.b64encode(bytes([0, 255] * (side * side // 2))).decode()
    ask = [
        post("remember", {"images": [ring, cross], "label": "shapes"}),
        post("remember", {"images": [bar, "x"], "label": "b", "skip": True}),
        post("keep", {"pixels": [level], "label": "kept"}),
        post("recognise", {"image": cross}),
        post("imagine", {"count": 2, "temperature": 0.5, "seed": 3}),
        post("imagine", {"count": 1, "label": "ring", "card": None}),
        post("vary", {"card": "0" * 12, "points": [[0, 0], [1.5, -2]], "seed": 1}),
        post("forget", {"ids": ["0" * 12]}),
        post("rename", {"ids": ["0" * 12], "label": "other"}),
        post("undo", {"version": 1}),
        post("examples", {}),
        request("POST /api/memory/file", memories(side)[0]),
    ]
    see = [
        request("GET /", Cookie="vma-token=secret; other=1", Authorization="Bearer secret"),
        request("GET /?token=secret&x=1"),
        request("GET /api/memory", Accept="*/*", Connection="keep-alive"),
        request("GET /api/memory/file", Range="bytes=0-3"),
        request("HEAD /page/main.js", If_None_Match='"x"', If_Modified_Since="Wed, 18 Nov 2026 00:00:00 GMT"),
        request("GET /page/..%2f..%2fapp.py", Upgrade="websocket", Connection="upgrade"),
        request("OPTIONS *", Transfer_Encoding="chunked") + b"4\r\nabcd\r\n0\r\n\r\n",
        request("POST /api/imagine", Content_Type="application/json", Transfer_Encoding="chunked")
        + b"2\r\n{}\r\n0\r\n\r\n",
    ]
    return [*ask, *see, ask[4] + see[2]]


def mended_png(content: bytes) -> bytes:
    """A PNG whose chunks have the right checksums again, as far as their lengths make sense."""
    made, place = [content[:8]], 8
    while place + 12 <= len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        inside = content[place + 4 : place + 8 + length]
        made.append(content[place : place + 8 + length] + struct.pack(">I", zlib.crc32(inside)))
        place += 12 + length
    return b"".join(made)
