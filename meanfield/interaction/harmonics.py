"""Addition theorems: P_l(⟨u, v⟩) as a short sum of products of functions of u and of v (unit vectors, d = 2 or 3).

Both bases are Fourier series in angles, built from few products: bounded by 1 and exact to a few roundings. On S²
the harmonics are a double Fourier series (e^{imφ} times cos kθ for even m, sin kθ for odd m), so that the sums over
tokens are plain matrix products and only the small transform between (k, m) and (l, m) sees Legendre functions.
"""

import abc
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Float, PyTree


class AbstractHarmonics(eqx.Module):
    """Sums Σ_j P(⟨q_i, k_j⟩) V_j of polynomials P of one degree, through moments of the sources."""

    degree: eqx.AbstractVar[int]
    d: eqx.AbstractVar[int]

    @abc.abstractmethod
    def moments(self, k: Float[Array, "m d"], values: Float[Array, "m c"]) -> PyTree[Array]:
        """Σ_j basis(k_j) V_j."""

    @abc.abstractmethod
    def weigh(self, coefficients: Float[Array, " terms"], moments: PyTree[Array]) -> PyTree[Array]:
        """Moments times the coefficients of P."""

    @abc.abstractmethod
    def evaluate(self, q: Float[Array, "n d"], weighted: PyTree[Array]) -> Float[Array, "n c"]:
        """Σ basis(q_i) · weighted moments."""


class Circle(AbstractHarmonics):
    """S¹: cos l(α − γ) = Re(u^l v̄^l) for u = e^{iα}, v = e^{iγ}."""

    degree: int = eqx.field(static=True)
    d: int = eqx.field(static=True, default=2)

    def moments(self, k, values):
        """(2(L+1), c)."""
        return _product(self._basis(k), values)

    def weigh(self, coefficients, moments):
        """Each power times its coefficient."""
        return jnp.concatenate([coefficients, coefficients])[:, None] * moments

    def evaluate(self, q, weighted):
        """(n, c)."""
        return _product(self._basis(q).T, weighted)

    def _basis(self, u):
        return jnp.concatenate(powers(*_direction(u[:, 0], u[:, 1]), self.degree))


class Sphere(AbstractHarmonics):
    """S²: P_l(⟨u, v⟩) = Σ_m P̃_lm(θ) P̃_lm(θ') cos m(φ − φ'), Σ over the double Fourier series of the P̃_lm."""

    degree: int = eqx.field(static=True)
    d: int = eqx.field(static=True, default=3)

    def moments(self, k, values):
        """Even and odd m, each (L+1, orders·2·c)."""
        theta, turn = self._basis(k)
        return tuple(
            _product(side, (part[:, :, None, :] * values.T).reshape(-1, k.shape[0]).T)
            for side, part in zip(theta, turn, strict=True)
        )

    def weigh(self, coefficients, moments):
        """(k, m) → (l, m), times c_l, → (k, m)."""
        return tuple(
            self._transform(table, coefficients, part)
            for table, part in zip(_tables(self.degree), moments, strict=True)
        )

    def evaluate(self, q, weighted):
        """(n, c)."""
        theta, turn = self._basis(q)
        total = 0
        for side, part, moment in zip(theta, turn, weighted, strict=True):
            orders, _, n = part.shape
            sums = _product(moment.T, side).reshape(orders, 2, -1, n)
            total = total + jnp.sum(sums * part[:, :, None, :], axis=(0, 1))
        return total.T

    def _transform(self, table, coefficients, part):
        table = jnp.asarray(table, part.dtype)
        part = part.reshape(part.shape[0], table.shape[0], -1)
        harmonic = _einsum("mlk,kmc->lmc", table, part) * coefficients[:, None, None]
        return _einsum("mlk,lmc->kmc", table, harmonic).reshape(part.shape[0], -1)

    def _basis(self, u):
        """cos kθ, sin kθ: (L+1, n) each; e^{imφ}: (orders, 2, n) for even and for odd m."""
        square = u[:, 0] ** 2 + u[:, 1] ** 2
        away = square > 0
        planar = jnp.where(away, jnp.sqrt(jnp.where(away, square, 1)), 0)
        cosine, sine = powers(*_direction(u[:, 2], planar), self.degree)
        turn = jnp.stack(powers(*_direction(u[:, 0], u[:, 1]), self.degree), axis=1)
        return (cosine, sine), (turn[0::2], turn[1::2])


def harmonics(d: int, degree: int) -> AbstractHarmonics:
    """The basis for tokens on S^{d−1}, d = 2 or 3."""
    return Circle(degree) if d == 2 else Sphere(degree)


def powers(x: Float[Array, " n"], y: Float[Array, " n"], degree: int) -> tuple[Array, Array]:
    """Real and imaginary parts of (x + iy)^l, l = 0 … degree: (degree + 1, n) each, as (x + iy)^{ra} (x + iy)^b, b < r."""
    radix = max(2, int(np.ceil(np.sqrt(degree + 1))))
    small, (x, y) = _successive(x, y, radix)
    large, _ = _successive(x, y, -(-(degree + 1) // radix))
    # the barrier keeps XLA from recomputing every power inside every product
    (c, s), (a, b) = jax.lax.optimization_barrier((small, large))
    real = a[:, None] * c - b[:, None] * s
    imaginary = a[:, None] * s + b[:, None] * c
    return real.reshape(-1, *x.shape)[: degree + 1], imaginary.reshape(-1, *x.shape)[: degree + 1]


def _successive(x, y, count: int):
    """(x + iy)^l for l < count, real and imaginary parts, and for l = count."""
    real, imaginary = [jnp.ones_like(x), x], [jnp.zeros_like(y), y]
    while len(real) <= count:
        a, b = real[-1], imaginary[-1]
        real.append(a * x - b * y)
        imaginary.append(a * y + b * x)
    return (jnp.stack(real[:count]), jnp.stack(imaginary[:count])), (real[count], imaginary[count])


def _direction(x, y):
    """(x, y)/‖(x, y)‖, (1, 0) at the origin."""
    square = x * x + y * y
    away = square > 0
    length = jnp.sqrt(jnp.where(away, square, 1))
    return jnp.where(away, x / length, 1), jnp.where(away, y / length, 0)


@functools.lru_cache(maxsize=8)
def _tables(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Fourier coefficients of P̃_lm = √((2 − δ_m0)(l−m)!/(l+m)!) P_lm: (orders, l, k), of cos kθ (m even), sin kθ (m odd)."""
    count = 2 * degree + 2
    theta = 2 * np.pi * np.arange(count) / count
    z, s = np.cos(theta), np.sin(theta)
    values = np.zeros((degree + 1, degree + 1, count))  # (m, l, θ)
    seed = np.ones(count)
    for m in range(degree + 1):
        values[m, m] = seed
        for l in range(m + 1, degree + 1):
            before = values[m, l - 2] * np.sqrt((l - 1) ** 2 - m * m) if l > m + 1 else 0
            values[m, l] = ((2 * l - 1) * z * values[m, l - 1] - before) / np.sqrt(l * l - m * m)
        seed = seed * s * np.sqrt((2 * m + 1) / (2 * m + 2))
    values[1:] *= np.sqrt(2)
    series = np.fft.rfft(values, axis=2)[:, :, : degree + 1] / count
    series[:, :, 1:] *= 2
    return series.real[0::2], -series.imag[1::2]


def _product(a, b):
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


def _einsum(form, a, b):
    return jnp.einsum(form, a, b, precision=jax.lax.Precision.HIGHEST)
