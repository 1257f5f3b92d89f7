"""Isotropic Brownian motion on the sphere, added to any dynamics."""

from typing import ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import sphere
from .._callable import as_parameter
from .._check import is_concrete
from .._types import Array, Float, PRNGKey, Scalar
from ..interaction import Plan
from ..marginal import Marginal
from .around import AbstractAround
from .base import AbstractDynamics, AbstractField, retract
from .radial import RadialField


class Noisy(AbstractAround):
    """dx_i = velocity_i dt + σ P_{x_i} ∘ dW_i: the law moves with generator ½σ²Δ + velocity·∇ (theory.md 1.9).

    Under noise alone a harmonic of degree l decays like e^{−σ² l(l+d−2)t/2}. `flow` integrates with equal steps no longer
    than `step` that end on the save times, by a splitting of weak order 2 (`Splitting`), so `rtol` and `atol` play no part.

    Args:
        dynamics: any dynamics on the sphere.
        sigma: σ ≥ 0.
        key: the path of the noise; the same key and times give the same path. `jax.vmap` over keys gives an ensemble.
        step: longest time step. The law's error is O(step²).

    Raises:
        ValueError: when σ < 0 or step ≤ 0, and when dynamics are radial, whose state is not on the sphere.

    Source: arXiv 2606.05140.

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> noisy = mf.Noisy(mf.USA(mf.Dot()), sigma=0.5, key=jax.random.key(1))
        >>> mf.flow(noisy, x, mf.Marginal.circle(4), jnp.asarray([0.0, 1.0])).final.shape
        (4, 3)
    """

    dynamics: AbstractDynamics
    sigma: Float[Array, ""] = eqx.field(converter=as_parameter)
    key: PRNGKey
    step: Float[Array, ""] = eqx.field(converter=as_parameter, default=0.05)

    def __check_init__(self):
        if is_concrete(self.sigma) and not np.all(np.asarray(self.sigma) >= 0):
            raise ValueError(f"sigma={self.sigma}: pass sigma ≥ 0")
        if is_concrete(self.step) and not np.all(np.asarray(self.step) > 0):
            raise ValueError(f"step={self.step}: pass step > 0, a time much shorter than 1/sigma² and 1/speed")

    def bind(self, rho: Marginal, d: int, dtype, method: str | Plan) -> "NoisyField":
        """The drift for fixed labels, with the noise beside it."""
        drift = self.dynamics.bind(rho, d, dtype, method)
        if isinstance(drift, (RadialField, NoisyField)):
            raise ValueError(f"Noisy needs a dynamics on the sphere, got {type(self.dynamics).__name__}")
        return NoisyField(drift, self.sigma.astype(dtype), self.key, self.step.astype(dtype), drift.method)


class NoisyField(AbstractField):
    """The drift of a noisy dynamics; `sigma`, `key` and `step` are read by `Splitting` and `Landing`."""

    drift: AbstractField
    sigma: Float[Array, ""]
    key: PRNGKey
    step: Float[Array, ""]
    method: str = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The velocity without noise."""
        return self.drift(x)


def brownian_step(key: PRNGKey, x: Float[Array, "n d"], variance: Scalar) -> Float[Array, "n d"]:
    """x after Brownian motion for σ²t = `variance`, by one geodesic x ← exp_x(√τ P_x ξ), ξ standard normal.

    τ = variance/(1 + variance·(d−2)/6). The mean over a geodesic sphere of radius r is 1 + r²Δ/(2m) +
    r⁴(Δ² + ⅔(m−1)Δ)/(8m(m+2)) + O(r⁶) with m = d−1, so this τ leaves an error O(variance³) in the law of a step.
    """
    d = x.shape[-1]
    spread = jnp.sqrt(variance / (1 + variance * (d - 2) / 6))
    return sphere.exp(x, spread * sphere.project(x, jax.random.normal(key, x.shape, x.dtype)))


class Splitting(diffrax.AbstractSolver):
    """Strang splitting of weak order 2: half a step of noise, a midpoint step of drift, half a step of noise.

    Two velocities a step. The key of a step is that of the flow folded with the start time and the step's number, so that
    the path does not depend on rounding, and the reverse pass sees the forward pass's noise.
    """

    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

    def order(self, terms):
        """Weak order."""
        return 2

    def init(self, terms, t0, t1, y0, args):
        """The number of the next step, and the time where the flow began."""
        return jnp.zeros((), jnp.int32), t0

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """One step on the sphere."""
        count, start = solver_state
        first, second = jax.random.split(jax.random.fold_in(_fold_time(args.key, start), count))
        h = t1 - t0
        half = args.sigma**2 * h / 2
        x = brownian_step(first, y0, half)
        middle = x + h / 2 * terms.vf(t0, x, args)
        x = retract(args, x + h * terms.vf(t0 + h / 2, middle, args))
        x = brownian_step(second, x, half)
        return x, None, {"y0": y0, "y1": x}, (count + 1, start), diffrax.RESULTS.successful

    def func(self, terms, t0, y0, args):
        """The drift."""
        return terms.vf(t0, y0, args)


def _fold_time(key, t):
    bits = jax.lax.bitcast_convert_type(t.astype(jnp.float32), jnp.int32)
    return jax.random.fold_in(key, bits)


class Landing(diffrax.AbstractStepSizeController):
    """Equal steps no longer than `step` between neighbouring `times`, so that nothing is interpolated across noise."""

    step: Scalar
    times: Float[Array, " T"]

    def wrap(self, direction):
        """Flows go forward in time."""
        return self

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        """The end of the first step."""
        return self._next(t0), None

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        """Keeps every step."""
        return True, t1, self._next(t1), False, None, diffrax.RESULTS.successful

    def _next(self, t):
        later = jnp.where(self.times > t, self.times, jnp.inf)
        target = jnp.min(later)
        gap = jnp.where(jnp.isfinite(target), target - t, self.step)
        pieces = jnp.maximum(jnp.ceil(gap / self.step * (1 - 8 * jnp.finfo(t.dtype).eps)), 1)
        return jnp.where(pieces > 1, t + gap / pieces, jnp.where(jnp.isfinite(target), target, t + gap))
