"""Expected squared Jacobian norms of a block's branches, from its weights and what it saw (theory.md 3, `backprop`).

Symbols: u_j^h = W_O^h v_j^h; M_h = W_O^h W_V^h diag γ₁; r_j what the norm divides by; d the model width, d_h the head's. All
products of M_h go through (d_h, d_h) Gram matrices; no (d, d) matrix of a head is formed.
"""

import jax
import jax.numpy as jnp

from .._types import Array, Float, Int
from .block import Trace
from .layers import activation, centred, norm_scale
from .spec import Spec
from .weights import Params

GRAM_WIDTH = 8192  # wider MLPs are probed instead of laid out as (hidden, hidden)
PROBES = 8


def attention_jacobian(
    spec: Spec, params: Params, x: Float[Array, "B n D"], trace: Trace, depth: Int[Array, ""]
) -> tuple[Float[Array, "B n n"], Float[Array, "B n"]]:
    """(E_ij + K_ij, Q_i): squared norms through values, through keys, and through the own query."""
    q, k, v, probs = trace.heads[:4]
    maps = _HeadMaps(spec, params, x.dtype)
    r2 = norm_scale(spec, x) ** 2
    scale2 = spec.scale**2 / ((depth.astype(x.dtype) + 1) ** 2 if spec.scale_by_depth else 1)
    temperature = scale2 / (spec.head_dim * spec.dim)

    values = jnp.sum(probs * jnp.einsum("hk,bkij->bhij", maps.inner, probs), axis=1)
    mean_v = jnp.einsum("bhij,bjha->bhia", probs, v)
    gram_v = jnp.einsum("bjha,hac->bhjc", v, maps.gram)
    square = jnp.einsum("bhjc,bjhc->bhj", gram_v, v)
    mean_square = jnp.einsum("bhia,hac,bhic->bhi", mean_v, maps.gram, mean_v)
    spread = square[:, :, None] - 2 * jnp.einsum("bhia,bhja->bhij", mean_v, gram_v) + mean_square[..., None]
    through_keys = jnp.sum(q**2, axis=-1).swapaxes(1, 2) * maps.key[None, :, None] * temperature
    keys = jnp.sum(probs**2 * jnp.maximum(spread, 0) * through_keys[..., None], axis=1)

    own = jnp.einsum("bhii,h->bi", probs, maps.trace) * 2 / (spec.dim * jnp.sqrt(r2))
    queries = jnp.einsum("bhi,h->bi", _covariance(probs, v, k, maps.gram), maps.query) * temperature / r2
    return (values + keys) / r2[:, None, :], own + queries


class _HeadMaps:
    """Per head: gram W_OᵀW_O, trace tr M_h, inner ⟨M_h, M_h'⟩/d, and ‖W_Q diag γ₁‖²_F, ‖W_K diag γ₁‖²_F."""

    def __init__(self, spec: Spec, params: Params, dtype):
        attention = params["attention"]
        gain = params["norm1"]["scale"].astype(dtype)

        def rows(name: str, heads: int) -> Float[Array, "H h D"]:
            weight = attention[name]["weight"].astype(dtype) * gain
            return jnp.repeat(weight.reshape(heads, spec.head_dim, spec.dim), spec.heads // heads, axis=0)

        out = attention["out"]["weight"].astype(dtype).reshape(spec.dim, spec.heads, spec.head_dim)
        value = rows("value", spec.kv_heads)
        outs = jnp.einsum("dha,dkc->hkac", out, out)
        self.gram = jnp.einsum("hhac->hac", outs)
        self.inner = jnp.einsum("hkac,hkac->hk", outs, jnp.einsum("had,kcd->hkac", value, value)) / spec.dim
        self.trace = jnp.einsum("dha,had->h", out, value)
        self.query = jnp.sum(rows("query", spec.heads) ** 2, axis=(1, 2))
        self.key = jnp.sum(rows("key", spec.kv_heads) ** 2, axis=(1, 2))


def _covariance(
    probs: Float[Array, "B H n n"], v: Float[Array, "B n H h"], k: Float[Array, "B n H h"], gram: Float[Array, "H h h"]
) -> Float[Array, "B H n"]:
    """‖X_i‖²_F, X_i = Σ_j A_ij (u_j − ū_i)(k_j − k̄_i)ᵀ, as a form in A_i: no (d, d_h) matrix per token.

    ‖X_i‖² = A_iᵀ(U∘K)A_i − 2 Σ_j A_ij ⟨u_j, ū_i⟩⟨k_j, k̄_i⟩ + ‖ū_i‖²‖k̄_i‖², U and K the Gram matrices of u and k. X does not change
    when all u or all k are shifted, so their means are taken off first, which keeps the differences exact.
    """
    v, k = (z - jnp.mean(z, axis=1, keepdims=True) for z in (v, k))
    mean_v, mean_k = (jnp.einsum("bhij,bjha->bhia", probs, z) for z in (v, k))
    wide = jnp.einsum("bjha,hac->bjhc", v, gram)
    values, keys = (jnp.einsum("biha,bjha->bhij", one, two) for one, two in ((wide, v), (k, k)))
    form = jnp.sum(jnp.einsum("bhij,bhjl->bhil", probs, values * keys) * probs, axis=-1)
    to_mean = jnp.einsum("bhia,bjha->bhij", mean_v, wide) * jnp.einsum("bhia,bjha->bhij", mean_k, k)
    squares = jnp.einsum("bhia,hac,bhic->bhi", mean_v, gram, mean_v) * jnp.sum(mean_k**2, axis=-1)
    return jnp.maximum(form - 2 * jnp.sum(probs * to_mean, axis=-1) + squares, 0)


def mlp_growth(
    spec: Spec, params: Params, middle: Float[Array, "B n D"], probes: int | None = None
) -> Float[Array, "B n"]:
    """g_i = 1 + 2 tr(J_i)/d + ‖J_i‖²_F/d, J_i the Jacobian of the MLP branch with its norm's gain and scale.

    ‖J‖_F is exact through (hidden, hidden) Gram matrices up to a hidden width of `GRAM_WIDTH`, else (or where `probes` is
    given) estimated by that many Hutchinson probes.
    """
    dtype = middle.dtype
    mlp, norm = params["mlp"], params["norm1" if spec.wiring == "parallel-shared" else "norm2"]
    gain = norm["scale"].astype(dtype)
    r = norm_scale(spec, middle)
    h = centred(spec, middle) / r[..., None] * gain
    h = h + norm["bias"].astype(dtype) if spec.norm_bias else h
    down = mlp["down"]["weight"].astype(dtype)
    slopes, weights = _branches(spec, mlp, h)
    inner = [weight * gain for weight in weights]
    trace = sum(slope @ jnp.einsum("fd,df->f", weight, down) for slope, weight in zip(slopes, inner, strict=True))
    if probes is None and spec.hidden <= GRAM_WIDTH:
        square = _gram_norm(slopes, inner, down)
    else:
        square = _probed_norm(slopes, inner, down, probes or PROBES)
    return 1 + 2 * trace / (spec.dim * r) + square / (spec.dim * r**2)


def _branches(spec: Spec, mlp: Params, h: Float[Array, "B n D"]):
    # The branch is W_down Σ_b diag(slope_b) weight_b, as a linear map of h.
    def affine(name: str):
        weight = mlp[name]["weight"].astype(h.dtype)
        z = h @ weight.T
        return (z + mlp[name]["bias"].astype(h.dtype) if spec.mlp_bias else z), weight

    up, up_weight = affine("up")
    f = activation(spec.activation)
    if not spec.gated:
        return [jax.jvp(f, (up,), (jnp.ones_like(up),))[1]], [up_weight]
    gate, gate_weight = affine("gate")
    value, slope = jax.jvp(f, (gate,), (jnp.ones_like(gate),))
    return [slope * up, value], [gate_weight, up_weight]


def _gram_norm(slopes, inner, down) -> Float[Array, "B n"]:
    outer = down.T @ down
    total = jnp.zeros(slopes[0].shape[:2], down.dtype)
    for a in range(len(slopes)):
        for b in range(a + 1):
            form = jnp.sum((slopes[a] @ (outer * (inner[a] @ inner[b].T))) * slopes[b], axis=-1)
            total = total + (form if a == b else 2 * form)
    return total


def _probed_norm(slopes, inner, down, probes: int) -> Float[Array, "B n"]:
    def one(key):
        probe = down.T @ jax.random.rademacher(key, (down.shape[0],), down.dtype)
        pulled = sum((slope * probe) @ weight for slope, weight in zip(slopes, inner, strict=True))
        return jnp.sum(pulled**2, axis=-1)

    return jnp.mean(jax.lax.map(one, jax.random.split(jax.random.key(0), probes)), axis=0)
