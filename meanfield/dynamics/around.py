"""Dynamics built around another one: noise, radii."""

import equinox as eqx

from .._types import DType
from ..kernels import AbstractKernel
from ..prefix import Prefix
from .base import AbstractDynamics, require_dynamics
from .refuse import refuse_values


class AbstractAround(AbstractDynamics):
    """A dynamics that changes how the tokens of `dynamics` move; energies are those of its kernel and prefix."""

    dynamics: eqx.AbstractVar[AbstractDynamics]

    def __check_init__(self):
        require_dynamics(self.dynamics)

    @property
    def kernel(self) -> AbstractKernel | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the dynamics."""
        return self.dynamics.kernel

    @property
    def prefix(self) -> Prefix | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the dynamics."""
        return self.dynamics.prefix


@refuse_values.register
def _(dynamics: AbstractAround, dtype: DType):
    refuse_values(dynamics.dynamics, dtype)
