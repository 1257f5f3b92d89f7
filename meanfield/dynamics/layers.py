"""Discrete residual layers: what a transformer does where the flow has a continuous depth."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import _check
from .._products import matmul
from .._types import AnyArray, Array, Float, Tokens
from ..energy import bind_energy
from ..interaction.bound import visibility
from ..interaction.pairs import Causal, over_pairs
from ..kernels import log_slope
from ..marginal import Marginal
from ..trajectory import FlowStatus, Trajectory
from .base import AbstractDynamics, drift_field, require_dynamics, retract
from .refuse import refuse_values
from .sa import SoftmaxField


def layers(
    dynamics: AbstractDynamics,
    x0: Tokens,
    rho: Marginal,
    mixing: Float[AnyArray, " T"],
    method: str = "auto",
) -> Trajectory:
    """x ← normalise((1 − λ_t)x + λ_t A(x)), t = 1 … T: residual layers on normalised tokens (theory.md 4).

    An Euler step of the flow with step λ_t, to first order in λ; with `SA`, A(x) = Σ_j a_ij x_j and the layer before
    normalising is propagation's R^(t) = (1 − λ_t)I + λ_t A^(t) (`attention` gives A^(t)).

    Args:
        dynamics: `USA`, `SA`, `MultiHead`, or any with a drift in R^d.
        x0: tokens (n, d), unit rows.
        rho: labels and weights of the tokens.
        mixing: λ (T,), each in [0, 1].
        method: how pairs are summed, as in `velocity`.

    Returns:
        A `Trajectory` of T+1 states whose times are Λ_t = Σ_{s≤t} λ_s, the flow time that the layers approximate.

    Raises:
        ValueError: when tokens are bad, or mixing is outside [0, 1].

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> traj = mf.layers(mf.SA(mf.ExpDot(1.0)), x, mf.Marginal.positions(4), np.full(6, 0.1, np.float32))
        >>> traj.x.shape, f"{traj.t:.1f}"
        ((7, 4, 3), '0.6')
    """
    require_dynamics(dynamics)
    x0 = _check.tokens(x0, "x0", unit=True)
    _check.same_length(x0, rho, "x0")
    mixing = jnp.asarray(_check.as_array(mixing, "mixing"), x0.dtype)
    if mixing.ndim != 1:
        raise ValueError(f"mixing has shape {mixing.shape}: pass one number per layer, shape (T,)")
    if _check.is_concrete(mixing) and not _between_0_and_1(np.asarray(mixing)):
        raise ValueError(f"mixing={np.asarray(mixing)}: every λ_t must lie in [0, 1]")
    refuse_values(dynamics, x0.dtype)
    return _run(dynamics, x0, rho, mixing, method)


def _between_0_and_1(values: np.ndarray) -> bool:
    return bool(((values >= 0) & (values <= 1)).all())


@eqx.filter_jit
def _run(dynamics, x0, rho, mixing, method) -> Trajectory:
    d, dtype = x0.shape[1], x0.dtype
    field = drift_field(dynamics, rho, d, dtype, method)
    weights = rho.weights.astype(dtype)
    functional = (
        None if dynamics.kernel is None else bind_energy(dynamics.kernel, rho, dynamics.prefix, d, dtype, method)
    )

    def observe(x):
        return x, None if functional is None else functional(x), jnp.linalg.norm(weights @ x)

    def layer(x, rate):
        x = retract(field, (1 - rate) * x + rate * field.drift(x))
        return x, observe(x)

    final, later = jax.lax.scan(layer, x0, mixing)
    x, energy, order = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), observe(x0), later)
    times = jnp.concatenate([jnp.zeros(1, dtype), jnp.cumsum(mixing)])
    status = jnp.where(jnp.all(jnp.isfinite(final)), FlowStatus.FINISHED, FlowStatus.NOT_FINITE).astype(jnp.int32)
    count = jnp.asarray(mixing.shape[0], jnp.int32)
    steps = {"steps": count, "accepted": count, "rejected": jnp.zeros_like(count)}
    return Trajectory(times, x, energy, order, times[-1], final, status, steps, rho.labels, weights, field.method)


def attention(dynamics: AbstractDynamics, x: Tokens, rho: Marginal) -> Float[Array, "n n"]:
    """The attention matrix A (n, n) of `SA` at tokens x: a_ij ∝ w_j ∂h/∂t over visible j, rows summing to 1.

    Without gauges and prefix, A(x) = A x: the A^(t) of residual-aware propagation (theory.md 3 and 4). An n×n array by
    its nature: for few thousand tokens. Raises `ValueError` for dynamics that are not a softmax, and for a prefix, whose
    columns are not tokens.

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> a = mf.attention(mf.SA(mf.ExpDot(1.0), causal=True), x, mf.Marginal.positions(4))
        >>> print(np.round(a.sum(axis=1), 4), float(a[0, 0]))
        [1. 1. 1. 1.] 1.0
    """
    require_dynamics(dynamics)
    x = _check.tokens(x)
    _check.same_length(x, rho)
    field = dynamics.bind(rho, x.shape[1], x.dtype, "dense")
    if not isinstance(field, SoftmaxField):
        raise ValueError(f"attention needs a softmax, mf.SA, got {type(dynamics).__name__}")
    if field.prefix is not None:
        raise ValueError("attention of a dynamics with a prefix is not a matrix over tokens: drop the prefix")
    return _weights(field, x, visibility(dynamics.causal))


def _weights(field: SoftmaxField, x, visible: Causal | None) -> Float[Array, "n n"]:
    term, rho = field.term, field.rho
    q = term.gauge(rho.labels, x)
    logits = log_slope(term.zonal, matmul(q, q.T))
    logits += over_pairs(lambda xi, zeta: term.log_factor(xi, zeta, x.dtype), rho.labels, rho.labels)
    positive = rho.weights > 0
    logits += jnp.where(positive, jnp.log(jnp.where(positive, rho.weights, 1)), -jnp.inf)
    if visible is not None:
        logits = jnp.where(over_pairs(visible, rho.labels, rho.labels), logits, -jnp.inf)
    return jax.nn.softmax(logits, axis=1)
