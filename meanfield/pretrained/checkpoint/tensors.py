"""What a checkpoint is to the rest: named tensors."""

from abc import ABC, abstractmethod

import numpy as np


class Tensors(ABC):
    """A checkpoint as named tensors; nothing is read but what `read` is asked for."""

    path: str
    shapes: dict[str, tuple[int, ...]]

    @abstractmethod
    def read(self, name: str) -> np.ndarray:
        """One tensor, in the layout of Hugging Face's files."""
