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

from .._products import einsum, matmul
from .._types import Array, DType, Float, PyTree

UNROLLED = 64


class AbstractHarmonics(eqx.Module):
    """Sums Σ_j P(⟨q_i, k_j⟩) V_j of polynomials P of one degree, through moments of the sources.

    Coordinates and columns come first, (d, n) and (c, n): every operation then runs along contiguous tokens. `pointwise`: evaluation needs no table per token, so that all tokens can be evaluated in one pass.
    """

    degree: eqx.AbstractVar[int]
    d: eqx.AbstractVar[int]
    pointwise: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def moments(self, k: Float[Array, "d m"], values: Float[Array, "c m"]) -> PyTree[Array]:
        """Σ_j basis(k_j) V_j."""

    @abc.abstractmethod
    def nothing(self, columns: int, dtype: DType) -> PyTree[Array]:
        """The moments of no sources."""

    @abc.abstractmethod
    def weigh(self, coefficients: Float[Array, " terms"], moments: PyTree[Array]) -> PyTree[Array]:
        """Moments times the coefficients of P."""

    @abc.abstractmethod
    def turn(self, coefficients: Float[Array, " terms"], moments: PyTree[Array]) -> PyTree[Array]:
        """Weighted moments of the torque Σ_j P'(⟨q_i, k_j⟩) (q_i × k_j) V_j: axes · c columns, one axis in d = 2."""

    @abc.abstractmethod
    def evaluate(self, q: Float[Array, "d n"], weighted: PyTree[Array]) -> Float[Array, "c n"]:
        """Σ basis(q_i) · weighted moments."""


class Circle(AbstractHarmonics):
    """S¹: cos l(α − γ) = Re(u^l v̄^l) for u = e^{iα}, v = e^{iγ}."""

    degree: int = eqx.field(static=True)
    d: int = eqx.field(static=True, default=2)
    pointwise: bool = eqx.field(static=True, default=True)

    def moments(self, k, values):
        """(2(L+1), c): u^{ra+b} V summed as one product of the few u^{ra} V and u^b, b < r."""
        radix, count = _split(self.degree)
        small, step = successive(*_direction(k[0], k[1]), radix)
        large, _ = successive(*step, count)
        wide = (large[:, :, None] * values).reshape(-1, k.shape[1])
        sums = matmul(wide, small.reshape(-1, k.shape[1]).T).reshape(2, count, -1, 2, radix)
        real, imaginary = sums[0, :, :, 0] - sums[1, :, :, 1], sums[0, :, :, 1] + sums[1, :, :, 0]
        rows = (a.swapaxes(1, 2).reshape(count * radix, -1)[: self.degree + 1] for a in (real, imaginary))
        return jnp.concatenate(list(rows))

    def nothing(self, columns, dtype):
        """Zeros (2(L+1), c)."""
        return jnp.zeros((2 * (self.degree + 1), columns), dtype)

    def weigh(self, coefficients, moments):
        """Each power times its coefficient."""
        return jnp.concatenate([coefficients, coefficients])[:, None] * moments

    def turn(self, coefficients, moments):
        """The derivative by the angle of q: l·c_l, cosines and sines exchanged."""
        cosine, sine = jnp.split(moments, 2)
        slopes = (coefficients * jnp.arange(self.degree + 1, dtype=coefficients.dtype))[:, None]
        return jnp.concatenate([slopes * sine, -slopes * cosine])

    def evaluate(self, q, weighted):
        """(c, n)."""
        cosine, sine = jnp.split(weighted, 2)
        return horner(*_direction(q[0], q[1]), cosine, sine)


class Sphere(AbstractHarmonics):
    """S²: P_l(⟨u, v⟩) = Σ_m P̃_lm(θ) P̃_lm(θ') cos m(φ − φ'), Σ over the double Fourier series of the P̃_lm."""

    degree: int = eqx.field(static=True)
    d: int = eqx.field(static=True, default=3)
    pointwise: bool = eqx.field(static=True, default=False)

    def moments(self, k, values):
        """Even and odd m, each (L+1, orders·2·c)."""
        theta, turn = self._basis(k)
        return tuple(
            matmul(side, (part[:, :, None, :] * values).reshape(-1, k.shape[1]).T)
            for side, part in zip(theta, turn, strict=True)
        )

    def nothing(self, columns, dtype):
        """Zeros of the shapes of `moments`."""
        size = self.degree + 1
        return tuple(jnp.zeros((size, 2 * orders * columns), dtype) for orders in (-(-size // 2), size // 2))

    def weigh(self, coefficients, moments):
        """(k, m) → (l, m), times c_l, → (k, m)."""
        return self._synthesise(self._analyse(coefficients, moments))

    def turn(self, coefficients, moments):
        """(k, m) → (l, m), times c_l, q × ∇ by its ladder over m, → (k, m) for three axes."""
        return self._synthesise(_rotated(self._analyse(coefficients, moments)))

    def evaluate(self, q, weighted):
        """(c, n)."""
        theta, turn = self._basis(q)
        total = 0
        for side, part, moment in zip(theta, turn, weighted, strict=True):
            orders, _, n = part.shape
            sums = matmul(moment.T, side).reshape(orders, 2, -1, n)
            total = total + jnp.sum(sums * part[:, :, None, :], axis=(0, 1))
        return total

    def _analyse(self, coefficients, moments) -> Float[Array, "l m 2 c"]:
        """Coefficients of P̃_lm cos mφ and P̃_lm sin mφ."""
        tables = zip(_tables(self.degree), moments, strict=True)
        parity = [
            einsum("mlk,kmc->lmc", jnp.asarray(table, part.dtype), part.reshape(part.shape[0], table.shape[0], -1))
            for table, part in tables
        ]
        size = self.degree + 1
        both = jnp.zeros((size, size, parity[0].shape[2]), parity[0].dtype)
        both = both.at[:, 0::2].set(parity[0]).at[:, 1::2].set(parity[1])
        return (coefficients[:, None, None] * both).reshape(size, size, 2, -1)

    def _synthesise(self, harmonic: Float[Array, "l m 2 c"]):
        size = self.degree + 1
        parts = (harmonic[:, 0::2].reshape(size, -(-size // 2), -1), harmonic[:, 1::2].reshape(size, size // 2, -1))
        tables = zip(_tables(self.degree), parts, strict=True)
        return tuple(
            einsum("mlk,lmc->kmc", jnp.asarray(table, part.dtype), part).reshape(size, -1) for table, part in tables
        )

    def _basis(self, u):
        """cos kθ, sin kθ: (L+1, n) each; e^{imφ}: (orders, 2, n) for even and for odd m."""
        square = u[0] ** 2 + u[1] ** 2
        away = square > 0
        planar = jnp.where(away, jnp.sqrt(jnp.where(away, square, 1)), 0)
        cosine, sine = powers(*_direction(u[2], planar), self.degree)
        turn = jnp.stack(powers(*_direction(u[0], u[1]), self.degree), axis=1)
        return (cosine, sine), (turn[0::2], turn[1::2])


def harmonics(d: int, degree: int) -> AbstractHarmonics:
    """The basis for tokens on S^{d−1}, d = 2 or 3."""
    return Circle(degree) if d == 2 else Sphere(degree)


def powers(x: Float[Array, " n"], y: Float[Array, " n"], degree: int) -> tuple[Array, Array]:
    """Real and imaginary parts of (x + iy)^l, l = 0 … degree: (degree + 1, n) each, as (x + iy)^{ra} (x + iy)^b, b < r."""
    radix, count = _split(degree)
    small, step = successive(x, y, radix)
    large, _ = successive(*step, count)
    # the barrier keeps XLA from recomputing every power inside every product
    (c, s), (a, b) = jax.lax.optimization_barrier((small, large))
    real = a[:, None] * c - b[:, None] * s
    imaginary = a[:, None] * s + b[:, None] * c
    return real.reshape(-1, *x.shape)[: degree + 1], imaginary.reshape(-1, *x.shape)[: degree + 1]


def successive(x: Float[Array, " n"], y: Float[Array, " n"], count: int) -> tuple[Array, tuple[Array, Array]]:
    """(x + iy)^l for l < count as (2, count, n), real and imaginary parts, and the pair for l = count.

    Unrolled: a loop of small operations costs more than its arithmetic where XLA hands each to a thread.
    """
    real, imaginary = [jnp.ones_like(x), x], [jnp.zeros_like(y), y]
    while len(real) <= count:
        a, b = real[-1], imaginary[-1]
        real.append(a * x - b * y)
        imaginary.append(a * y + b * x)
    return jnp.stack([jnp.stack(real[:count]), jnp.stack(imaginary[:count])]), (real[count], imaginary[count])


def _split(degree: int) -> tuple[int, int]:
    """r and the number of multiples of it, about equal, that reach all of 0 … degree."""
    radix = max(2, int(np.ceil(np.sqrt(degree + 1))))
    return radix, -(-(degree + 1) // radix)


def horner(
    x: Float[Array, " n"], y: Float[Array, " n"], cosine: Float[Array, "terms c"], sine: Float[Array, "terms c"]
) -> Float[Array, "c n"]:
    """Σ_l Re[(cosine_l − i sine_l)(x + iy)^l] for rows (L+1, c): elementwise over n, in groups of terms that are unrolled."""
    extra = ((0, -cosine.shape[0] % min(UNROLLED, cosine.shape[0])), (0, 0))
    groups = tuple(jnp.pad(a, extra).reshape(-1, min(UNROLLED, a.shape[0]), a.shape[1], 1) for a in (cosine, sine))
    zero = jnp.zeros((cosine.shape[1], x.shape[0]), x.dtype)

    def step(carry, group):
        real, imaginary = carry
        for c, s in zip(*map(reversed, map(list, group)), strict=True):
            real, imaginary = c + (real * x - imaginary * y), (real * y + imaginary * x) - s
        return (real, imaginary), None

    if groups[0].shape[0] == 1:
        return step((zero, zero), [g[0] for g in groups])[0][0]
    return jax.lax.scan(step, (zero, zero), groups, reverse=True)[0][0]


def _direction(x, y):
    """(x, y)/‖(x, y)‖, (1, 0) at the origin."""
    square = x * x + y * y
    away = square > 0
    length = jnp.sqrt(jnp.where(away, square, 1))
    return jnp.where(away, x / length, 1), jnp.where(away, y / length, 0)


def _rotated(harmonic: Float[Array, "l m 2 c"]) -> Float[Array, "l m 2 columns"]:
    """q × ∇ of Σ (C_lm cos mφ + S_lm sin mφ) P̃_lm, for A = C − iS: x −½i(rA_{m−1} + sA_{m+1}), y ½(−r… + s…), z imA_m."""
    up, down = (jnp.asarray(ladder, harmonic.dtype)[:, :, None, None] for ladder in _ladder(harmonic.shape[0]))
    order = jnp.arange(harmonic.shape[1], dtype=harmonic.dtype)[:, None, None]
    outside = ((0, 0), (1, 1), (0, 0), (0, 0))
    padded = jnp.pad(harmonic, outside)
    lower, upper = up * padded[:, :-2], down * padded[:, 2:]
    x, y, z = 0.5 * (lower + upper), 0.5 * (upper - lower), order * harmonic
    return jnp.concatenate([_turned(x, -1), y, _turned(z, 1)], axis=3)


def _turned(a: Float[Array, "l m 2 c"], sign: int) -> Float[Array, "l m 2 c"]:
    """±i (C − iS)."""
    c, s = a[:, :, 0], a[:, :, 1]
    return sign * jnp.stack([s, -c], axis=2)


@functools.lru_cache(maxsize=8)
def _ladder(size: int) -> tuple[np.ndarray, np.ndarray]:
    """√((l+m)(l−m+1)) and √((l−m)(l+m+1)) over (l, m); √2 more between m = 0 and 1, whose P̃ differ by it."""
    l, m = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    up, down = (np.sqrt(np.maximum(a, 0.0)) for a in ((l + m) * (l - m + 1.0), (l - m) * (l + m + 1.0)))
    up[:, 1:2] *= np.sqrt(2)
    down[:, :1] *= np.sqrt(2)
    return np.where(m <= l, up, 0), down


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
