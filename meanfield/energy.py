"""The interaction energy E_h."""

import equinox as eqx
import jax.numpy as jnp

from . import _check
from ._callable import evaluate
from ._types import Array, Devices, DType, Float, Scalar, Tokens
from .interaction import AbstractMethod, Plan, Tiling, choose, choose_mapped, mapped_potential, place, plan
from .interaction.bound import bound_terms, cast_parts, check_prefix, prefix_sides, sides, zonal_only
from .kernels import AbstractKernel, Term, require_kernel
from .marginal import Marginal
from .prefix import Prefix


def energy(
    kernel: AbstractKernel,
    x: Tokens,
    rho: Marginal,
    prefix: Prefix | None = None,
    method: str = "auto",
    devices: Devices = None,
) -> Scalar:
    """E_h[μ] = ½ Σ_ij w_i w_j h(z_i, z_j), diagonal included, plus Σ_i w_i Σ_k c_k φ(⟨x_i, p_k⟩) of a prefix.

    For an asymmetric `Pair` this is the energy of its symmetric part.

    Args:
        x: (n, d) unit rows.
        rho: n labels.
        method: as in `velocity`.
        devices: as in `velocity`.

    Returns:
        A scalar of the dtype of x.

    Raises:
        ValueError: when `velocity` does.

    Source: theory.md 1; arXiv 2605.30229.

    Examples:
        >>> x = np.float32([[1, 0], [1, 0]])
        >>> float(mf.energy(mf.Dot(), x, mf.Marginal.circle(2)))  # all tokens in one point: φ(1)/2
        0.5
    """
    require_kernel(kernel)
    x = _check.tokens(x)
    _check.same_length(x, rho)
    chosen = plan(method, devices)
    x, rho = place((x, rho), chosen)
    return evaluate(bind_energy(kernel, rho, prefix, x.shape[1], x.dtype, chosen), x)


class EnergyFunctional(eqx.Module):
    """x ↦ E_h with labels, weights and gauge matrices bound in (structured kernels)."""

    terms: tuple[Term, ...]
    rho: Marginal
    prefix: Prefix | None
    summing: AbstractMethod

    def __call__(self, x: Float[Array, "n d"]) -> Scalar:
        """½ Σ w_i w_j h + prefix."""
        w = self.rho.weights
        total = jnp.zeros((), x.dtype)
        for term in self.terms:
            targets, sources = sides(term, x, self.rho, True)
            value = 0.5 * jnp.dot(w, self.summing.potential(term, targets, sources))
            if self.prefix is not None:
                targets, sources = prefix_sides(x, self.prefix)
                value += jnp.dot(w, self.summing.potential(zonal_only(term), targets, sources))
            total += term.scale.astype(x.dtype) * value
        return total


class PairEnergy(eqx.Module):
    """x ↦ E_h of any kernel of one pair."""

    kernel: AbstractKernel
    rho: Marginal
    tiling: Tiling

    def __call__(self, x: Float[Array, "n d"]) -> Scalar:
        """½ Σ w_i w_j h."""
        potential = mapped_potential(self.kernel, x, self.rho.labels, self.rho.weights, self.tiling)
        return 0.5 * jnp.dot(self.rho.weights, potential)


def bind_energy(
    kernel: AbstractKernel, rho: Marginal, prefix: Prefix | None, d: int, dtype: DType, method: str | Plan = "auto"
) -> EnergyFunctional | PairEnergy:
    """The energy as a function of tokens alone, evaluating once what does not depend on them."""
    kernel, rho, prefix = cast_parts(kernel, rho, prefix, dtype)
    terms = bound_terms(kernel, rho, d, dtype)
    check_prefix(prefix, terms is not None, d)
    if terms is None:
        return PairEnergy(kernel, rho, choose_mapped(method, rho.n)[0])
    return EnergyFunctional(terms, rho, prefix, choose(method, terms, rho.n, d, dtype)[0])
