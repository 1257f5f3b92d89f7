"""Transitions R_t of theory.md: how one layer passes influence on, seen from its attention, norms and weights.

Each takes a row p (B, n) to p R_t. Only the last row of R_T … R_1 is asked for, so a prediction is carried down through the
layers with the gradient and no (n, n) product is ever kept.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._types import Array, Bool, Float, Int
from .block import Trace
from .jacobian import attention_jacobian, mlp_growth
from .spec import Spec
from .statistics import masked_mean, safe_divide, safe_norm
from .weights import Params


class Layer(NamedTuple):
    """One layer as a transition sees it: its spec, parameters, entering stream x, trace, mask and index."""

    spec: Spec
    params: Params
    x: Float[Array, "B n D"]
    trace: Trace
    mask: Bool[Array, "B n"]
    depth: Int[Array, ""]


Row = Float[Array, "B n"]
_ROWS = 16  # rows of ALTI at a time: each holds a (n, D) array


def mixing(layer: Layer, p: Row) -> Row:
    """(1 − λ) I + λ Ā, λ = mean ‖a‖/(‖x‖+‖a‖) ([PB], arXiv 2602.16837)."""
    nx, na = safe_norm(layer.x), safe_norm(layer.trace.a)
    return _residual(masked_mean(safe_divide(na, nx + na), layer.mask), p, attention_only(layer, p))


def attention_only(layer: Layer, p: Row) -> Row:
    """Ā, the mean over heads."""
    return jnp.einsum("bi,bij->bj", p, layer.trace.heads.mean)


def half(layer: Layer, p: Row) -> Row:
    """½ I + ½ Ā, the attention rollout (arXiv 2005.00928)."""
    return (p + attention_only(layer, p)) / 2


def energy(layer: Layer, p: Row) -> Row:
    """(1 − ε) I + ε rn(Ā_ij / ‖x_j‖²), ε = mean ‖a‖²/(‖x‖²+‖a‖²): branches combine in quadrature."""
    nx, na = safe_norm(layer.x) ** 2, safe_norm(layer.trace.a) ** 2
    return _residual(masked_mean(safe_divide(na, nx + na), layer.mask), p, _normalised(layer.trace.heads.mean, nx, p))


def energy2(layer: Layer, p: Row) -> Row:
    """(1 − ε_m) I + ε_m rn(Σ_h (A^h_ij)² / ‖x_j‖²), ε_m with the MLP in the denominator; √ of the row is compared."""
    nx, na, nm = (safe_norm(z) ** 2 for z in (layer.x, layer.trace.a, layer.trace.m))
    return _residual(
        masked_mean(safe_divide(na, nx + na + nm), layer.mask), p, _normalised(layer.trace.heads.squares, nx, p)
    )


def backprop(layer: Layer, p: Row) -> Row:
    """diag(g)(I + E + K + diag Q): expected squared norms through values, keys, queries and MLP; √ of the row is compared.

    The row is rescaled to sum 1 in every layer (only its shape is used), so that deep models do not overflow.
    """
    pairs, own = attention_jacobian(layer.spec, layer.params, layer.x, layer.trace, layer.depth)
    growth = mlp_growth(layer.spec, layer.params, layer.trace.middle)
    parallel = layer.spec.wiring.startswith("parallel")
    scaled = p if parallel else p * growth
    row = scaled * (1 + own) + jnp.einsum("bi,bij->bj", scaled, pairs)
    row = row + p * (growth - 1) if parallel else row
    return safe_divide(row, jnp.broadcast_to(jnp.sum(row, axis=1, keepdims=True), row.shape))


def alti(layer: Layer, p: Row) -> Row:
    """ALTI-L1 (arXiv 2203.04212, 2305.12535): c_ij ∝ max(0, ‖y_i‖₁ − ‖y_i − T_i(x_j)‖₁), T_i(x_j) = Σ_h A^h_ij W_O^h v_j^h + δ_ij x_i."""
    spec, trace = layer.spec, layer.trace
    out = layer.params["attention"]["out"]["weight"].astype(p.dtype).reshape(spec.dim, spec.heads, spec.head_dim)
    y, u = trace.base + trace.a, jnp.einsum("bjha,dha->bjhd", trace.heads.v, out)

    def row(i: Int[Array, ""]) -> Float[Array, "B n"]:
        share = jnp.einsum("bhj,bjhd->bjd", trace.heads.probs[:, :, i], u).at[:, i].add(trace.base[:, i])
        target = y[:, i][:, None]
        closer = jnp.sum(jnp.abs(target), axis=-1) - jnp.sum(jnp.abs(target - share), axis=-1)
        return jnp.maximum(closer, 0)

    n = layer.x.shape[1]
    contributions = jnp.moveaxis(jax.lax.map(row, jnp.arange(n), batch_size=_ROWS), 0, 1)
    seen = jnp.any(trace.heads.probs > 0, axis=1) | jnp.eye(n, dtype=bool)
    contributions = jnp.where(seen, contributions, 0)
    total = jnp.sum(contributions, axis=-1)
    own = jnp.where(total == 0, p, 0)  # a row without any contribution stays where it is
    return own + jnp.einsum("bi,bij->bj", safe_divide(p, total), contributions)


TRANSITIONS: dict[str, Callable[[Layer, Row], Row]] = {
    "mixing": mixing,
    "energy": energy,
    "energy2": energy2,
    "backprop": backprop,
    "attention-only": attention_only,
    "half": half,
    "alti": alti,
}
SQUARED = ("energy2", "backprop")


def _residual(weight: Float[Array, " B"], kept: Row, moved: Row) -> Row:
    return (1 - weight)[:, None] * kept + weight[:, None] * moved


def _normalised(matrix: Float[Array, "B n n"], square_norms: Float[Array, "B n"], p: Row) -> Row:
    # p rn(M_ij / s_j) without forming the normalised matrix.
    inverse = safe_divide(jnp.ones_like(square_norms), square_norms)
    total = jnp.einsum("bij,bj->bi", matrix, inverse)
    return jnp.einsum("bi,bij->bj", safe_divide(p, total), matrix) * inverse
