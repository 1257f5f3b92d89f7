"""GGUF files: tensors memory-mapped, and dequantised by the `gguf` package when they are read."""

import math
import pathlib

import numpy as np

from .gguf_header import TensorInfo, read_header
from .tensors import Tensors


class Gguf(Tensors):
    """The tensors of a GGUF file, in Hugging Face's order of dimensions; `metadata` holds its keys."""

    def __init__(self, path: pathlib.Path):
        header = read_header(path)
        self.path, self.metadata = str(path), header.metadata
        self.shapes = {name: info.shape for name, info in header.tensors.items()}
        self._tensors, self._start = header.tensors, header.data_start
        self._check_extents(path.stat().st_size)

    def read(self, name: str) -> np.ndarray:
        """The tensor: a mapped view of F32 and F16, float32 where it is packed."""
        import gguf

        info = self._tensors[name]
        kind, rows = self._packing(name, info)
        if kind.name in ("F32", "F16"):
            dtype = np.dtype("<f4" if kind.name == "F32" else "<f2")
            return np.memmap(self.path, dtype, mode="r", offset=self._start + info.offset, shape=info.shape)
        packed = np.memmap(
            self.path, np.uint8, mode="r", offset=self._start + info.offset, shape=(*info.shape[:-1], rows)
        )
        try:
            return gguf.dequantize(np.asarray(packed), kind).reshape(info.shape)
        except NotImplementedError as error:
            message = f"{self.path}: tensor {name} is packed as {kind.name}, which gguf cannot dequantise"
            raise ValueError(message) from error

    def _packing(self, name: str, info: TensorInfo):
        # The ggml type, and the bytes of one row (last dimension) in it.
        import gguf

        try:
            kind = gguf.GGMLQuantizationType(info.kind)
        except ValueError as error:
            raise ValueError(f"{self.path}: tensor {name} has the unknown type {info.kind}") from error
        block, size = gguf.GGML_QUANT_SIZES[kind]
        if info.shape[-1] % block:
            raise ValueError(
                f"{self.path}: tensor {name} has rows of {info.shape[-1]}, not a multiple of {kind.name}'s {block}"
            )
        return kind, info.shape[-1] // block * size

    def _check_extents(self, size: int) -> None:
        end = 0
        for name, info in sorted(self._tensors.items(), key=lambda item: item[1].offset):
            length = math.prod(info.shape[:-1]) * self._packing(name, info)[1]
            if info.offset < end or self._start + info.offset + length > size:
                raise ValueError(
                    f"{self.path} is not a valid GGUF file: tensor {name} at {info.offset} with {length} bytes overlaps another "
                    f"or leaves the file ({size} bytes); download it again"
                )
            end = info.offset + length
