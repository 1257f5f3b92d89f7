"""F_i = Σ_j g_ij p(⟨q_i, k_j⟩) V_j for a polynomial p, streamed over chunks of tokens through moments of the sources.

Without a chain g = 1 and j runs over all sources. With a chain, tokens are sorted by label and come in blocks; j runs over
*other* blocks, and g factors along the line: g(ξ_i − λ) · Π g(λ − λ') · g(λ' − ζ_j), λ the labels where blocks meet.

Derivatives are those of p(⟨q, k⟩) for free q and k. The rules sum p' with more values, or with targets and sources
exchanged, by the same function: every order and mode costs about the same, off-sphere directions agree with the dense
sum, and the basis, which has poles, is not differentiated. JAX's custom_jvp has no rule for the exchange, hence a primitive.
"""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import Mesh

from .._types import Array, Float
from .devices import AXIS, pad, shared_out
from .fold import split
from .harmonics import AbstractHarmonics
from .series import differentiate


class Pass(eqx.Module):
    """One recurrence over blocks: state ← step·state + Σ_j leave_j basis(k_j) V_j, and F_i gains enter_i · state before it."""

    enter: Float[Array, "blocks size"]
    leave: Float[Array, "blocks size"]
    step: Float[Array, " blocks"]


class Chain(eqx.Module):
    """How earlier blocks (`forward`) and later blocks (`backward`) act on a block; None: not at all."""

    forward: Pass | None
    backward: Pass | None


class Static(NamedTuple):
    """What a sum is compiled for."""

    basis: AbstractHarmonics
    chunk: int
    mesh: Mesh | None
    structure: jax.tree_util.PyTreeDef
    turning: bool


def stream(
    basis: AbstractHarmonics,
    chunk: int,
    mesh: Mesh | None,
    coefficients: Float[Array, " terms"],
    chain: Chain | None,
    q: Float[Array, "n d"],
    k: Float[Array, "m d"],
    values: Float[Array, "m c"],
    turning: bool = False,
) -> Float[Array, "n columns"]:
    """F (n, c); memory O(n + m + terms·chunk). Tokens, or blocks of a chain, are shared out over `mesh`.

    `turning`: the torque Σ_j g_ij p'(⟨q_i, k_j⟩) (q_i × k_j) V_j instead, (n, axes·c), one axis in d = 2 and three in d = 3.
    """
    leaves, structure = jax.tree.flatten(chain)
    static = Static(basis, chunk, mesh, structure, turning)
    return stream_p.bind(coefficients, q, k, values, *leaves, static=static)


def _stream(coefficients, q, k, values, *leaves, static):
    chain = jax.tree.unflatten(static.structure, leaves)
    if chain is None:
        return _all_pairs(static, coefficients, q, k, values)
    blocks = [a.reshape(*chain_shape(chain), a.shape[-1]) for a in (q, k, values)]
    total = jnp.zeros((*blocks[2].shape[:2], _width(static, values)), values.dtype)
    for one, reverse in ((chain.forward, False), (chain.backward, True)):
        if one is not None:
            total += _recur(static, coefficients, one, *blocks, reverse)
    return total.reshape(-1, total.shape[2])


def _weigh(static):
    return static.basis.turn if static.turning else static.basis.weigh


def _width(static, values) -> int:
    """Columns of the result."""
    return values.shape[1] * (3 if static.turning and static.basis.d == 3 else 1)


def _all_pairs(static, coefficients, q, k, values):
    """Moments of all sources, evaluated at all targets; with a mesh, of each device's sources, added up."""
    basis, chunk, mesh = static.basis, static.chunk, static.mesh
    weigh = _weigh(static)
    if mesh is None:
        return _evaluate(basis, chunk, weigh(coefficients, _moments(basis, chunk, k, values)), q)

    def local(sides, coefficients):
        q, k, values = sides
        moments = jax.lax.psum(_moments(basis, chunk, k, values), AXIS)
        return _evaluate(basis, chunk, weigh(coefficients, moments), q)

    n, m = q.shape[0], k.shape[0]
    rows = max(n, m) + -max(n, m) % mesh.size
    sides = pad(q, rows - n), pad(k, rows - m), pad(values, rows - m, 0.0)
    return shared_out(local, mesh, sides, coefficients)[:n]


def _jvp(primals, tangents, static):
    """dF = Σ dc P V + Σ p dV + Σ p' (⟨dq, k⟩ + ⟨q, dk⟩) V, plus the chain's tangents."""
    if static.turning:
        raise NotImplementedError("a torque is differentiated as q × the force (Expansion.tangent)")
    coefficients, q, k, values, *chain = primals
    dcoefficients, dq, dk, dvalues, *dchain = tangents
    out = stream_p.bind(*primals, static=static)
    parts = []
    if not _is_zero(dcoefficients):
        parts.append(stream_p.bind(dcoefficients, q, k, values, *chain, static=static))
    if not _is_zero(dvalues):
        parts.append(stream_p.bind(coefficients, q, k, dvalues, *chain, static=static))
    slopes = differentiate(coefficients, static.basis.d)
    if not _is_zero(dq):
        parts.append(jnp.einsum("nec,ne->nc", _outer_sums(slopes, q, k, k, values, chain, static), dq))
    if not _is_zero(dk):
        parts.append(jnp.einsum("nec,ne->nc", _outer_sums(slopes, q, k, dk, values, chain, static), q))
    if not all(map(_is_zero, dchain)):
        fixed = functools.partial(_stream, coefficients, q, k, values, static=static)
        parts.append(jax.jvp(fixed, chain, [ad.instantiate_zeros(t) for t in dchain])[1])
    return out, sum(parts) if parts else ad.Zero.from_primal_value(out)


def _transpose(cotangent, coefficients, q, k, values, *chain, static):
    """F is linear in V, with the transpose that lets targets and sources change places, and in c."""
    if ad.is_undefined_primal(values):
        turned = _turn(jax.tree.unflatten(static.structure, chain))
        back = stream(static.basis, static.chunk, static.mesh, coefficients, turned, k, q, cotangent)
        return [None, None, None, back, *[None] * len(chain)]

    def linear(c):
        return _stream(c, q, k, values, *chain, static=static)

    (back,) = jax.linear_transpose(linear, coefficients.aval)(cotangent)
    return [back, None, None, None, *[None] * len(chain)]


def _batch(arguments, axes, static):
    """One sum after the other: each already fills the machine."""
    mapped = [a for a, axis in zip(arguments, axes, strict=True) if axis is not None]
    where = [axis for axis in axes if axis is not None]
    mapped = [jnp.moveaxis(a, axis, 0) for a, axis in zip(mapped, where, strict=True)]

    def one(slices):
        slices = iter(slices)
        full = [a if axis is None else next(slices) for a, axis in zip(arguments, axes, strict=True)]
        return stream_p.bind(*full, static=static)

    return jax.lax.map(one, mapped), 0


def _abstract(coefficients, q, k, values, *chain, static):
    return jax.core.ShapedArray((q.shape[0], _width(static, values)), values.dtype)


stream_p = Primitive("meanfield_stream")
stream_p.def_impl(functools.partial(jax.jit, static_argnames="static")(_stream))
stream_p.def_abstract_eval(_abstract)
mlir.register_lowering(stream_p, mlir.lower_fun(_stream, multiple_results=False))
ad.primitive_jvps[stream_p] = _jvp
ad.primitive_transposes[stream_p] = _transpose
batching.primitive_batchers[stream_p] = _batch


def _outer_sums(slopes, q, k, directions, values, chain, static):
    """Σ_j g p'(⟨q_i, k_j⟩) directions_j ⊗ V_j: (n, d, c)."""
    both = directions[:, :, None] * values[:, None, :]
    sums = stream_p.bind(slopes, q, k, both.reshape(k.shape[0], -1), *chain, static=static)
    return sums.reshape(q.shape[0], *both.shape[1:])


def _turn(chain: Chain | None) -> Chain | None:
    """The chain seen from the sources: what was earlier is later."""
    if chain is None:
        return None
    forward, backward = (one and Pass(one.leave, one.enter, one.step) for one in (chain.backward, chain.forward))
    return Chain(forward, backward)


def chain_shape(chain: Chain) -> tuple[int, int]:
    """Number and size of the blocks."""
    one = chain.backward if chain.forward is None else chain.forward
    return one.enter.shape


def _moments(basis, chunk, k, values):
    """Σ_j basis(k_j) V_j; padding has zero values."""
    count = k.shape[0]
    if count <= chunk:
        return basis.moments(k.T, values.T)
    extra = -count % chunk
    blocks = _along(split(k, chunk)), _along(jnp.pad(values, ((0, extra), (0, 0))).reshape(-1, chunk, values.shape[1]))

    def add(total, block):
        return jax.tree.map(jnp.add, total, basis.moments(*block)), None

    return jax.lax.scan(add, basis.nothing(values.shape[1], values.dtype), blocks)[0]


def _evaluate(basis, chunk, weighted, q):
    count = q.shape[0]
    if basis.pointwise or count <= chunk:
        return basis.evaluate(q.T, weighted).T
    out = jax.lax.map(lambda block: basis.evaluate(block, weighted), _along(split(q, chunk)))
    return out.swapaxes(1, 2).reshape(-1, out.shape[1])[:count]


def _along(blocks: Float[Array, "blocks a b"]) -> Float[Array, "blocks b a"]:
    """Transposed blocks, in memory: loops then read contiguous tokens."""
    return jax.lax.optimization_barrier(blocks.swapaxes(1, 2))


def _recur(static, coefficients, one: Pass, q, k, values, reverse: bool):
    """F (blocks, size, c) of one pass; with a mesh, each device starts from what the devices before it hand on."""
    rows, mesh = (one.enter, one.leave, one.step, q, k, values), static.mesh
    if mesh is None:
        return _scan(static, coefficients, rows, None, reverse)[1]

    def local(rows, coefficients):
        state, _ = _scan(static, None, rows, None, reverse)
        start = _handed_on(state, jnp.prod(rows[2]), mesh.size, reverse)
        return _scan(static, coefficients, rows, start, reverse)[1]

    extra = -one.step.shape[0] % mesh.size
    fills = (0.0, 0.0, 1.0, None, None, 0.0)  # padding blocks neither feel nor act, and pass states on
    rows = tuple(pad(a, extra, fill) for a, fill in zip(rows, fills, strict=True))
    return shared_out(local, mesh, rows, coefficients)[: q.shape[0]]


def _scan(static, coefficients, rows, state, reverse: bool):
    """The state after all blocks, and F unless there are no coefficients."""
    basis, weigh = static.basis, _weigh(static)
    if state is None:
        state = basis.nothing(rows[5].shape[2], rows[5].dtype)

    def step(state, block):
        enter, leave, decay, q, k, values = block
        out = None
        if coefficients is not None:
            out = (enter * basis.evaluate(q.T, weigh(coefficients, state))).T
        own = basis.moments(k.T, leave * values.T)
        return jax.tree.map(lambda a, b: decay * a + b, state, own), out

    return jax.lax.scan(step, state, rows, reverse=reverse)


def _handed_on(state, decay, count: int, reverse: bool):
    """Σ over devices before this one of their state, decayed through the devices between."""
    states, decays = jax.lax.all_gather((state, decay), AXIS)
    me = jax.lax.axis_index(AXIS)
    total = jax.tree.map(jnp.zeros_like, state)
    for other in range(count - 1, -1, -1) if reverse else range(count):
        before = other > me if reverse else other < me
        following = jax.tree.map(lambda t, s, i=other: decays[i] * t + s[i], total, states)
        total = jax.tree.map(lambda new, old, b=before: jnp.where(b, new, old), following, total)
    return total


def _is_zero(tangent) -> bool:
    return isinstance(tangent, ad.Zero)
