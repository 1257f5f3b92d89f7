"""Values that a dynamics cannot use, refused before compute (traced values are left to the status of the run)."""

import functools

import jax
import numpy as np

from .._check import is_concrete
from .._types import DType
from ..kernels import Cosine, ExpDot, Scaled, Toeplitz
from .base import AbstractDynamics
from .sa import SA
from .usa import USA


@functools.singledispatch
def refuse_values(dynamics: AbstractDynamics, dtype: DType) -> None:
    """Raises `ValueError` for concrete parameter values that make the velocity overflow or lose its meaning."""


@refuse_values.register
def _(dynamics: USA, dtype):
    for part in _parts(dynamics.kernel, ExpDot):
        exponent = float(part.beta) * (1 - float(part.shift))
        if exponent > float(np.log(np.finfo(dtype).max)):
            raise ValueError(
                f"beta={float(part.beta):g} with shift={float(part.shift):g} overflows {np.dtype(dtype)}: e^{exponent:g} is "
                "infinite; use ExpDot(beta, shift=1.0), which only rescales time by e^{−beta}"
            )


@refuse_values.register
def _(dynamics: SA, dtype):
    for part in _parts(dynamics.kernel, Scaled):
        if not float(part.scale) > 0:
            raise ValueError(
                f"SA needs a positive kernel, its scale is {float(part.scale):g}: use mf.USA for repulsion"
            )
    for part in _parts(dynamics.kernel, Toeplitz):
        g = part.profile
        if isinstance(g, Cosine) and not float(g.offset) > 1:
            raise ValueError(
                f"SA needs a positive kernel, but the position factor {float(g.offset):g} + cos(kτ) changes sign: "
                "use mf.USA, or an offset above 1"
            )


def _parts(kernel, kind) -> list:
    """The concrete parts of one kind, outermost only."""
    nodes = jax.tree.leaves(kernel, is_leaf=lambda node: isinstance(node, kind))
    found = [node for node in nodes if isinstance(node, kind) and is_concrete(node)]
    inner = [part for node in found for child in jax.tree.leaves(_children(node), is_leaf=lambda n: isinstance(n, kind))
             if isinstance(child, kind) for part in _parts(child, kind)]  # fmt: skip
    return found + inner


def _children(node) -> list:
    return [getattr(node, name) for name in node.__dataclass_fields__]
