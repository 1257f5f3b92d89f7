"""Front door for exponentially long times: clusters that wait, meet and merge."""

import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from . import _check
from ._coarsen import Course, Setting, follow
from ._types import Array, Bool, ScalarLike, Tokens
from .coarsening import Coarsening as Coarsening
from .coarsening import CoarseningStatus as CoarseningStatus
from .coarsening import ExponentialFit as ExponentialFit
from .coarsening import Merge as Merge
from .coarsening import Plateau as Plateau
from .coarsening import exponential_fit as exponential_fit
from .dynamics import AbstractDynamics, MultiHead, Noisy, PeriNorm, PreNorm, refuse_values, require_dynamics
from .energy import bind_energy
from .kernels import AbstractKernel, terms
from .marginal import Marginal
from .trajectory import FlowError


def coarsen(
    dynamics: AbstractDynamics,
    x0: Tokens,
    rho: Marginal,
    t1: ScalarLike,
    rtol: ScalarLike = 1e-6,
    atol: ScalarLike = 1e-8,
    throw: bool = True,
    distance: ScalarLike | None = None,
    method: str = "auto",
    solver: diffrax.AbstractSolver | None = None,
    max_steps: int = 2048,
) -> Coarsening:
    """Follows ẋ = velocity(dynamics, x, rho) from x0 at time 0 over exponentially long times, to t1 or to one point.

    The clock is arc length, ds = √Σ w_i‖ẋ_i‖² dt, and log(1 + t/unit) is integrated beside the tokens: a plateau of e^{20}
    time units costs as many steps as the way its clusters go. Tokens closer than `distance` that must stay together (no
    labels at work, or equal ones) are joined at their mean; nothing stiff is left, and the steps of an explicit solver
    grow with the plateau. Joining is exact at distance 0 and moves later tokens by O(distance²).

    Args:
        dynamics: any dynamics on the sphere without noise. Large β: `ExpDot(beta, shift=1.0)`.
        x0: tokens (n, d), unit rows. float64 is advised: velocities below 64 roundings of the drift end the run.
        rho: labels and weights.
        t1: last time; the last row is the first step at or after it.
        rtol: local error of every token, and of log(1 + t/unit), below rtol + atol.
        atol: see `rtol`.
        throw: False leaves `status` to be read in place of `FlowError`.
        distance: joining distance, default 100 (rtol + atol), at least eps^0.4 (5e-7 in float64, 2e-3 in float32).
        method: how pairs are summed, as in `velocity`.
        solver: any adaptive diffrax solver, default `diffrax.Tsit5()`. Where labels forbid joining, steps stay as short
            as the contraction inside clusters asks. Gauge kernels with rotated values: run the plain kernel on Q_i x_i
            instead (theory.md 1.1).
        max_steps: also the length of the result, padded by NaN.

    Returns:
        A `Coarsening`.

    Raises:
        ValueError: when the input is bad.
        FlowError: when max_steps or a non-finite velocity end the run and `throw` is True.

    Source: theory.md 1.4 and 1.7; arXiv 2410.06833.

    Examples:
        >>> with jax.enable_x64(True):
        ...     x = mf.sphere.sample(jax.random.key(0), (6, 2))
        ...     run = mf.coarsen(mf.USA(mf.ExpDot(9.0, shift=1.0)), x, mf.Marginal.circle(6), 1e6)
        ...     mf.longtime.CoarseningStatus(int(run.status)).name, len(run.merges()) > 0
        ('ONE_CLUSTER', True)
    """
    require_dynamics(dynamics)
    x0 = _check.tokens(x0, "x0", unit=True)
    _check.same_length(x0, rho, "x0")
    dtype = x0.dtype
    _check.tolerance(rtol, dtype, "rtol")
    if isinstance(dynamics, (Noisy, PreNorm, PeriNorm)):
        raise ValueError(
            f"coarsen needs a dynamics on the sphere without noise, got {type(dynamics).__name__}: use mf.flow"
        )
    if _check.is_concrete(t1) and not float(t1) > 0:
        raise ValueError(f"t1={float(t1):g}: pass a time after 0, where the run starts")
    if throw:
        refuse_values(dynamics, dtype)
    if distance is None:  # well above the error of a position, so that tokens come so close at all
        distance = jnp.maximum(float(jnp.finfo(dtype).eps) ** 0.4, 100 * (rtol + atol))
    course = Course(diffrax.Tsit5() if solver is None else solver, max_steps)
    numbers = [jnp.asarray(value, dtype) for value in (t1, rtol + atol, distance)]
    run = _solve(course, dynamics, x0, rho, _labels_at_work(dynamics), method, *numbers)
    if throw and _check.is_concrete(run):
        if not bool(np.all(np.asarray(run.ok))):
            raise FlowError(run.explain())
    elif throw:
        run = eqx.error_if(run, ~run.ok, "coarsen did not finish: raise max_steps, or pass throw=False and read status")
    return run


@eqx.filter_jit
def _solve(course, dynamics, x0, rho, labels_at_work, method, t1, tolerance, distance) -> Coarsening:
    d, dtype = x0.shape[1], x0.dtype
    field = dynamics.bind(rho, d, dtype, method)
    weights = rho.weights.astype(dtype)
    joinable = _equal_labels(rho) if labels_at_work else None
    v0 = field(x0)
    finite = jnp.all(jnp.isfinite(v0))
    speed = jnp.sqrt(weights @ jnp.sum(v0 * v0, axis=-1))
    unit = 1 / jnp.where(finite & (speed > 0), speed, 1)
    setting = Setting(field, weights, joinable, distance, unit, jnp.arange(x0.shape[0]))
    functional, top = None, jnp.full((), jnp.nan, dtype)
    if dynamics.kernel is not None:
        functional = bind_energy(dynamics.kernel, rho, dynamics.prefix, d, dtype, method)
        top = _self_energy(dynamics.kernel, x0, rho, weights)

    def observe(x):
        energy = jnp.full((), jnp.nan, dtype) if functional is None else functional(x)
        return {"x": x, "energy": energy, "order": jnp.linalg.norm(weights @ x)}

    solution = follow(course, setting, x0, jnp.where(finite, t1, -1), tolerance, observe)
    # diffrax pads rows that were never written with infinity
    kept = jax.tree.map(lambda a: jnp.where(jnp.isfinite(a), a, jnp.nan), solution.ys)
    written = jnp.isfinite(kept["t"])
    last = jnp.maximum(jnp.sum(written) - 1, 0)
    status = _status(solution.result, finite, kept["t"][last] >= t1, kept["x"][last])
    steps = {
        "steps": solution.stats["num_steps"],
        "accepted": solution.stats["num_accepted_steps"],
        "rejected": solution.stats["num_rejected_steps"],
    }
    columns = (kept[name] for name in ("t", "x", "energy", "order", "speed"))
    return Coarsening(*columns, status, steps, weights, top, field.method)


def _status(result, finite, late, x):
    results, names = diffrax.RESULTS, CoarseningStatus
    code = jnp.full((), names.SOLVER_FAILED, jnp.int32)
    over = jnp.where(jnp.all(x == x[:1]), names.ONE_CLUSTER, jnp.where(late, names.FINISHED, names.FROZEN))
    code = jnp.where(result == results.event_occurred, over.astype(jnp.int32), code)
    code = jnp.where(result == results.max_steps_reached, jnp.asarray(names.MAX_STEPS, jnp.int32), code)
    return jnp.where(finite, code, jnp.asarray(names.NOT_FINITE, jnp.int32))


def _self_energy(kernel: AbstractKernel, x, rho, weights) -> Array:
    """½ Σ w_i h(z_i, z_i): the energy of one cluster, of a kernel that is constant on the diagonal."""
    return 0.5 * weights @ jax.vmap(lambda x, xi: kernel(x, xi, x, xi))(x, rho.labels)


def _labels_at_work(dynamics: AbstractDynamics) -> bool:
    """Whether labels can part tokens that sit in one point."""
    if getattr(dynamics, "causal", True) is not False:
        return True
    if isinstance(dynamics, MultiHead):
        return False
    found = terms(dynamics.kernel) if dynamics.kernel is not None else None
    return found is None or any(term.gauges or term.factors for term in found)


def _equal_labels(rho: Marginal) -> Bool[Array, "n n"]:
    def equal(leaf):
        same = leaf[:, None] == leaf[None, :]
        return jnp.all(same.reshape(*same.shape[:2], -1), axis=-1)

    return functools.reduce(jnp.logical_and, [equal(leaf) for leaf in jax.tree.leaves(rho.labels)])
