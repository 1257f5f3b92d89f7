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


class Trial(eqx.Module):
    """A move tried by the engine: old.x + move → new.x, `move` tangent at old.x, and whether it was accepted."""

    old: Point
    new: Point
    move: Float[Array, "n d"]
    accepted: Bool[Array, ""]

    def secant(self, landscape: AbstractLandscape) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
        """The move s and the fall y of the gradient along it, both projected to the tangent spaces at new.x."""
        x = self.new.x
        return landscape.gradient(x, self.move), landscape.gradient(x, self.old.gradient) - self.new.gradient


class AbstractAscent(eqx.Module):
    """A strategy: the engine tries x ← normalise(x + s·direction), s ≤ 1, and keeps only moves that raise the energy.

    A method without memory writes `direction` alone.
    """

    @abc.abstractmethod
    def direction(self, landscape: AbstractLandscape, point: Point, memory: PyTree[Array]) -> Float[Array, "n d"]:
        """A tangent direction; the engine falls back to the gradient where it does not ascend."""

    def init(self, point: Point) -> PyTree[Array]:
        """The empty memory."""
        return None

    def update(self, landscape: AbstractLandscape, trial: Trial, memory: PyTree[Array]) -> PyTree[Array]:
        """The memory after a trial, unchanged unless it was accepted."""
        return memory

    def restart(self, point: Point, memory: PyTree[Array], when: Bool[Array, ""]) -> PyTree[Array]:
        """The memory, or the empty one `when` true."""
        return jax.tree.map(lambda empty, full: jnp.where(when, empty, full), self.init(point), memory)
