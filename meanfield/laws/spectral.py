"""The continuity equation on the circle in Fourier modes: one density per label node."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, DType, Float, Scalar
from ..interaction.pairs import Causal
from ..interaction.series import phi_series, slope_series
from ..kernels import Term
from ..marginal import Marginal
from ..prefix import Prefix


class Mode(eqx.Module):
    """One term: its angles u = α_a + s_a θ, label matrix w_b g_ab, and coefficients of φ (and φ' for a softmax)."""

    angle: Float[Array, " nodes"]
    sign: Float[Array, " nodes"]
    mixing: Float[Array, "nodes nodes"]
    phi: Float[Array, " modes"]
    slope: Float[Array, " modes"]


class Circle(eqx.Module):
    """f ↦ −∂_θ(f V[f]) and E[f] on a grid θ_m = 2πm/M; modes above M/3 are dropped, so that products do not alias."""

    modes: tuple[Mode, ...]
    pull: Float[Array, " grid"]
    weights: Float[Array, " nodes"]
    energy_mixing: tuple[Float[Array, "nodes nodes"], ...]
    softmax: bool = eqx.field(static=True)

    def velocity(self, f: Float[Array, "nodes grid"]) -> Float[Array, "nodes grid"]:
        """V_a(θ) = ∂_θ Σ_b w_b g_ab ∫ φ(cos(u_a − u'_b)) f_b dθ'; divided by the same sum of φ' for a softmax."""
        total, normaliser = jnp.broadcast_to(self.pull, f.shape), jnp.zeros_like(f)
        for mode in self.modes:
            order, moments = _moments(mode, f)
            mixed = _mix(mode.mixing, moments)
            total = total + mode.sign[:, None] * _series(mode, _turned(order * _half(mode.phi)) * mixed, f.shape[1])
            if self.softmax:
                normaliser = normaliser + _series(mode, _complex(_half(mode.slope)) * mixed, f.shape[1])
        return total / normaliser if self.softmax else total

    def __call__(self, t, f: Float[Array, "nodes grid"], args=None) -> Float[Array, "nodes grid"]:
        """−∂_θ(f V)."""
        flux = jnp.fft.rfft(f * self.velocity(f), axis=1)
        order = jnp.arange(flux.shape[1])
        kept = order <= cutoff(f.shape[1])
        return -jnp.fft.irfft(jnp.where(kept, _turned(order.astype(f.dtype)) * flux, 0), f.shape[1], axis=1)

    def energy(self, f: Float[Array, "nodes grid"]) -> Scalar:
        """½ Σ_ab w_a w_b g_ab ∫∫ φ f_a f_b."""
        total = jnp.zeros((), f.dtype)
        for mode, mixing in zip(self.modes, self.energy_mixing, strict=True):
            _, moments = _moments(mode, f)
            products = jnp.real(jnp.conj(moments) * _mix(mixing, moments))
            total += 0.5 * jnp.sum(self.weights[:, None] * products * mode.phi)
        return total


def cutoff(grid: int) -> int:
    """The highest mode kept on a grid."""
    return (grid - 1) // 3


def build(
    terms: tuple[Term, ...],
    rho: Marginal,
    visible: Causal | None,
    prefix: Prefix | None,
    grid: int,
    dtype: DType,
    softmax: bool,
) -> Circle:
    """The equation of structured terms; NaN coefficients where the grid is too coarse for φ."""
    degree = cutoff(grid)
    modes, plain = [], []
    theta = 2 * jnp.pi * jnp.arange(grid, dtype=dtype) / grid
    pull = jnp.zeros(grid, dtype)
    for term in terms:
        frame = jnp.stack([term.gauge(rho.labels, jnp.tile(e, (rho.n, 1))) for e in jnp.eye(2, dtype=dtype)], axis=2)
        sign = jnp.sign(jnp.linalg.det(frame))
        angle = jnp.arctan2(frame[:, 1, 0], frame[:, 0, 0])
        pairs = _pairs(lambda a, b, term=term: term.factor(a, b, dtype), rho.labels) * rho.weights
        mask = 1 if visible is None else _pairs(visible, rho.labels).astype(dtype)
        phi, slope = (fn(term.zonal, 2, degree, dtype) for fn in (phi_series, slope_series))
        scale = term.scale.astype(dtype)
        phi, slope = (scale * jnp.exp(s.top) * s.coefficients for s in (phi, slope))
        modes.append(Mode(angle, sign, pairs * mask, phi, slope))
        plain.append(pairs)
        if prefix is not None:
            there = jnp.arctan2(prefix.tokens[:, 1], prefix.tokens[:, 0])
            order = jnp.arange(degree + 1, dtype=dtype)
            waves = jnp.sin(order * (theta[:, None, None] - there[:, None]))
            pull -= jnp.einsum("gkl,k,l->g", waves, prefix.weights, order * phi)
    return Circle(tuple(modes), pull, rho.weights, tuple(plain), softmax)


def _moments(mode: Mode, f):
    """∫ e^{−ilu'} f_b dθ', u' = α_b + s_b θ', l = 0 … L."""
    order = jnp.arange(mode.phi.shape[0], dtype=f.dtype)
    hat = jnp.fft.rfft(f, axis=1)[:, : order.shape[0]] * (2 * jnp.pi / f.shape[1])
    hat = jnp.where(mode.sign[:, None] > 0, hat, jnp.conj(hat))
    return order, hat * _wave(-order * mode.angle[:, None])


def _series(mode: Mode, coefficients, grid: int):
    """2 Re Σ_{l>0} + the constant: Σ coefficients_l e^{ilu} over l of both signs, at u = α_a + s_a θ."""
    order = jnp.arange(coefficients.shape[1], dtype=mode.angle.dtype)
    turned = coefficients * _wave(order * mode.angle[:, None])
    turned = jnp.where(mode.sign[:, None] > 0, turned, jnp.conj(turned))
    return jnp.fft.irfft(turned, grid, axis=1) * grid


def _half(coefficients):
    """Coefficients of e^{ilu} from those of cos lu."""
    return coefficients * jnp.where(jnp.arange(coefficients.shape[0]) == 0, 1.0, 0.5).astype(coefficients.dtype)


def _pairs(fn, labels):
    return jax.vmap(lambda a: jax.vmap(lambda b: fn(a, b))(labels))(labels)


def _mix(mixing, moments):
    return jax.lax.complex(mixing @ moments.real, mixing @ moments.imag)


def _complex(a):
    return jax.lax.complex(a, jnp.zeros_like(a))


def _turned(a):
    """i·a."""
    return jax.lax.complex(jnp.zeros_like(a), a)


def _wave(angle):
    """e^{i angle}."""
    return jax.lax.complex(jnp.cos(angle), jnp.sin(angle))
