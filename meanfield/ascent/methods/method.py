"""What every method of ascent provides: a tangent direction at a point, and a memory of accepted moves."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._types import Array, Bool, Float, PyTree, Scalar
from ..landscape import AbstractLandscape


class Point(eqx.Module):
    """A configuration with its energy, force F and Riemannian gradient P_x F."""

    x: Float[Array, "n d"]
    energy: Scalar
    force: Float[Array, "n d"]
    gradient: Float[Array, "n d"]


class AbstractAscent(eqx.Module):
    """A strategy: the engine tries x ← normalise(x + s·direction), s ≤ 1, and keeps only moves that raise the energy."""

    @abc.abstractmethod
    def init(self, point: Point) -> PyTree[Array]:
        """The empty memory."""

    @abc.abstractmethod
    def direction(self, landscape: AbstractLandscape, point: Point, memory: PyTree[Array]) -> Float[Array, "n d"]:
        """A tangent direction; the engine falls back to the gradient where it does not ascend."""

    @abc.abstractmethod
    def update(
        self,
        landscape: AbstractLandscape,
        old: Point,
        new: Point,
        move: Float[Array, "n d"],
        memory: PyTree[Array],
        accepted: Bool[Array, ""],
    ) -> PyTree[Array]:
        """The memory after the trial old → new, unchanged unless it was `accepted`; `move` is tangent at old.x."""

    def restart(self, point: Point, memory: PyTree[Array], when: Bool[Array, ""]) -> PyTree[Array]:
        """The memory, or the empty one `when` true."""
        return jax.tree.map(lambda empty, full: jnp.where(when, empty, full), self.init(point), memory)
