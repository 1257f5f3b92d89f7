"""What a fit remembers while it runs, and what it returns."""

from dataclasses import dataclass, field

import equinox as eqx
import numpy as np

from .._types import Float, PyTree, Scalar


class Fit(eqx.Module):
    """The result of `fit`.

    - `params` after the last update; `best`, those of the lowest loss, and `best_loss`.
    - `history` (k+1,): the loss after 0 … k updates; `gradient_norms` (k+1,): ‖∇ loss‖ there.
    - `status`: "steps" (all were made), "converged" (gradient below tolerance), "patience", "callback", "not finite".

    Examples:
        >>> fit = mf.design.fit(lambda p: jnp.sum(p**2), jnp.ones(2), steps=3, optimizer=optax.sgd(0.1))
        >>> len(fit.history), fit.status
        (4, 'steps')
    """

    params: PyTree
    best: PyTree
    best_loss: float
    history: Float[np.ndarray, " k"]
    gradient_norms: Float[np.ndarray, " k"]
    status: str = eqx.field(static=True)


@dataclass
class Record:
    """The state of a fit: floating leaves, optimizer state, losses, and the best so far."""

    free: PyTree
    state: PyTree
    history: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    best: PyTree = None
    best_at: int = 0
    gradient: PyTree = None
    value: Scalar | None = None
    updates: int = 0

    @property
    def evaluated(self) -> bool:
        return self.gradient is not None

    def add(self, value: Scalar, gradient: PyTree, norm: Scalar) -> None:
        number = float(value)
        if self.best is None or number < self.history[self.best_at]:
            self.best, self.best_at = self.free, self.updates
        self.history.append(number)
        self.norms.append(float(norm))
        self.value, self.gradient = value, gradient

    def advance(self, state: PyTree, free: PyTree) -> None:
        self.state, self.free, self.gradient = state, free, None
        self.updates += 1

    def finish(self, fixed: PyTree, status: str) -> Fit:
        good = self.free if self.evaluated else self.best
        return Fit(
            eqx.combine(good, fixed),
            eqx.combine(self.best, fixed),
            self.history[self.best_at],
            np.asarray(self.history),
            np.asarray(self.norms),
            status,
        )
