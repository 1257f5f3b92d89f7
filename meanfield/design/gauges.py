"""Learnable gauges as flax modules: ξ ↦ Q_ξ ∈ SO(d), orthogonal for all parameters."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import linen as nn

from .._types import Array, Float, Label

MAPS = ("expm", "cayley")


def generator(entries: Float[Array, " m"], dim: int) -> Float[Array, "d d"]:
    """The skew matrix A ∈ so(d), A_ij = −A_ji, with `entries` (d(d−1)/2,) above its diagonal, row by row."""
    upper = jnp.zeros((dim, dim), entries.dtype).at[jnp.triu_indices(dim, 1)].set(entries)
    return upper - upper.T


def rotation(skew: Float[Array, "d d"], map: str = "expm") -> Float[Array, "d d"]:
    """Q ∈ SO(d) of a skew matrix A: e^A ("expm", onto), or (I − A/2)⁻¹(I + A/2) ("cayley", cheaper, misses angle π).

    Raises `ValueError` for another map.

    Examples:
        >>> skew = jnp.asarray([[0.0, -np.pi / 2], [np.pi / 2, 0.0]])
        >>> print(np.round(mf.design.rotation(skew), 3))
        [[ 0. -1.]
         [ 1.  0.]]
    """
    if map == "expm":
        return jax.scipy.linalg.expm(skew)
    if map != "cayley":
        raise ValueError(f"map={map!r}: one of {MAPS}")
    half, eye = skew / 2, jnp.eye(skew.shape[0], dtype=skew.dtype)
    return jnp.linalg.solve(eye - half, eye + half)


class MLPGauge(nn.Module):
    """Q_ξ = map(A(ξ)), A(ξ) ∈ so(d) a multilayer perceptron of the label's features.

    Features of a scalar or vector label: cos kξ and sin kξ, k = 1 … `harmonics`, for periodic labels, or ξ itself where
    `harmonics` is 0. Use `mf.Gauge(inner, module.bind(variables))` with `variables = module.init(key, label)`.

    - `dim`: d. `width`, `depth`: hidden layers. `map`: see `rotation`.

    Examples:
        >>> module = mf.design.MLPGauge(dim=3, width=4, harmonics=1)
        >>> variables = module.init(jax.random.key(0), 0.5)
        >>> q = module.bind(variables)(0.5)
        >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
        True
    """

    dim: int
    width: int = 64
    depth: int = 2
    harmonics: int = 0
    map: str = "expm"
    activation: Callable = nn.gelu

    @nn.compact
    def __call__(self, xi: Label) -> Float[Array, "d d"]:
        x = jnp.atleast_1d(jnp.asarray(xi)).ravel()
        x = x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.result_type(float))
        if self.harmonics:
            angles = jnp.arange(1, self.harmonics + 1, dtype=x.dtype)[:, None] * x
            x = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)]).ravel()
        for _ in range(self.depth):
            x = self.activation(nn.Dense(self.width, param_dtype=x.dtype)(x))
        entries = nn.Dense(self.dim * (self.dim - 1) // 2, param_dtype=x.dtype)(x)
        return rotation(generator(entries, self.dim), self.map)


class TableGauge(nn.Module):
    """Q_ξ = map(A_ξ), a free A_ξ ∈ so(d) for each integer label ξ = 0 … `size`−1 (as `mf.Marginal.positions`).

    Examples:
        >>> module = mf.design.TableGauge(size=4, dim=3)
        >>> variables = module.init(jax.random.key(0), 1)
        >>> q = module.bind(variables)(1)
        >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
        True
    """

    size: int
    dim: int
    scale: float = 0.1
    map: str = "expm"

    @nn.compact
    def __call__(self, xi: Label) -> Float[Array, "d d"]:
        shape = (self.size, self.dim * (self.dim - 1) // 2)
        table = self.param("table", nn.initializers.normal(self.scale), shape, jnp.result_type(float))
        return rotation(generator(table[jnp.asarray(xi)], self.dim), self.map)


class MultiRoPE(nn.Module):
    """Q_ξ = R_ξ B: RoPE of every plane (2k, 2k+1) by ω_k ξ, after a learned change of basis B ∈ SO(d).

    As the relative rotation is Q_ξᵀQ_ζ = Bᵀ R_{ζ−ξ} B, this is any one-parameter group e^{ξ G}, G ∈ so(d): generalised
    RoPE with one generator. `frequencies`: initial ω, one for each plane, d//2 at most.

    Examples:
        >>> module = mf.design.MultiRoPE(dim=3, frequencies=(1.0,))
        >>> variables = module.init(jax.random.key(0), 0.5)
        >>> q = module.bind(variables)(0.5)
        >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
        True
    """

    dim: int
    frequencies: tuple[float, ...]
    scale: float = 0.1

    @nn.compact
    def __call__(self, xi: Label) -> Float[Array, "d d"]:
        dtype = jnp.result_type(float)
        count = len(self.frequencies)
        if not 1 <= count <= self.dim // 2:
            raise ValueError(f"frequencies has {count} entries for dim={self.dim}: give 1 to {self.dim // 2}")
        omega = self.param("frequencies", lambda key: jnp.asarray(self.frequencies, dtype))
        entries = self.param("basis", nn.initializers.normal(self.scale), (self.dim * (self.dim - 1) // 2,), dtype)
        angle = omega * jnp.asarray(xi).astype(dtype)
        even = 2 * jnp.arange(count)
        c, s = jnp.cos(angle), jnp.sin(angle)
        turn = jnp.eye(self.dim, dtype=dtype).at[even, even].set(c).at[even + 1, even + 1].set(c)
        turn = turn.at[even + 1, even].set(s).at[even, even + 1].set(-s)
        return turn @ rotation(generator(entries, self.dim))
