"""Front door: the law of a continuum of tokens per label, on the circle."""

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import _check
from .._types import AnyArray, Array, Bool, Float, Labels, ScalarLike, Times
from ..dynamics import SA, USA
from ..interaction.bound import bound_terms, cast_parts, visibility
from ..marginal import Marginal
from .spectral import Circle, build, cutoff


class Law(eqx.Module):
    """Densities f_a(θ_m) of the tokens of each label node at the saved times.

    `ts` (T,), `theta` (M,) grid angles, `density` (T, A, M) with ∫ f_a dθ = 1, `energy` (T,), `order` (T,) =
    ‖Σ_a w_a ∫ x f_a‖, `resolved` (T,): the highest modes kept are below 1e-3 of the mass; later rows, where a law has
    become sharper than the grid, are NaN. `labels`, `weights` of the A nodes.

    Source: theory.md 1.

    Examples:
        >>> start = lambda theta, label: 1 + 0.5 * jnp.cos(theta)
        >>> law = mf.law(mf.SA(mf.ExpDot(1.0)), start, mf.Marginal.positions(1), jnp.asarray([0.0, 1.0]), grid=64)
        >>> print(f"{law.density[-1].mean() * 2 * np.pi:.4f}", bool(law.order[1] > law.order[0]))
        1.0000 True
    """

    ts: Float[Array, " T"]
    theta: Float[Array, " M"]
    density: Float[Array, "T A M"]
    energy: Float[Array, " T"]
    order: Float[Array, " T"]
    resolved: Bool[Array, " T"]
    labels: Labels
    weights: Float[Array, " A"]


def law(
    dynamics: USA | SA,
    density: Float[AnyArray, "A M"] | Callable,
    rho: Marginal,
    ts: Times,
    grid: int = 256,
    rtol: ScalarLike = 1e-7,
    atol: ScalarLike = 1e-9,
    max_steps: int = 16384,
) -> Law:
    """Solves ∂_t μ_ξ + div(μ_ξ V[μ]) = 0 on S¹ for a continuum of tokens per label node: n → ∞ of `flow` (theory.md 1).

    V_a(θ) = ∂_θ Σ_b w_b g_ab ∫ φ(cos(u_a − u'_b)) f_b(θ') dθ', u_a the gauged angle; SA divides by the same sum of φ'.
    Fourier in θ (modes up to M/3), Tsit5 in time. Mass is conserved to rounding.

    Args:
        dynamics: `USA` or `SA` of a kernel that is zonal up to gauges and factors; masks and a prefix are allowed.
        density: (A, M) values at θ_m = 2πm/M, normalised here, or a function (θ (M,), label) → (M,).
        rho: A label nodes with weights.
        ts: increasing save times, the first is the start.
        grid: M, used where `density` is a function.

    Raises:
        ValueError: when the kernel has no structure, values are unrotated, densities are negative, or the grid is too
            coarse for φ.

    Examples:
        >>> ts = jnp.asarray([0.0, 1.0])
        >>> uniform = mf.law(mf.USA(mf.ExpDot(1.0)), np.ones((1, 64), np.float32), mf.Marginal.positions(1), ts)
        >>> uniform.density.shape, bool(uniform.resolved.all())
        ((2, 1, 64), True)
    """
    density = _initial(density, rho, grid)
    ts = jnp.asarray(ts, density.dtype)
    _check.times(ts)
    equation = _bind(dynamics, rho, density.shape[1], density.dtype)
    f, energy, order, tail = _solve(equation, density, ts, rtol, atol, max_steps)
    resolved = jnp.cumprod(tail < 1e-3) > 0
    f = jnp.where(resolved[:, None, None], f, jnp.nan)
    energy, order = (jnp.where(resolved, a, jnp.nan) for a in (energy, order))
    return Law(ts, _angles(density), f, energy, order, resolved, rho.labels, rho.weights.astype(density.dtype))


def _initial(density, rho: Marginal, grid: int) -> Float[Array, "A M"]:
    if callable(density):
        theta = jnp.asarray(2 * np.pi * np.arange(grid) / grid, jnp.result_type(float))
        density = jax.vmap(lambda label: density(theta, label))(rho.labels)
    density = _check.as_array(density, "density")
    if density.ndim != 2 or density.shape[0] != rho.n or density.shape[1] < 16:
        raise ValueError(
            f"density has shape {density.shape}: pass ({rho.n}, M) values, one row per label, M ≥ 16 equispaced angles"
        )
    if _check.is_concrete(density) and not (np.isfinite(density).all() and (np.asarray(density) >= 0).all()):
        raise ValueError("density has negative or non-finite values: pass a probability density for every label")
    return density / (jnp.mean(density, axis=1, keepdims=True) * (2 * np.pi))


def _bind(dynamics: USA | SA, rho: Marginal, grid: int, dtype) -> Circle:
    kernel, rho, prefix = cast_parts(dynamics.kernel, rho, dynamics.prefix, dtype)
    terms = bound_terms(kernel, rho, 2, dtype)
    if terms is None:
        raise ValueError(f"law needs a kernel that is zonal up to gauges and position factors, got {dynamics.kernel}")
    if not dynamics.rotate_values:
        raise ValueError("law needs rotate_values=True: unrotated values are no gradient of a potential on the circle")
    softmax = isinstance(dynamics, SA)
    if softmax and (len(terms) != 1 or prefix is not None):
        raise ValueError("law of SA needs one zonal kernel and no prefix: use mf.USA, or mf.flow with many tokens")
    equation = build(terms, rho, visibility(dynamics.causal), prefix, grid, dtype, softmax)
    if _check.is_concrete(equation.modes) and not all(np.isfinite(m.phi).all() for m in equation.modes):
        raise ValueError(
            f"a grid of {grid} angles keeps {cutoff(grid)} modes, too few for this kernel: pass a larger grid"
        )
    return equation


@eqx.filter_jit
def _solve(equation: Circle, density, ts, rtol, atol, max_steps):
    x = jnp.stack([jnp.cos(_angles(density)), jnp.sin(_angles(density))])

    def observe(t, f, args):
        step = 2 * jnp.pi / f.shape[1]
        hat = jnp.abs(jnp.fft.rfft(f, axis=1)) * step
        last = cutoff(f.shape[1])
        order = jnp.linalg.norm(jnp.einsum("a,am,em->e", equation.weights, f, x)) * step
        return f, equation.energy(f), order, jnp.max(hat[:, last - 2 : last + 1])

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(equation),
        diffrax.Tsit5(),
        ts[0],
        ts[-1],
        None,
        density,
        saveat=diffrax.SaveAt(ts=ts, fn=observe),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        max_steps=max_steps,
        throw=False,
    )
    # times that the solver did not reach are infinite: not resolved
    return solution.ys


def _angles(density) -> Float[Array, " M"]:
    return 2 * np.pi * jnp.arange(density.shape[1], dtype=density.dtype) / density.shape[1]
