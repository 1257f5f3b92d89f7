"""GGUF files through the `gguf` package: metadata, tensors memory-mapped and dequantised when read."""

import pathlib
from typing import Any

import numpy as np

from .gguf_header import check_header


class Gguf:
    """The tensors of a GGUF file, in Hugging Face's order of dimensions (a `Tensors`); `metadata` holds its keys."""

    def __init__(self, path: pathlib.Path):
        import gguf

        check_header(path)
        self.path = str(path)
        try:
            reader = gguf.GGUFReader(path)
        except (ValueError, KeyError, IndexError, OverflowError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a valid GGUF file: {error}; download it again") from error
        self.metadata: dict[str, Any] = {k: f.contents() for k, f in reader.fields.items() if f.types}
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        self._check_extents(path.stat().st_size)
        self.shapes = {n: tuple(int(d) for d in reversed(t.shape)) for n, t in self._tensors.items()}

    def read(self, name: str) -> np.ndarray:
        """The tensor: a mapped view of F32 and F16, float32 where it is packed."""
        import gguf

        tensor = self._tensors[name]
        if tensor.data.dtype in (np.float32, np.float16):
            return tensor.data.reshape(self.shapes[name])
        try:
            return gguf.dequantize(tensor.data, tensor.tensor_type).reshape(self.shapes[name])
        except NotImplementedError as error:
            kind = tensor.tensor_type.name
            raise ValueError(f"{self.path}: tensor {name} is packed as {kind}, which gguf cannot dequantise") from error

    def _check_extents(self, size: int) -> None:
        end = 0
        for tensor in sorted(self._tensors.values(), key=lambda t: t.data_offset):
            if tensor.data_offset < end or tensor.data_offset + tensor.n_bytes > size:
                raise ValueError(
                    f"{self.path} is not a valid GGUF file: tensor {tensor.name} at {tensor.data_offset} with "
                    f"{tensor.n_bytes} bytes overlaps another or leaves the file ({size} bytes); download it again"
                )
            end = int(tensor.data_offset + tensor.n_bytes)
