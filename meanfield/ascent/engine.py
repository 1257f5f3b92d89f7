"""The ascent loop: one evaluation per iteration, only moves that raise the energy, and a reason for stopping."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from .. import sphere
from .._types import Array, Bool, Float, Int, PyTree, Scalar
from .landscape import AbstractLandscape
from .methods import AbstractAscent, Point, Trial

RUNNING, CONVERGED, STALLED, BUDGET, SADDLE = range(5)
STATUSES = ("running", "converged", "stalled", "budget", "saddle")

ARMIJO = 1e-4
LARGEST_ANGLE = 0.7  # no token turns further in one move; keeps quasi-Newton steps inside the region they model
FIRST_ANGLE = 0.1
REJECTIONS = 8  # in a row, after which the memory is dropped and the gradient tried
IDLE = 6  # moves without progress before the ascent is called stalled
FALL = 1e-3  # relative fall of the gradient that is progress where the energy no longer shows any


class Stopping(eqx.Module):
    """Stop at ‖grad‖_w ≤ gradient·‖F‖_w, after `budget` evaluations, or after moves without progress.

    Progress is a gain of more than gain·|E|, or a gradient below the smallest so far: a quadratic gain falls below the
    rounding of E when the gradient is at its square root, long before the gradient is at its tolerance.

    Examples:
        >>> stop = mf.ascent.engine.stopping(jnp.float32, budget=200)
        >>> int(stop.budget)
        200
    """

    gradient: Scalar
    gain: Scalar
    budget: Int[Array, ""]


class Ascent(eqx.Module):
    """Where one restart stands. `shrink` shortens the next move after rejections; `status` indexes `STATUSES`.

    `lowest`: ‖grad‖_w at the last progress that the gradient made.
    """

    point: Point
    memory: PyTree[Array]
    shrink: Scalar
    lowest: Scalar
    rejected: Int[Array, ""]
    idle: Int[Array, ""]
    iterations: Int[Array, ""]
    status: Int[Array, ""]


def stopping(dtype: DTypeLike, budget: int | Int[Array, ""], sharp: bool = False) -> Stopping:
    """Tolerances for `dtype`: those of a search, or `sharp` ones, as far as rounding lets a polish go."""
    eps = float(jnp.finfo(dtype).eps)
    gradient, gain = (64 * eps, 0.5 * eps) if sharp else (eps**0.6, 10 * eps)
    return Stopping(jnp.asarray(gradient, dtype), jnp.asarray(gain, dtype), jnp.asarray(budget, jnp.int32))


def climb(landscape: AbstractLandscape, x0: Float[Array, "n d"], method: AbstractAscent, stop: Stopping) -> Ascent:
    """Ascends from x0 until a reason to stop. The energy never falls below that of x0 (to 4 units of rounding).

    Examples:
        >>> landscape = mf.ascent.bind(mf.Dot(), mf.Marginal.circle(3), None, 2, jnp.float32)
        >>> stop = mf.ascent.engine.stopping(jnp.float32, 200)
        >>> end = mf.ascent.climb(landscape, mf.sphere.sample(jax.random.key(0), (3, 2)), mf.ascent.LBFGS(), stop)
        >>> print(f"{end.point.energy:.3f}")
        0.500
    """
    start = _start(landscape, x0, method, stop)
    return jax.lax.while_loop(lambda a: a.status == RUNNING, lambda a: _iterate(landscape, a, method, stop), start)


def evaluate(landscape: AbstractLandscape, x: Float[Array, "n d"]) -> Point:
    """Energy, force and gradient at x."""
    energy, force = landscape(x)
    return Point(x, energy, force, landscape.gradient(x, force))


def _start(landscape, x0, method, stop) -> Ascent:
    point = evaluate(landscape, x0)
    zero = jnp.zeros((), jnp.int32)
    status = jnp.where(_flat(landscape, point, stop), CONVERGED, jnp.where(stop.budget > 0, RUNNING, BUDGET))
    one = jnp.ones((), x0.dtype)
    lowest = landscape.norm(point.gradient)
    return Ascent(point, method.init(point), one, lowest, zero, zero, zero, status.astype(jnp.int32))


def _iterate(landscape, a: Ascent, method, stop) -> Ascent:
    move = a.shrink * _direction(landscape, a, method)
    counts = landscape.rho.weights[:, None] > 0
    trial = evaluate(landscape, jnp.where(counts, sphere.normalize(a.point.x + move), a.point.x))
    predicted = landscape.inner(a.point.gradient, move)
    ok = _acceptable(landscape, a.point, trial, predicted)
    memory = method.update(landscape, Trial(a.point, trial, move, ok), a.memory)
    memory = method.restart(a.point, memory, ~ok & (a.rejected + 1 == REJECTIONS))
    after = _accept(landscape, a, trial, memory, stop)
    before = _reject(a, trial, predicted, memory)
    new = jax.tree.map(lambda u, v: jnp.where(ok, u, v), after, before)
    iterations = a.iterations + 1
    status = jnp.where(iterations >= stop.budget, BUDGET, RUNNING)
    status = jnp.where(new.idle >= IDLE, STALLED, status)
    status = jnp.where(_flat(landscape, new.point, stop), CONVERGED, status).astype(jnp.int32)
    return eqx.tree_at(lambda s: (s.iterations, s.status), new, (iterations, status))


def _direction(landscape, a: Ascent, method) -> Float[Array, "n d"]:
    """The method's direction if it ascends, else the gradient; no token that counts turns further than allowed."""
    direction = method.direction(landscape, a.point, a.memory)
    ascends = landscape.inner(direction, a.point.gradient) > 0
    plain = ~ascends | (a.rejected >= REJECTIONS)
    direction = jnp.where(plain, a.point.gradient / _size(landscape, a.point), direction)
    angle = jnp.where(plain | (a.iterations == 0), FIRST_ANGLE, LARGEST_ANGLE)
    counted = jnp.where(landscape.rho.weights > 0, jnp.sum(direction**2, axis=-1), 0)
    return direction * (angle / jnp.maximum(jnp.sqrt(jnp.max(counted)), angle)).astype(direction.dtype)


def _acceptable(landscape, point: Point, trial: Point, predicted: Scalar) -> Bool[Array, ""]:
    """Armijo's rule; where it is below rounding, any move to a smaller gradient that does not lose energy."""
    slack = 4 * jnp.finfo(trial.energy.dtype).eps * jnp.abs(point.energy)
    gain = trial.energy - point.energy
    clear = (gain > 0) & (gain >= ARMIJO * predicted)
    smaller = landscape.norm(trial.gradient) < landscape.norm(point.gradient)
    fine = (gain >= -slack) & (predicted <= 1e3 * slack) & smaller
    return (clear | fine) & jnp.isfinite(trial.energy)


def _accept(landscape, a: Ascent, trial: Point, memory, stop) -> Ascent:
    size = landscape.norm(trial.gradient)
    lower = size < (1 - FALL) * a.lowest
    gains = trial.energy - a.point.energy > stop.gain * jnp.abs(trial.energy)
    idle = jnp.where(gains | lower, 0, a.idle + 1)
    lowest = jnp.where(lower, size, a.lowest)
    zero = jnp.zeros_like(a.rejected)
    return Ascent(trial, memory, jnp.ones_like(a.shrink), lowest, zero, idle, a.iterations, a.status)


def _reject(a: Ascent, trial: Point, predicted: Scalar, memory) -> Ascent:
    """A shorter move by the parabola through both energies; after too many, no memory and the plain gradient."""
    shortfall = predicted - (trial.energy - a.point.energy)
    parabola = 0.5 * predicted / jnp.where(shortfall > 0, shortfall, 1)
    shrink = jnp.where(jnp.isfinite(parabola), jnp.clip(parabola, 0.1, 0.5), 0.1) * a.shrink
    rejected = a.rejected + 1
    drop = rejected == REJECTIONS
    idle = jnp.where(rejected % REJECTIONS == 0, a.idle + IDLE // 2, a.idle)
    return Ascent(a.point, memory, jnp.where(drop, 1, shrink), a.lowest, rejected, idle, a.iterations, a.status)


def _size(landscape, point: Point) -> Scalar:
    """‖F‖_w, the natural unit of gradients; 1 where it vanishes."""
    size = landscape.norm(point.force)
    return jnp.where(size > 0, size, 1)


def _flat(landscape, point: Point, stop: Stopping) -> Bool[Array, ""]:
    return landscape.norm(point.gradient) <= stop.gradient * landscape.norm(point.force)
