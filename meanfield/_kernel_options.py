"""The kernel and the labels as options of the shell: what `meanfield flow` and `meanfield ascend` share."""

import math
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from ._types import PRNGKey
from .kernels import AbstractKernel, Cosine, Dot, ExpDot, ExponentialDecay, Gaussian, RoPE, Toeplitz
from .marginal import Marginal


@dataclass(frozen=True)
class KernelOptions:
    """An interaction of tokens with labels, by names and numbers."""

    labels: Literal["circle", "interval", "positions", "uniform"] = "circle"
    """circle: 2πi/n; interval: [0, 1]; positions: 0 … n-1; uniform: random angles."""
    beta: float = 1.0
    """Inverse temperature; 0 is the linear model."""
    shift: float = 0.0
    """e^{beta (t - shift)}: 1 keeps large beta from overflowing and only rescales energy and time."""
    gauge: Literal["none", "rope"] = "none"
    """rope: rotate the planes (1,2), (3,4), … by frequency × label."""
    frequencies: tuple[float, ...] = (1.0,)
    """RoPE frequencies, at most d//2."""
    factor: Literal["none", "cosine", "decay", "gaussian"] = "none"
    """Position factor g of the label difference τ: offset + cos(scale τ), e^{-scale |τ|}, e^{-τ²/(2 scale²)}."""
    scale: float = 1.0
    """Frequency, rate or width of the position factor."""
    offset: float = 0.0
    """Offset of the cosine factor."""

    @property
    def cyclic(self) -> bool:
        """Whether labels are angles."""
        return self.labels in ("circle", "uniform")

    def marginal(self, n: int, key: PRNGKey) -> Marginal:
        """n labels of equal weight."""
        if self.labels == "circle":
            return Marginal.circle(n)
        if self.labels == "interval":
            return Marginal.interval(n)
        if self.labels == "positions":
            return Marginal.positions(n)
        return Marginal.sample(key, n, lambda k, n: jax.random.uniform(k, (n,), maxval=2 * math.pi))

    def kernel(self) -> AbstractKernel:
        """The interaction: zonal part, then gauge, then factor."""
        kernel = Dot() if self.beta == 0 else ExpDot(self.beta, self.shift)
        if self.gauge == "rope":
            kernel = RoPE(kernel, jnp.asarray(self.frequencies))
        if self.factor == "cosine":
            return Toeplitz(Cosine(self.scale, self.offset), kernel)
        if self.factor == "decay":
            return Toeplitz(ExponentialDecay(self.scale), kernel)
        if self.factor == "gaussian":
            return Toeplitz(Gaussian(self.scale), kernel)
        return kernel
