"""The energy landscape at fixed labels: E and its weighted gradient from one pass over all pairs."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.typing import DTypeLike

from .. import sphere
from .._products import matmul
from .._types import Array, Float, Scalar
from ..interaction import Sources, Targets, Tiling, fold
from ..interaction.bound import bound_terms, cast_parts, check_prefix, prefix_sides, sides, zonal_only
from ..interaction.mapped import Cloud
from ..interaction.pairs import over_pairs
from ..kernels import AbstractKernel, ExpDot, Term, slope
from ..marginal import Marginal
from ..prefix import Prefix

HOISTED_PAIRS = 2048**2  # above, factors are evaluated tile by tile instead of once
MAPPED_PAIRS = 256**2
TILING, MAPPED_TILING = Tiling(256, 1024), Tiling(64, 256)


class AbstractLandscape(eqx.Module):
    """x ↦ (E, F): E = ½ Σ w_i w_j h + prefix, F_i = Σ_j w_j ∇_x h(z_i, z_j) + prefix, so that ∂E/∂x_i = w_i F_i."""

    rho: eqx.AbstractVar[Marginal]

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "n d"]) -> tuple[Scalar, Float[Array, "n d"]]:
        """Energy and force of one configuration."""

    def inner(self, u: Float[Array, "n d"], v: Float[Array, "n d"]) -> Scalar:
        """⟨u, v⟩_w = Σ_i w_i ⟨u_i, v_i⟩, the metric in which the USA flow is the gradient flow of E."""
        return matmul(self.weighted(u), v.reshape(-1))

    def weighted(self, v: Float[Array, "n d"]) -> Float[Array, " nd"]:
        """The flat vector whose product with another flat one is ⟨v, ·⟩_w."""
        return (self.rho.weights[:, None] * v).reshape(-1)

    def norm(self, v: Float[Array, "n d"]) -> Scalar:
        """√⟨v, v⟩_w."""
        return jnp.sqrt(self.inner(v, v))

    def gradient(self, x: Float[Array, "n d"], force: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """grad_i = P_{x_i} F_i; zero where w_i = 0, such tokens do not count."""
        return jnp.where(self.rho.weights[:, None] > 0, sphere.project(x, force), 0)

    def hessian(self, x: Float[Array, "n d"], u: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Riemannian Hessian times tangent u: P_x(DF[u]) − ⟨x, F⟩u, self-adjoint in ⟨·, ·⟩_w."""
        (_, force), (_, change) = jax.jvp(self.__call__, (x,), (u,))
        radial = jnp.sum(x * force, axis=-1, keepdims=True)
        return self.gradient(x, change - radial * u)


class StructuredLandscape(AbstractLandscape):
    """h = Σ_terms scale Π g φ(⟨Q_ξ x, Q_ζ y⟩): factors evaluated once where n×n is small, in tiles above."""

    terms: tuple[Term, ...]
    factors: tuple[Float[Array, "n n"] | None, ...]
    rho: Marginal
    prefix: Prefix | None
    tiling: Tiling

    def __call__(self, x: Float[Array, "n d"]) -> tuple[Scalar, Float[Array, "n d"]]:
        """Energy and force of one configuration."""
        w = self.rho.weights
        energy, force = jnp.zeros((), x.dtype), jnp.zeros_like(x)
        for term, factor in zip(self.terms, self.factors, strict=True):
            potential, pull = _sum_pairs(term, factor, *sides(term, x, self.rho, True), self.tiling)
            energy += term.scale.astype(x.dtype) * 0.5 * jnp.dot(w, potential)
            force += term.scale.astype(x.dtype) * term.ungauge(self.rho.labels, pull)
            if self.prefix is not None:
                potential, pull = _sum_pairs(zonal_only(term), None, *prefix_sides(x, self.prefix), Tiling())
                energy += term.scale.astype(x.dtype) * jnp.dot(w, potential)
                force += term.scale.astype(x.dtype) * pull
        return energy, force


class PairLandscape(AbstractLandscape):
    """Any symmetric kernel of one pair, by mapped autodiff in blocks."""

    kernel: AbstractKernel
    rho: Marginal
    tiling: Tiling

    def __call__(self, x: Float[Array, "n d"]) -> tuple[Scalar, Float[Array, "n d"]]:
        """Energy and force of one configuration."""

        def tile(t: Cloud, s: Cloud):
            pair = jax.value_and_grad(self.kernel)

            def one(x, xi):
                return jax.vmap(lambda y, zeta: pair(x, xi, y, zeta))(s.x, s.labels)

            h, gradient = jax.vmap(one)(t.x, t.labels)
            return h @ s.weights, jnp.einsum("ijd,j->id", gradient, s.weights)

        cloud = Cloud(x, self.rho.labels, self.rho.weights)
        potential, force = fold(tile, cloud, cloud, _mute, self.tiling)
        return 0.5 * jnp.dot(self.rho.weights, potential), force


def bind(
    kernel: AbstractKernel,
    rho: Marginal,
    prefix: Prefix | None,
    dim: int,
    dtype: DTypeLike,
    mesh: Mesh | None = None,
) -> AbstractLandscape:
    """The landscape of `kernel` over (S^{dim-1})^n, evaluating once what does not depend on the tokens.

    With a `mesh`, every device sums the pairs of its own tokens.

    Examples:
        >>> landscape = mf.ascent.bind(mf.Dot(), mf.Marginal.circle(2), None, 2, jnp.float32)
        >>> energy, force = landscape(jnp.asarray([[1.0, 0.0], [1.0, 0.0]]))
        >>> float(energy), force.shape
        (0.5, (2, 2))
    """
    kernel, rho, prefix = cast_parts(kernel, rho, prefix, dtype)
    terms = bound_terms(kernel, rho, dim, dtype)
    check_prefix(prefix, terms is not None, dim)
    pairs = rho.n * rho.n
    if terms is None:
        return PairLandscape(kernel, rho, _tiling(MAPPED_TILING, pairs <= MAPPED_PAIRS, mesh))
    hoist = pairs <= HOISTED_PAIRS and mesh is None
    factors = tuple(label_factor(term, rho, dtype) if hoist and term.factors else None for term in terms)
    return StructuredLandscape(terms, factors, rho, prefix, _tiling(TILING, pairs <= HOISTED_PAIRS, mesh))


def _tiling(tiles: Tiling, few: bool, mesh: Mesh | None) -> Tiling:
    return Tiling(mesh=mesh) if few else Tiling(tiles.rows, tiles.columns, mesh)


def label_factor(term: Term, rho: Marginal, dtype: DTypeLike) -> Float[Array, "n n"]:
    """Π g(ξ_i − ξ_j) of one term over all pairs."""
    return over_pairs(lambda xi, zeta: term.factor(xi, zeta, dtype), rho.labels, rho.labels)


def _sum_pairs(term: Term, factor: Array | None, targets: Targets, sources: Sources, tiling: Tiling):
    """Σ_j w_j g φ(⟨q_i, k_j⟩) and Σ_j w_j g φ'(⟨q_i, k_j⟩) v_j in one pass."""

    def tile(t: Targets, s: Sources):
        products = matmul(t.q, s.k.T)
        rate, g = slope(term.zonal, products), factor
        if g is None and term.factors:
            g = over_pairs(lambda xi, zeta: term.factor(xi, zeta, products.dtype), t.labels, s.labels)
        rate = rate if g is None else rate * g
        weighted = s.weights[:, None] * s.values
        if isinstance(term.zonal, ExpDot):  # φ = φ'/β: both sums in one product, and no factor evaluated twice
            both = matmul(rate, jnp.concatenate([weighted, s.weights[:, None]], axis=1))
            return both[:, -1] / term.zonal.beta.astype(both.dtype), both[:, :-1]
        value = term.zonal.phi(products)
        return (value if g is None else value * g) @ s.weights, matmul(rate, weighted)

    return fold(tile, targets, sources, _mute, tiling)


def _mute(sources, real: Array):
    return eqx.tree_at(lambda s: s.weights, sources, jnp.where(real, sources.weights, 0))
