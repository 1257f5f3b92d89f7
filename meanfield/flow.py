"""Front door: integrates a dynamics."""

import sys
from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from . import _check
from ._integrate import Run, integrate
from ._types import Devices, ScalarLike, Times, Tokens
from .dynamics import AbstractDynamics, refuse_values, require_dynamics
from .dynamics.radial import PeriNorm, PreNorm
from .energy import bind_energy
from .interaction import place, plan, reverse_only
from .marginal import Marginal
from .trajectory import FlowError, FlowStatus, Trajectory, failure_message, unreached

SAVED = ("x", "energy", "order")
ADJOINTS = {
    "reverse": diffrax.RecursiveCheckpointAdjoint,
    "forward": diffrax.ForwardMode,
    "second order": diffrax.DirectAdjoint,
}


def flow(
    dynamics: AbstractDynamics,
    x0: Tokens | Trajectory,
    rho: Marginal,
    ts: Times,
    rtol: ScalarLike = 1e-6,
    atol: ScalarLike = 1e-8,
    throw: bool = True,
    progress: bool = False,
    method: str = "auto",
    devices: Devices = None,
    solver: diffrax.AbstractSolver | None = None,
    adjoint: str | diffrax.AbstractAdjoint = "reverse",
    max_steps: int = 16384,
    save: tuple[str, ...] = SAVED,
    stop: str | Callable | None = None,
    stop_tolerance: ScalarLike = 1e-6,
) -> Trajectory:
    """Integrates ẋ = velocity(dynamics, x, rho) from x0 at ts[0], and saves at ts (theory.md 1).

    Every step ends on the sphere: internal and saved states are unit to rounding. In every step the
    error of every token is kept below atol + rtol × (the farthest that a token moves in it), independently of coordinates:
    the error of a run is about rtol × the length of its path, and gradient flows do not lose energy near a steady state.

    Compiles once per shape and choice: parameters, labels, times and tolerances are arrays.

    Args:
        dynamics: `USA`, `SA`, or any `AbstractDynamics`.
        x0: tokens (n, d), unit rows; its dtype is the dtype of the run. Or a `Trajectory`, to go on from the time it
            reached.
        rho: labels and weights of the n tokens.
        ts: save times (T,), increasing, dimensionless.
        rtol: relative tolerance.
        atol: absolute tolerance.
        throw: False returns `status` and NaN rows in place of `FlowError`.
        progress: a progress bar, on a terminal only.
        method: how pairs are summed, as in `velocity`.
        devices: as in `velocity`.
        solver: any adaptive diffrax solver; default `diffrax.Tsit5()`.
        adjoint: "reverse" (checkpointed, least memory), "forward" (`jax.jvp`, `jax.jacfwd`), "second order" (any
            mixture of both, more memory), or a diffrax adjoint.
        max_steps: steps before the flow gives up.
        save: which of "x", "energy", "order" are kept.
        stop: "collapse" (order ≥ 1 − stop_tolerance), "steady" (every ‖ẋ_i‖ ≤ stop_tolerance) or a function (t, x) →
            bool, ends the flow early.

    Returns:
        A `Trajectory`.

    Raises:
        ValueError: when the dtype cannot resolve rtol.
        FlowError: when the last time is not reached and `throw` is True.

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> rho = mf.Marginal.circle(4)
        >>> traj = mf.flow(mf.USA(mf.ExpDot(1.0)), x, rho, jnp.linspace(0.0, 20.0, 5))
        >>> traj.x.shape, bool(traj.ok), f"{traj.order[-1]:.3f}"
        ((5, 4, 3), True, '1.000')
    """
    require_dynamics(dynamics)
    x0, t0, ts = _start(x0, ts, unit=not isinstance(dynamics, (PreNorm, PeriNorm)))
    _check.same_length(x0, rho, "x0")
    _check_choices(save, stop, max_steps)
    dtype = x0.dtype
    _check.tolerance(rtol, dtype, "rtol")
    if throw:
        refuse_values(dynamics, dtype)
    run = Run(
        diffrax.Tsit5() if solver is None else solver,
        _adjoint(adjoint),
        tuple(save),
        stop,
        max_steps,
        progress and sys.stdout.isatty(),
    )
    method = plan(method, devices)
    x0, rho = place((x0, rho), method)
    if isinstance(run.adjoint, diffrax.RecursiveCheckpointAdjoint):
        method = reverse_only(method)
    # bound before tracing: the length of an expansion is chosen from the values of parameters
    field = dynamics.bind(rho, x0.shape[1], dtype, method)
    functional = None
    if "energy" in run.save and dynamics.kernel is not None:
        functional = bind_energy(dynamics.kernel, rho, dynamics.prefix, x0.shape[1], dtype, method)
    numbers = [jnp.asarray(value, dtype) for value in (rtol, atol, stop_tolerance)]
    try:
        traj = _solve(run, field, functional, rho, x0, t0, ts, *numbers)
    except TypeError as error:
        if "forward-mode" in str(error):
            raise ValueError(
                "adjoint='reverse' has no forward mode: pass adjoint='forward' or 'second order'"
            ) from error
        raise
    return _raise_failure(traj) if throw else traj


@eqx.filter_jit
def _solve(run, field, functional, rho, x0, t0, ts, rtol, atol, stop_tolerance) -> Trajectory:
    weights = rho.weights.astype(x0.dtype)
    solution, finite = integrate(run, field, functional, weights, x0, t0, ts, rtol, atol, stop_tolerance)
    (_, (t,)), (kept, (final,)) = solution.ts, solution.ys
    status = _status(solution.result, finite)
    # an event or a failure leaves later rows unwritten; the first row is always reached
    reached = (ts <= t) & (finite | (ts <= t0))
    kept = {name: unreached(value, ts, reached) for name, value in kept.items()}
    steps = {
        "steps": solution.stats["num_steps"],
        "accepted": solution.stats["num_accepted_steps"],
        "rejected": solution.stats["num_rejected_steps"],
    }
    x, energy, order = (kept.get(name) for name in SAVED)
    return Trajectory(
        ts, x, energy, order, t, final, status, steps, rho.labels, weights, field.method, kept.get("radius")
    )


def _status(result, finite):
    results = diffrax.RESULTS
    status = jnp.full((), FlowStatus.SOLVER_FAILED, jnp.int32)
    for known, code in (
        (results.successful, FlowStatus.FINISHED),
        (results.event_occurred, FlowStatus.STOPPED),
        (results.max_steps_reached, FlowStatus.MAX_STEPS),
    ):
        status = jnp.where(result == known, jnp.asarray(code, jnp.int32), status)
    return jnp.where(finite, status, jnp.asarray(FlowStatus.NOT_FINITE, jnp.int32))


def _raise_failure(traj: Trajectory) -> Trajectory:
    if _check.is_concrete(traj):
        if not np.all(np.asarray(traj.status) <= FlowStatus.STOPPED):
            raise FlowError(traj.explain())
        return traj
    return eqx.error_if(traj, ~traj.ok, failure_message())


def _start(x0, ts, unit):
    """Tokens, the time they are at, and the save times, all in the dtype of the tokens."""
    if isinstance(x0, Trajectory):
        start = x0.t
        x0 = x0.final
        if _check.is_concrete(x0) and not np.isfinite(np.asarray(x0)).all():
            raise ValueError("x0 is a trajectory whose final state is not finite: start from an earlier state")
    else:
        start, x0 = None, _check.tokens(x0, "x0", unit=unit)
    ts = jnp.asarray(ts) if isinstance(ts, jax.Array) else np.asarray(ts)
    _check.times(ts, None if start is None or not _check.is_concrete(start) else float(start))
    ts = jnp.asarray(ts, x0.dtype)
    return x0, ts[0] if start is None else start, ts


def _check_choices(save, stop, max_steps) -> None:
    unknown = [name for name in save if name not in SAVED]
    if unknown or not save:
        raise ValueError(f"save={tuple(save)}: name at least one of {SAVED}")
    if not (stop in (None, "collapse", "steady") or callable(stop)):
        raise ValueError(f"stop={stop!r} is unknown: use 'collapse', 'steady' or a function (t, x) → bool")
    if not isinstance(max_steps, int) or max_steps < 1:
        raise ValueError(f"max_steps={max_steps!r}: pass a positive integer")


def _adjoint(adjoint) -> diffrax.AbstractAdjoint:
    if isinstance(adjoint, diffrax.AbstractAdjoint):
        return adjoint
    if adjoint not in ADJOINTS:
        raise ValueError(
            f"adjoint={adjoint!r} is unknown: use one of {', '.join(map(repr, ADJOINTS))} or a diffrax adjoint"
        )
    return ADJOINTS[adjoint]()
