"""The ascent loop: one evaluation per iteration, only moves that raise the energy, and a reason for stopping."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from .. import sphere
from .._types import Array, Bool, Float, Int, PyTree, Scalar
from .landscape import AbstractLandscape
from .methods import AbstractAscent, Point

RUNNING, CONVERGED, STALLED, BUDGET, SADDLE = range(5)
STATUSES = ("running", "converged", "stalled", "budget", "saddle")

ARMIJO = 1e-4
LARGEST_ANGLE = 0.7  # no token turns further in one move; keeps quasi-Newton steps inside the region they model
FIRST_ANGLE = 0.1
REJECTIONS = 8  # in a row, after which the memory is dropped and the gradient tried
IDLE = 6  # moves without relative gain before the ascent is called stalled


class Stopping(eqx.Module):
    """Stop at ‖grad‖_w ≤ gradient·‖F‖_w, after moves that gain less than gain·|E|, or after `budget` evaluations."""

    gradient: Scalar
    gain: Scalar
    budget: Int[Array, ""]


class Ascent(eqx.Module):
    """Where one restart stands. `status` indexes `STATUSES`."""

    point: Point
    direction: Float[Array, "n d"]
    step: Scalar
    memory: PyTree[Array]
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
    """Ascends from x0 until a reason to stop. The energy never falls below that of x0 (to 4 units of rounding)."""
    start = _start(landscape, x0, method, stop)
    return jax.lax.while_loop(lambda a: a.status == RUNNING, lambda a: _iterate(landscape, a, method, stop), start)


def evaluate(landscape: AbstractLandscape, x: Float[Array, "n d"]) -> Point:
    """Energy, force and gradient at x."""
    energy, force = landscape(x)
    return Point(x, energy, force, landscape.gradient(x, force))


def _start(landscape, x0, method, stop) -> Ascent:
    point = evaluate(landscape, x0)
    memory = method.init(point)
    direction = method.direction(landscape, point, memory)
    zero = jnp.zeros((), jnp.int32)
    flat = _flat(landscape, point, stop)
    status = jnp.where(flat, CONVERGED, jnp.where(stop.budget > 0, RUNNING, BUDGET)).astype(jnp.int32)
    return Ascent(point, direction, _longest(landscape, direction, FIRST_ANGLE), memory, zero, zero, zero, status)


def _iterate(landscape, a: Ascent, method, stop) -> Ascent:
    trial = evaluate(landscape, sphere.normalize(a.point.x + a.step * a.direction))
    ok = _acceptable(landscape, a, trial)
    after, before = _accept(landscape, a, trial, method, stop), _reject(landscape, a, trial, method)
    new = jax.tree.map(lambda u, v: jnp.where(ok, u, v), after, before)
    iterations = a.iterations + 1
    done = _flat(landscape, new.point, stop)
    status = jnp.where(iterations >= stop.budget, BUDGET, RUNNING)
    status = jnp.where(new.idle >= IDLE, STALLED, status)
    status = jnp.where(done, CONVERGED, status).astype(jnp.int32)
    return eqx.tree_at(lambda s: (s.iterations, s.status), new, (iterations, status))


def _acceptable(landscape, a: Ascent, trial: Point) -> Bool[Array, ""]:
    """Armijo's rule; where it is below rounding, any move to a smaller gradient that does not lose energy."""
    slack = 4 * jnp.finfo(trial.energy.dtype).eps * jnp.abs(a.point.energy)
    predicted = a.step * landscape.inner(a.point.gradient, a.direction)
    gain = trial.energy - a.point.energy
    clear = (gain > 0) & (gain >= ARMIJO * predicted)
    smaller = landscape.norm(trial.gradient) < landscape.norm(a.point.gradient)
    fine = (gain >= -slack) & (predicted <= 1e3 * slack) & smaller
    return (clear | fine) & jnp.isfinite(trial.energy)


def _accept(landscape, a: Ascent, trial: Point, method, stop) -> Ascent:
    memory = method.update(landscape, a.point, trial, a.step * a.direction, a.memory)
    direction = method.direction(landscape, trial, memory)
    ascends = landscape.inner(direction, trial.gradient) > 0
    direction = jnp.where(ascends, direction, trial.gradient)
    memory = jax.tree.map(lambda u, v: jnp.where(ascends, u, v), memory, method.init(trial))
    step = jnp.where(ascends, _longest(landscape, direction, LARGEST_ANGLE), a.step)
    idle = trial.energy - a.point.energy <= stop.gain * jnp.abs(trial.energy)
    zero = jnp.zeros_like(a.rejected)
    return Ascent(trial, direction, step, memory, zero, jnp.where(idle, a.idle + 1, 0), a.iterations, a.status)


def _reject(landscape, a: Ascent, trial: Point, method) -> Ascent:
    """A shorter step by the parabola through both energies; after too many, the plain gradient without memory."""
    slope = landscape.inner(a.point.gradient, a.direction)
    shortfall = slope * a.step - (trial.energy - a.point.energy)
    parabola = 0.5 * slope * a.step**2 / jnp.where(shortfall > 0, shortfall, 1)
    step = jnp.where(jnp.isfinite(parabola), jnp.clip(parabola, 0.1 * a.step, 0.5 * a.step), 0.1 * a.step)
    drop = a.rejected + 1 >= REJECTIONS
    memory = jax.tree.map(lambda u, v: jnp.where(drop, u, v), method.init(a.point), a.memory)
    direction = jnp.where(drop, a.point.gradient, a.direction)
    step = jnp.where(drop, _longest(landscape, a.point.gradient, FIRST_ANGLE), step)
    return Ascent(
        a.point,
        direction,
        step,
        memory,
        jnp.where(drop, 0, a.rejected + 1),
        jnp.where(drop, a.idle + IDLE // 2, a.idle),
        a.iterations,
        a.status,
    )


def _longest(landscape, direction, angle: float) -> Scalar:
    """The step s ≤ 1 at which no token that counts moves further than `angle`."""
    counted = jnp.where(landscape.rho.weights > 0, jnp.sum(direction**2, axis=-1), 0)
    largest = jnp.sqrt(jnp.max(counted))
    return jnp.minimum(1, angle / jnp.maximum(largest, angle)).astype(direction.dtype)


def _flat(landscape, point: Point, stop: Stopping) -> Bool[Array, ""]:
    return landscape.norm(point.gradient) <= stop.gradient * landscape.norm(point.force)
