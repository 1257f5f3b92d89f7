"""GGUF headers, read in one walk in which every count, string and array is first checked to lie inside the file.

The `gguf` package's own reader trusts the counts (a claimed 2^60 entries loop on) and takes seconds on a vocabulary; its tables of
types and its dequantisation are used in `gguf_file`.
"""

import pathlib
import struct
from typing import Any, NamedTuple

import numpy as np

_SCALARS = dict(enumerate(("<u1", "<i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?"))) | {10: "<u8", 11: "<i8", 12: "<f8"}
_STRING, _ARRAY = 8, 9
_LARGEST_DIMENSION = 2**40


class TensorInfo(NamedTuple):
    """A tensor: shape in Hugging Face's order, ggml type number, offset from the start of the data."""

    shape: tuple[int, ...]
    kind: int
    offset: int


class Header(NamedTuple):
    """Metadata, tensors by name, and where the data starts."""

    metadata: dict[str, Any]
    tensors: dict[str, TensorInfo]
    data_start: int


class _Walk:
    def __init__(self, path: pathlib.Path):
        self.path = path
        self.data = memoryview(np.memmap(path, np.uint8, mode="r"))
        self.at = 0

    def fail(self, what: str) -> ValueError:
        return ValueError(f"{self.path} is not a valid GGUF file: {what}; download it again")

    def skip(self, size: int, what: str) -> int:
        start = self.at
        if size > len(self.data) - start:
            raise self.fail(f"{what} needs {size} bytes at {start}, the file has {len(self.data)}")
        self.at += size
        return start

    def number(self, code: str, what: str) -> int:
        return struct.unpack_from("<" + code, self.data, self.skip(struct.calcsize(code), what))[0]

    def string(self, what: str) -> str:
        length = self.number("Q", what)
        start = self.skip(length, what)
        return str(self.data[start : start + length], "utf-8", "replace")

    def value(self, kind: int, what: str) -> Any:
        if kind == _STRING:
            return self.string(what)
        if kind == _ARRAY:
            item, count = self.number("I", what), self.number("Q", what)
            if item == _STRING:
                if count > (len(self.data) - self.at) // 8:
                    raise self.fail(f"{what} claims {count} entries")
                return [self.string(what) for _ in range(count)]
            return self._numbers(item, count, what).tolist()
        return self._numbers(kind, 1, what)[0].item()

    def _numbers(self, kind: int, count: int, what: str) -> np.ndarray:
        if kind not in _SCALARS:
            raise self.fail(f"{what} has the type {kind}, which is unknown or nested")
        dtype = np.dtype(_SCALARS[kind])
        start = self.skip(count * dtype.itemsize, what)
        return np.frombuffer(self.data, dtype, count, start)


def read_header(path: pathlib.Path) -> Header:
    """The header of a GGUF file, or a ValueError naming the file and what is wrong with it."""
    if path.stat().st_size < 24:
        raise ValueError(f"{path} has {path.stat().st_size} bytes; a GGUF file has at least a header of 24")
    walk = _Walk(path)
    if bytes(walk.data[walk.skip(4, "magic") : 4]) != b"GGUF":
        raise walk.fail("it does not begin with GGUF")
    if (version := walk.number("I", "version")) not in (2, 3):
        raise walk.fail(f"version {version} is not 2 or 3 (little-endian)")
    tensors, keys = walk.number("Q", "tensor count"), walk.number("Q", "key count")
    left = len(walk.data) - walk.at
    if tensors > left // 24 or keys > left // 12:
        raise walk.fail(f"it claims {tensors} tensors and {keys} keys in {left} bytes")
    metadata: dict[str, Any] = {}
    for _ in range(keys):
        name = walk.string("a key")
        metadata[name] = walk.value(walk.number("I", name), name)
    infos: dict[str, TensorInfo] = {}
    for _ in range(tensors):
        name = walk.string("a tensor name")
        if name in infos:
            raise walk.fail(f"tensor {name} is there twice")
        infos[name] = _tensor_info(walk, name)
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 1 <= alignment <= 2**20:
        raise walk.fail(f"general.alignment={alignment!r}")
    return Header(metadata, infos, -(-walk.at // alignment) * alignment)


def _tensor_info(walk: _Walk, name: str) -> TensorInfo:
    if not 1 <= (rank := walk.number("I", name)) <= 4:
        raise walk.fail(f"tensor {name} has {rank} dimensions")
    dims = [walk.number("Q", name) for _ in range(rank)]
    if not all(1 <= dim < _LARGEST_DIMENSION for dim in dims):
        raise walk.fail(f"tensor {name} has the dimensions {dims}")
    return TensorInfo(tuple(reversed(dims)), walk.number("I", name), walk.number("Q", name))
