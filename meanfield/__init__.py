"""Transformers as dynamical systems: token flows on the sphere, certified maximisers, propagation of influence."""

import importlib as _importlib

from . import sphere as sphere
from .dynamics import SA as SA
from .dynamics import USA as USA
from .dynamics import AbstractDynamics as AbstractDynamics
from .dynamics import MultiHead as MultiHead
from .dynamics import Noisy as Noisy
from .dynamics import PeriNorm as PeriNorm
from .dynamics import PreNorm as PreNorm
from .dynamics import attention as attention
from .dynamics import layers as layers
from .dynamics import velocity as velocity
from .energy import energy as energy
from .flow import flow as flow
from .kernels import AbstractGauge as AbstractGauge
from .kernels import AbstractKernel as AbstractKernel
from .kernels import AbstractZonal as AbstractZonal
from .kernels import Cosine as Cosine
from .kernels import Dot as Dot
from .kernels import ExpDot as ExpDot
from .kernels import ExponentialDecay as ExponentialDecay
from .kernels import Gauge as Gauge
from .kernels import Gaussian as Gaussian
from .kernels import Pair as Pair
from .kernels import RoPE as RoPE
from .kernels import Toeplitz as Toeplitz
from .kernels import Zonal as Zonal
from .marginal import Marginal as Marginal
from .prefix import Prefix as Prefix
from .trajectory import FlowError as FlowError
from .trajectory import FlowStatus as FlowStatus
from .trajectory import Trajectory as Trajectory

# Submodules that bring heavy dependencies (xarray, zarr, pyplot, flax, ott) load on first use (PEP 562).
_LAZY = (
    "ascent",
    "cli",
    "design",
    "files",
    "laws",
    "longtime",
    "observables",
    "pages",
    "plot",
    "pretrained",
    "propagation",
    "sweeps",
    "theory",
)
_LAZY_NAMES = {
    "coarsen": "longtime",
    "ascend": "ascent",
    "law": "laws",
    "sweep": "sweeps",
    "view": "pages",
}  # name: submodule, for functions and classes that load on first use


def __getattr__(name: str):
    if name in _LAZY:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY_NAMES:
        return getattr(_importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_LAZY, *_LAZY_NAMES])
