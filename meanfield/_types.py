"""Shapes, named once. n tokens in R^d, m prefix tokens, T saved times; arrays may be JAX's or NumPy's."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Real

AnyArray = Array | np.ndarray
Tokens = Float[AnyArray, "n d"]
Points = Float[AnyArray, "*batch d"]
Vector = Float[AnyArray, " d"]
Weights = Float[AnyArray, " n"]
Times = Real[AnyArray, " T"]
Scalar = Float[Array, ""]
ScalarLike = float | int | Real[AnyArray, ""]
Parameter = float | int | Real[AnyArray, "..."]
Label = PyTree[Real[AnyArray, "..."] | np.generic | float | int]
Labels = PyTree[Real[AnyArray, "n ..."]]
PRNGKey = Key[Array, ""] | Int[AnyArray, "2"]
DType = DTypeLike
Function = Callable[..., Any]
Devices = "list[jax.Device] | tuple[jax.Device, ...] | jax.sharding.Mesh | None"

__all__ = [
    "AnyArray", "Array", "Bool", "DType", "Devices", "Float", "Function", "Int", "Key", "Label", "Labels", "PRNGKey", "Parameter", "Points",
    "PyTree", "Real", "Scalar", "ScalarLike", "Times", "Tokens", "Vector", "Weights", "jax",
]  # fmt: skip
