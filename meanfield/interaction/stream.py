"""F_i = Σ_j g_ij p(⟨q_i, k_j⟩) V_j for a polynomial p, streamed over chunks of tokens through moments of the sources.

Without a chain g = 1 and j runs over all sources. With a chain, tokens are sorted by label and come in blocks; j runs over
*other* blocks, and g factors along the line: g(ξ_i − λ) · Π g(λ − λ') · g(λ' − ζ_j), λ the labels where blocks meet.

Derivatives are those of p(⟨q, k⟩) for free q and k: the rule sums p' with more values by the same function, so every order and
mode costs about the same, off-sphere directions agree with the dense sum, and the poles of the basis are never differentiated.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .._types import Array, Float
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


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def stream(
    basis: AbstractHarmonics,
    chunk: int,
    coefficients: Float[Array, " terms"],
    chain: Chain | None,
    q: Float[Array, "n d"],
    k: Float[Array, "m d"],
    values: Float[Array, "m c"],
) -> Float[Array, "n c"]:
    """F (n, c); memory O(n + m + terms·chunk)."""
    if chain is None:
        return _evaluate(basis, chunk, basis.weigh(coefficients, _moments(basis, chunk, k, values)), q)
    blocks = [a.reshape(*chain_shape(chain), a.shape[-1]) for a in (q, k, values)]
    total = jnp.zeros(blocks[2].shape, values.dtype)
    for one, reverse in ((chain.forward, False), (chain.backward, True)):
        if one is not None:
            total += _recur(basis, coefficients, one, *blocks, reverse)
    return total.reshape(values.shape)


def _rule(basis, chunk, primals, tangents):
    """dF = Σ dc P V + Σ p dV + Σ p' (⟨dq, k⟩ + ⟨q, dk⟩) V, plus the chain's tangents."""
    coefficients, chain, q, k, values = primals
    dcoefficients, dchain, dq, dk, dvalues = tangents
    sums = functools.partial(stream, basis, chunk)
    out = sums(coefficients, chain, q, k, values)
    total = jnp.zeros_like(out)
    if not _is_zero(dcoefficients):
        total += sums(dcoefficients, chain, q, k, values)
    if not _is_zero(dvalues):
        total += sums(coefficients, chain, q, k, dvalues)
    slopes = differentiate(coefficients, basis.d)
    if not _is_zero(dq):
        total += jnp.einsum("nec,ne->nc", _outer_sums(sums, slopes, chain, q, k, k, values), dq)
    if not _is_zero(dk):
        total += jnp.einsum("nec,ne->nc", _outer_sums(sums, slopes, chain, q, k, dk, values), q)
    if not all(_is_zero(t) for t in jax.tree.leaves(dchain, is_leaf=_is_zero)):
        dchain = jax.tree.map(_instantiate, chain, dchain)
        total += jax.jvp(lambda c: stream.fun(basis, chunk, coefficients, c, q, k, values), (chain,), (dchain,))[1]
    return out, total


stream.defjvp(_rule, symbolic_zeros=True)


def _outer_sums(sums, slopes, chain, q, k, directions, values):
    """Σ_j g p'(⟨q_i, k_j⟩) directions_j ⊗ V_j: (n, d, c)."""
    both = directions[:, :, None] * values[:, None, :]
    return sums(slopes, chain, q, k, both.reshape(k.shape[0], -1)).reshape(q.shape[0], *both.shape[1:])


def chain_shape(chain: Chain) -> tuple[int, int]:
    """Number and size of the blocks."""
    one = chain.backward if chain.forward is None else chain.forward
    return one.enter.shape


def _moments(basis, chunk, k, values):
    """Σ_j basis(k_j) V_j; padding has zero values."""
    count = k.shape[0]
    if count <= chunk:
        return basis.moments(k, values)
    extra = -count % chunk
    blocks = split(k, chunk), jnp.pad(values, ((0, extra), (0, 0))).reshape(-1, chunk, values.shape[1])
    shape = jax.eval_shape(basis.moments, blocks[0][0], blocks[1][0])
    zero = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shape)

    def add(total, block):
        return jax.tree.map(jnp.add, total, basis.moments(*block)), None

    return jax.lax.scan(add, zero, blocks)[0]


def _evaluate(basis, chunk, weighted, q):
    count = q.shape[0]
    if count <= chunk:
        return basis.evaluate(q, weighted)
    out = jax.lax.map(lambda block: basis.evaluate(block, weighted), split(q, chunk))
    return out.reshape(-1, out.shape[-1])[:count]


def _recur(basis, coefficients, one: Pass, q, k, values, reverse: bool):
    """F (blocks, size, c) of one pass."""
    shape = jax.eval_shape(basis.moments, k[0], values[0])
    zero = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shape)

    def step(state, block):
        enter, leave, decay, q, k, values = block
        out = enter[:, None] * basis.evaluate(q, basis.weigh(coefficients, state))
        own = basis.moments(k, leave[:, None] * values)
        return jax.tree.map(lambda a, b: decay * a + b, state, own), out

    return jax.lax.scan(step, zero, (one.enter, one.leave, one.step, q, k, values), reverse=reverse)[1]


def _is_zero(tangent) -> bool:
    return isinstance(tangent, SymbolicZero)


def _instantiate(primal, tangent):
    return jnp.zeros_like(primal) if _is_zero(tangent) else tangent
