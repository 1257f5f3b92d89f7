"""Axially symmetric stationary laws of noisy USA: p ∝ e^{2V/σ²}, V(x) = ∫ e^{β⟨x,y⟩}/β p(y) dy, on a quadrature in ⟨x, e⟩."""

import numpy as np
from scipy.special import roots_gegenbauer


class Axial:
    """Laws on S^{d−1} that depend on t = ⟨x, e⟩ alone: nodes, their uniform-law weights, and the pair potential."""

    def __init__(self, beta: float, d: int, nodes: int = 96):
        if d == 2:
            angle = (np.arange(nodes) + 0.5) * np.pi / nodes
            self.t, self.weight = np.cos(angle), np.full(nodes, 1 / nodes)
            u, w = np.array([-1.0, 1.0]), np.array([0.5, 0.5])
        else:
            self.t, weight = roots_gegenbauer(nodes, d / 2 - 1)
            # roots_gegenbauer has the weight (1 − t²)^{α − 1/2}, the uniform law (1 − t²)^{(d−3)/2}
            self.weight = weight / weight.sum()
            if d == 3:
                u, w = np.cos((np.arange(nodes) + 0.5) * np.pi / nodes), np.full(nodes, 1 / nodes)
            else:
                u, w = roots_gegenbauer(nodes, (d - 3) / 2)
                w = w / w.sum()
        s = np.sqrt(1 - self.t**2)
        inner = self.t[:, None, None] * self.t[None, :, None] + (s[:, None] * s[None, :])[:, :, None] * u
        self.pair = (np.exp(beta * inner) @ w) / beta

    def order(self, variance: float, start: float = 20.0, steps: int = 1500) -> float:
        """R = ∫ t p of the fixed point p ∝ e^{2V/σ²} reached from a concentrated law (`start` > 0) at σ² = `variance`."""
        p = self.weight * np.exp(start * (self.t - 1))
        p /= p.sum()
        for _ in range(steps):
            log = 2 * (self.pair @ p) / variance
            new = self.weight * np.exp(log - log.max())
            new /= new.sum()
            if np.abs(new - p).sum() < 1e-8:
                break
            p = new
        return float(self.t @ new)
