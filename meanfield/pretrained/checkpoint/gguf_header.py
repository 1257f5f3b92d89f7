"""A bounds-checked walk over a GGUF header, before the `gguf` package reads it: hostile counts cost nothing."""

import pathlib
import struct

import numpy as np

_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9


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

    def string(self, what: str) -> bytes:
        length = self.number("Q", what)
        start = self.skip(length, what)
        return bytes(self.data[start : start + length])

    def value(self, kind: int, what: str) -> None:
        if kind == _STRING:
            self.skip(self.number("Q", what), what)
        elif kind == _ARRAY:
            item, count = self.number("I", what), self.number("Q", what)
            if item == _ARRAY:
                raise self.fail(f"{what} is an array of arrays")
            if item in _SCALARS:
                self.skip(count * _SCALARS[item], what)
                return
            if count > (len(self.data) - self.at) // 8:
                raise self.fail(f"{what} claims {count} entries")
            for _ in range(count):
                self.value(item, what)
        elif kind in _SCALARS:
            self.skip(_SCALARS[kind], what)
        else:
            raise self.fail(f"{what} has the unknown type {kind}")


def check_header(path: pathlib.Path) -> None:
    """Raises a ValueError naming the file unless every count, string and array of the header lies inside it."""
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
    for _ in range(keys):
        name = walk.string("a key").decode("utf-8", "replace")
        walk.value(walk.number("I", name), name)
    for _ in range(tensors):
        name = walk.string("a tensor name").decode("utf-8", "replace")
        if (dims := walk.number("I", name)) > 4:
            raise walk.fail(f"tensor {name} has {dims} dimensions")
        elements = 1
        for _ in range(dims):
            elements *= walk.number("Q", name)
        if elements > 16 * len(walk.data):  # no type packs more than 16 weights into a byte
            raise walk.fail(f"tensor {name} claims {elements} numbers")
        walk.skip(12, name)
