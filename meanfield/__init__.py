"""Transformers as dynamical systems: token flows on the sphere, certified maximisers, propagation of influence."""

import importlib as _importlib

# Submodules that bring heavy dependencies (xarray, zarr, pyplot, flax, ott) load on first use (PEP 562).
_LAZY = ("ascent", "cli", "design", "observables", "plot", "pretrained", "propagation", "theory")


def __getattr__(name: str):
    if name in _LAZY:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_LAZY])
