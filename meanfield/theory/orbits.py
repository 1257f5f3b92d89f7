"""Exact maximisers of gauge kernels: orbits, and gauges that realise given targets (theory.md 2)."""

import jax
import jax.numpy as jnp

from .. import _check, sphere
from .._callable import cast
from .._types import AnyArray, Array, Float
from ..kernels import Dot, RoPE
from ..marginal import Marginal


def rope_orbit(u: Float[AnyArray, " d"], rho: Marginal, frequencies: Float[AnyArray, " k"]) -> Float[Array, "n d"]:
    """R_ξᵀ u for every label: the maximisers of `RoPE(φ, frequencies)` with increasing φ, of energy ½φ(1).

    `u` (d,) unit, `rho` with scalar labels, `frequencies` (k,), k ≤ d//2. Returns (n, d). Source: arXiv 2605.30229.

    Examples:
        >>> x = mf.theory.rope_orbit(np.float32([1, 0]), mf.Marginal.circle(4), np.float32([1]))
        >>> print(f"{mf.energy(mf.RoPE(mf.Dot(), jnp.ones(1)), x, mf.Marginal.circle(4)):.4f}")
        0.5000
    """
    u = _check.as_array(u, "u")
    rope = cast(RoPE(Dot(), jnp.asarray(frequencies)), u.dtype)
    return jax.vmap(lambda xi: rope.unrotate(xi, u))(cast(rho.labels, u.dtype))


def realize_gauge(targets: Float[AnyArray, "n d"], u: Float[AnyArray, " e"]) -> Float[Array, "n d d"]:
    """Orthogonal Q_i with Q_i f_i = u for unit targets f_i: then x_i = f_i maximises `Gauge(φ, i ↦ Q_i)`.

    Q = I − 2vvᵀ/‖v‖² with v = f − u where ⟨f, u⟩ ≤ 0 and Q = 2vvᵀ/‖v‖² − I with v = f + u elsewhere, so that ‖v‖² ≥ 2:
    defined and accurate at f = ±u. `targets` (n, d), `u` (d,). Returns (n, d, d). Raises `ValueError` for rows that are
    not unit vectors. Source: arXiv 2605.30229.

    Examples:
        >>> f, u = np.float32([[1, 0], [0, 1]]), np.float32([0, 1])
        >>> q = mf.theory.realize_gauge(f, u)
        >>> print(jnp.einsum("nij,nj->ni", q, f))
        [[0. 1.]
         [0. 1.]]
    """
    targets = _check.tokens(targets, "targets", unit=True)
    u = _check.tokens(_check.as_array(u, "u")[None], "u", unit=True)[0].astype(targets.dtype)
    if u.shape[0] != targets.shape[1]:
        raise ValueError(f"u has {u.shape[0]} coordinates but targets have {targets.shape[1]}: use one dimension")
    return jax.vmap(lambda f: align(f, u))(sphere.normalize(targets))


def align(f: Float[AnyArray, " d"], u: Float[AnyArray, " d"]) -> Float[Array, "d d"]:
    """The orthogonal Q of `realize_gauge` for one unit f: Q f = u.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> q = mf.theory.align(jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0]))
        >>> print(q @ jnp.asarray([1.0, 0.0]))
        [0. 1.]
    """
    f, u = jnp.asarray(f), jnp.asarray(u)
    acute = jnp.dot(f, u) > 0
    v = f + jnp.where(acute, u, -u)
    reflection = jnp.eye(len(u), dtype=f.dtype) - 2 * jnp.outer(v, v) / jnp.dot(v, v)
    return jnp.where(acute, -reflection, reflection)
