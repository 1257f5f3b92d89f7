"""Maximisation over measures per label: is one point per label enough? (theory.md 2, conditional Diracisation)"""

import equinox as eqx
import jax
import jax.numpy as jnp

from .. import sphere
from .._callable import cast
from .._types import Array, Float, PRNGKey, Scalar
from ..energy import bind_energy
from ..interaction.pairs import over_pairs
from ..kernels import AbstractKernel
from ..marginal import Marginal
from .engine import climb, stopping
from .landscape import bind
from .methods import LBFGS

ROUNDS, MOVES, SWEEPS = 60, 25, 20


class LabelMeasures(eqx.Module):
    """μ_ξ_i = Σ_a p_ia δ_{y_ia}: `atoms` (n, m, d), `probabilities` (n, m) with rows of sum 1, and the energy.

    Examples:
        >>> rho, key = mf.Marginal.circle(3), jax.random.key(0)
        >>> found = mf.ascent.ascend_measures(mf.Dot(), rho, 2, key, atoms=2, restarts=2)
        >>> print(np.round(found.probabilities.sum(axis=1), 3))
        [1. 1. 1.]
    """

    atoms: Float[Array, "n m d"]
    probabilities: Float[Array, "n m"]
    energy: Scalar

    @property
    def dispersion(self) -> Float[Array, " n"]:
        """1 − ‖Σ_a p_ia y_ia‖ per label: 0 for one point (or coinciding atoms), 1 for a balanced measure."""
        mean = jnp.einsum("na,nad->nd", self.probabilities, self.atoms)
        return 1 - jnp.sqrt(jnp.sum(mean**2, axis=-1))

    @property
    def support(self) -> Float[Array, " n"]:
        """1/Σ_a p_ia², the effective number of atoms that carry weight (coinciding atoms count apart)."""
        return 1 / jnp.sum(self.probabilities**2, axis=-1)


def ascend_measures(
    kernel: AbstractKernel, rho: Marginal, dim: int, key: PRNGKey, atoms: int = 4, restarts: int = 8
) -> LabelMeasures:
    """Maximises E over μ = Σ_i w_i δ_{ξ_i} ⊗ μ_i with up to `atoms` atoms per label, weights included.

    Rounds of L-BFGS on the atoms, then Baum–Eagon steps p_ia ← p_ia V_ia/Σ_b p_ib V_ib on the weights, V = ∂E/∂p with h
    shifted to be non-negative (a constant, since rows sum to 1): both never lose energy. E is affine in μ_i but for the
    self term ½w_i²h(·, ξ_i, ·, ξ_i): one atom per label is enough where that is convex in μ_i, and up to O(1/n) otherwise.

    Returns the best of `restarts` random starts. For n·atoms up to about 1000. Source: arXiv 2605.30229.

    Examples:
        >>> rho, key = mf.Marginal.circle(3), jax.random.key(0)
        >>> found = mf.ascent.ascend_measures(mf.ExpDot(1.0), rho, 2, key, atoms=2, restarts=2)
        >>> found.atoms.shape, f"{found.energy:.3f}"
        ((3, 2, 2), '1.359')
    """
    if atoms < 1 or restarts < 1:
        raise ValueError(f"atoms={atoms}, restarts={restarts}: both must be at least 1")
    return _solve(kernel, rho, dim, key, atoms, restarts)


@eqx.filter_jit
def _solve(kernel, rho, dim, key, atoms, restarts) -> LabelMeasures:
    dtype = jnp.result_type(float)
    kernel, rho = cast((kernel, rho), dtype)
    labels = jax.tree.map(lambda a: jnp.repeat(a, atoms, axis=0), rho.labels)

    def spread(p):
        return Marginal(labels, (rho.weights[:, None] * p).ravel())

    def one(key):
        y_key, p_key = jax.random.split(key)
        y = sphere.normalize(jax.random.normal(y_key, (rho.n * atoms, dim), dtype))
        p = jax.random.dirichlet(p_key, jnp.full(atoms, 4.0, dtype), (rho.n,))

        def rounds(_, carry):
            y, p = carry
            y = climb(bind(kernel, spread(p), None, dim, dtype), y, LBFGS(), stopping(dtype, MOVES)).point.x
            return y, _reweight(kernel, spread, labels, y, p)

        y, p = jax.lax.fori_loop(0, ROUNDS, rounds, (y, p))
        energy = bind_energy(kernel, spread(p), None, dim, dtype)(y)
        return LabelMeasures(y.reshape(rho.n, atoms, dim), p, energy)

    found = jax.vmap(one)(jax.random.split(key, restarts))
    best = jnp.argmax(found.energy)
    return jax.tree.map(lambda a: a[best], found)


def _reweight(kernel, spread, labels, y, p):
    """Baum–Eagon steps at fixed atoms: the potential is linear in p, so the pair matrix is built once."""
    pairs = over_pairs(lambda z, w: kernel(z[0], z[1], w[0], w[1]), (y, labels), (y, labels))
    low, high = jnp.min(pairs), jnp.max(pairs)
    pairs = pairs - low + 1e-3 * (high - low) + jnp.finfo(y.dtype).tiny

    def step(_, p):
        potential = (pairs @ spread(p).weights).reshape(p.shape)
        grown = p * potential
        return grown / jnp.sum(grown, axis=1, keepdims=True)

    return jax.lax.fori_loop(0, SWEEPS, step, p)
