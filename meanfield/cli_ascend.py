"""`meanfield ascend`: a certified maximiser from the shell."""

import pathlib
import sys
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Literal, get_args, get_type_hints

import jax
import numpy as np
import tyro
import xarray as xr

from . import _run
from ._kernel_options import KernelOptions
from .ascent import Maximiser
from .ascent import ascend as maximise
from .files import write_zarr
from .marginal import Marginal
from .plot.ascent import maximiser as draw
from .plot.style import save


@dataclass(frozen=True)
class AscendOptions(KernelOptions):
    """What to maximise and where to write it."""

    config: pathlib.Path | None = None
    """TOML file with these options by name, for all that the command line leaves at its default."""
    n: int = 60
    """Labels."""
    d: int = 3
    """Dimension of R^d; tokens live on the sphere S^{d-1}."""
    beta: float = 2.0
    """Inverse temperature; 0 is the linear kernel."""
    factor: Literal["none", "cosine", "decay", "gaussian"] = "cosine"
    """Position factor g of the label difference τ: offset + cos(scale τ), e^{-scale |τ|}, e^{-τ²/(2 scale²)}."""
    restarts: int = 64
    """Starts."""
    budget: int = 2000
    """Energy evaluations per start."""
    certify: Literal["no", "cheap", "default", "tight"] = "default"
    """How much to spend on the upper bound."""
    dtype: Literal["float64", "float32"] = "float64"
    """Floating precision of the ascent; bounds are always float64."""
    seed: int = 0
    """Seed of the starts and of random labels."""
    out: pathlib.Path = pathlib.Path("runs/ascend")
    """Folder of the results."""


def ascend(options: Annotated[AscendOptions, tyro.conf.arg(name="")]) -> int:
    """Maximise the energy at fixed labels; writes maximiser.png, maximiser.zarr and run.json."""
    options = _configured(options)
    with jax.enable_x64(options.dtype == "float64"):
        with _run.recorded(options.out, "ascend", asdict(options), options.seed) as results:
            key, label_key = jax.random.split(jax.random.key(options.seed))
            rho = options.marginal(options.n, label_key)
            certify = {"no": False, "default": True}.get(options.certify, options.certify)
            best = maximise(
                options.kernel(), rho, options.d, key, options.restarts, certify=certify, budget=options.budget
            )
            results |= summary(best)
            write_zarr(options.out / "maximiser.zarr", dataset(best, rho))
            save(draw(best, rho, options.cyclic), options.out / "maximiser.png")
    sys.stdout.writelines(f"{name}: {value}\n" for name, value in results.items())
    sys.stdout.write(f"written to {options.out}\n")
    return 0 if best.status == "converged" else 1


def summary(best: Maximiser) -> dict:
    """What is worth printing of a maximiser."""
    return {
        "energy": float(best.energy),
        "upper bound": best.upper_bound,
        "gap": best.gap,
        "bound by": best.bound.method or best.bound.reason,
        "status": best.status,
        "gradient norm": float(best.gradient_norm),
        "largest curvature": float(best.curvature),
        "restarts at the best energy": int(np.sum(np.asarray(best.energies) > float(best.energy) * (1 - 1e-5))),
    }


def dataset(best: Maximiser, rho: Marginal) -> xr.Dataset:
    """A maximiser with its labels and weights as an `xarray.Dataset`."""
    return xr.Dataset(
        {
            "x": (("token", "coordinate"), np.asarray(best.x)),
            "weight": ("token", np.asarray(rho.weights)),
            "energies": ("restart", np.asarray(best.energies)),
        },
        {"label": ("token", np.asarray(rho.labels))},
        {name: str(value) for name, value in summary(best).items()},
    )


def _configured(options: AscendOptions) -> AscendOptions:
    """Options of the TOML file for whatever the command line left at its default."""
    if options.config is None:
        return options
    values = tomllib.loads(options.config.read_text(encoding="utf-8"))
    known = {f.name: f for f in fields(options)}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"{options.config} has unknown options {', '.join(unknown)}: use {', '.join(known)}")
    default = AscendOptions()
    left = {name: value for name, value in values.items() if getattr(options, name) == getattr(default, name)}
    return replace(options, **{name: _typed(getattr(default, name), value, name) for name, value in left.items()})


def _typed(default, value, name: str):
    """A TOML value as the type of the option's default, one of its choices where it has any."""
    choices = get_args(get_type_hints(AscendOptions)[name]) if isinstance(default, str) else ()
    if choices and value not in choices:
        raise ValueError(f"{name} = {value!r} in the TOML file: use one of {', '.join(choices)}")
    if isinstance(default, tuple):
        return tuple(float(v) for v in value)
    if isinstance(default, float) and isinstance(value, int):
        return float(value)
    if isinstance(default, pathlib.Path):
        return pathlib.Path(value)
    if type(value) is not type(default):
        raise ValueError(f"{name} = {value!r} in the TOML file: expected a {type(default).__name__}")
    return value
