"""What the user hands in: conversion to one floating dtype, and checks of concrete values before any compute."""

import numpy as np
from jaxtyping import Array

from .._check import is_concrete as is_concrete
from ..theory.propagation import Numbers as Numbers
from ..theory.propagation import floating as floating


def check_range(name: str, value: Array, low: float, high: float, remedy: str) -> None:
    """Refuses concrete values that are not finite or lie outside [low, high]."""
    if not is_concrete(value):
        return
    values = np.asarray(value)
    bad = ~np.isfinite(values) | (values < low) | (values > high)
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        place = f"[{', '.join(map(str, where))}]" if where else ""
        raise ValueError(f"{name}{place} = {values[where]:.6g} is outside [{low:g}, {high:g}]: {remedy}")


def check_length(length: object) -> int:
    """`length` as a positive int."""
    if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 1:
        raise ValueError(f"length = {length!r} must be an integer ≥ 1: the number of tokens of the context")
    return int(length)


def check_index(name: str, index: object, size: int) -> object:
    """A concrete `index` into `size` things, negative ones counted from the end; a traced one is handed back as it is."""
    if not is_concrete(index):
        return index
    if isinstance(index, bool) or np.ndim(index) != 0 or not np.issubdtype(np.asarray(index).dtype, np.integer):
        raise ValueError(f"{name} = {index!r} must be one integer")
    if not -size <= int(index) < size:
        raise ValueError(f"{name} = {int(index)} is out of range for {size}: use {-size} … {size - 1}")
    return int(index) % size
