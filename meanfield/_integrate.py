"""The engine of `flow`: a diffrax solver kept on the sphere, and a tolerance that every token meets."""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from . import sphere
from ._types import Array, Float, Scalar
from ._wrapped import AbstractTransparentSolver
from .dynamics import Landing, NoisyField, RadialField, Splitting, retract, rows_to_sphere


class OnSphere(AbstractTransparentSolver):
    """Any diffrax solver with its result projected to (S^{d-1})^n after every step: x ← x/‖x‖ row by row.

    Projection moves a point by its own local error, so the order is the solver's (Hairer, Lubich, Wanner, Geometric
    Numerical Integration, IV.4). Local errors are kept below atol + rtol × (distance moved in the step): the error of a
    run is rtol × the length of its path, and near a steady state steps stay short enough that the energy never falls.
    """

    solver: diffrax.AbstractSolver
    rtol: Scalar
    atol: Scalar

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """One step of the wrapped solver, projected."""
        y1, error, dense, state, result = self.solver.step(terms, t0, t1, y0, args, solver_state, made_jump)
        return retract(args, y1), self._per_distance(error, y0, y1), dense, state, result

    def _per_distance(self, error, y0, y1):
        """The error in units in which atol + rtol stands for atol + rtol × (the distance moved in this step)."""
        if error is None:
            return None
        moved = jax.lax.stop_gradient(worst_token(y1 - y0))
        # below rounding there is nothing to control
        floor = jnp.maximum(self.atol, 8 * jnp.finfo(y0.dtype).eps)
        return error * ((self.atol + self.rtol) / (floor + self.rtol * moved))


def worst_token(error: Float[Array, "n d"]) -> Scalar:
    """max_i ‖e_i‖ with a finite gradient at 0: no token hides behind the others, no coordinate axis is special.

    Infinite where an entry is not finite, so that such a step is rejected.
    """
    square = jnp.max(jnp.sum(error * error, axis=-1))
    positive = square > 0
    size = jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)
    return jnp.where(jnp.isfinite(square), size, jnp.inf)


def controller(rtol: Scalar, atol: Scalar) -> diffrax.PIDController:
    """Steps so that every token's local error, in the units of `OnSphere`, is below atol + rtol."""
    return diffrax.PIDController(rtol=jnp.zeros_like(rtol), atol=rtol + atol, norm=worst_token)


def right_hand_side(t, x, field):
    """ẋ = field(x/‖x‖) (radii that are free stay): the field continued radially, so that stages off the sphere cannot overflow, and the last stage of
    a step is the first of the next although the state was projected between them.
    """
    return field(retract(field, x))


def observer(save: tuple[str, ...], functional: Callable | None, weights: Array) -> Callable:
    """What is kept at a save time: tokens (unit to rounding), energy, order parameter."""

    def observe(t, y, field):
        x = rows_to_sphere(y)
        kept = {}
        if "x" in save:
            kept["x"] = x
        if "energy" in save and functional is not None:
            kept["energy"] = functional(x)
        if "order" in save:
            kept["order"] = order_parameter(x, weights)
        if isinstance(field, RadialField):
            kept["radius"] = sphere.safe_norm(y)[:, 0]
        return kept

    return observe


def order_parameter(x: Float[Array, "n d"], weights: Float[Array, " n"]) -> Scalar:
    """‖Σ_i w_i x_i‖ with gradient 0 at 0."""
    return sphere.safe_norm(weights @ x)[..., 0]


def stopping(stop: str | Callable | None, tolerance: Scalar, weights: Array) -> diffrax.Event | None:
    """The event that ends a flow early: all tokens in one point, no token moving, or the user's condition."""
    if stop is None:
        return None

    def condition(t, y, field, **kwargs):
        if stop == "collapse":
            return order_parameter(rows_to_sphere(y), weights) >= 1 - tolerance
        if stop == "steady":
            return worst_token(field(y)) <= tolerance
        return stop(t, y)

    return diffrax.Event(condition)


def _differentiable(solver: diffrax.AbstractSolver, adjoint: diffrax.AbstractAdjoint) -> diffrax.AbstractSolver:
    """`solver` with its stages in a loop that the adjoint can differentiate (diffrax sets this on bare solvers only)."""
    kind = {diffrax.ForwardMode: "lax", diffrax.DirectAdjoint: "bounded"}.get(type(adjoint))
    if kind is None or getattr(solver, "scan_kind", kind) is not None:
        return solver
    return eqx.tree_at(lambda s: s.scan_kind, solver, kind, is_leaf=lambda node: node is None)


class Run(eqx.Module):
    """The static choices of one flow."""

    solver: diffrax.AbstractSolver
    adjoint: diffrax.AbstractAdjoint
    save: tuple[str, ...] = eqx.field(static=True)
    stop: str | Callable | None = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)
    progress: bool = eqx.field(static=True)


def integrate(run: Run, field, functional, weights, x0, t0, ts, rtol, atol, stop_tolerance):
    """The diffrax solution from t0 over the times ts, not raising, and whether the first velocity was finite."""
    # one non-finite token would make the controller reject steps for ever
    finite = jnp.all(jnp.isfinite(jax.lax.stop_gradient(field(x0))))
    end = jnp.where(finite, ts[-1], t0)
    adaptive = isinstance(run.solver, diffrax.AbstractAdaptiveSolver)
    if isinstance(field, NoisyField):
        solver, steps = Splitting(), Landing(field.step, ts)
    elif adaptive:
        solver, steps = OnSphere(_differentiable(run.solver, run.adjoint), rtol, atol), controller(rtol, atol)
    else:
        raise ValueError(f"solver={run.solver} has no error estimate: pass an adaptive one, e.g. diffrax.Tsit5()")
    observe = observer(run.save, functional, weights)
    saves = diffrax.SubSaveAt(ts=jnp.clip(ts, t0, end), fn=observe)
    last = diffrax.SubSaveAt(t1=True)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(right_hand_side),
        solver,
        t0,
        end,
        None,
        x0,
        args=field,
        saveat=diffrax.SaveAt(subs=(saves, last)),
        stepsize_controller=steps,
        adjoint=run.adjoint,
        event=stopping(run.stop, stop_tolerance, weights),
        max_steps=run.max_steps,
        throw=False,
        progress_meter=diffrax.TqdmProgressMeter() if run.progress else diffrax.NoProgressMeter(),
    )
    return solution, finite
