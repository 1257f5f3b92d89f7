"""`meanfield flow`: one simulation from the shell."""

import pathlib
import sys
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import tyro

from . import _run, distributed, observables, plot, sphere
from ._kernel_options import KernelOptions
from .dynamics import SA, USA, AbstractDynamics
from .dynamics.refuse import refuse_values
from .files import write_zarr
from .flow import flow as integrate
from .trajectory import Trajectory


@dataclass(frozen=True)
class FlowOptions(KernelOptions):
    """What to simulate and where to write it."""

    n: int = 128
    """Tokens."""
    d: int = 3
    """Dimension of R^d; tokens live on the sphere S^{d-1}."""
    end: float = 20.0
    """Last time (dimensionless)."""
    frames: int = 81
    """Saved times, equispaced from 0."""
    dynamics: Literal["usa", "sa"] = "usa"
    """usa: gradient flow of the energy; sa: softmax attention."""
    rotate_values: bool = True
    """Whether a gauge also rotates the values (off: a standard transformer)."""
    causal: bool = False
    """Token j acts on i only where its label is not larger."""
    rtol: float = 1e-6
    """Relative tolerance of the integrator."""
    film: Literal["none", "gif", "mp4"] = "none"
    """Also write the flow as a film."""
    dtype: Literal["float64", "float32"] = "float64"
    """Floating precision."""
    seed: int = 0
    """Seed of the initial tokens and of random labels."""
    out: pathlib.Path = pathlib.Path("runs/flow")
    """Folder of the results."""


def flow(options: Annotated[FlowOptions, tyro.conf.arg(name="")]) -> int:
    """Simulate tokens on the sphere with frozen labels; writes figures, trajectory.zarr and run.json."""
    with jax.enable_x64(options.dtype == "float64"):
        with _run.recorded(options.out, "flow", asdict(options), options.seed) as results:
            key, label_key = jax.random.split(jax.random.key(options.seed))
            rho = options.marginal(options.n, label_key)
            if options.frames < 2 or not options.end > 0:
                raise ValueError(f"frames={options.frames}, end={options.end}: pass frames ≥ 2 and end > 0")
            ts = jnp.linspace(0.0, options.end, options.frames)
            x0 = sphere.sample(key, (options.n, options.d))
            dynamics = _dynamics(options)
            refuse_values(dynamics, x0.dtype)
            # a flow that gives up still leaves what it reached
            traj = integrate(
                dynamics, x0, rho, ts, rtol=options.rtol, progress=True, throw=False, devices=distributed.devices()
            )
            traj = distributed.local(traj)
            results |= _write(options, traj)
    sys.stdout.write(f"{traj.explain()}\n")
    sys.stdout.writelines(f"{name}: {value}\n" for name, value in results.items())
    sys.stdout.write(f"written to {options.out}\n")
    return 0 if bool(traj.ok) else 1


def _dynamics(options: FlowOptions) -> AbstractDynamics:
    make = USA if options.dynamics == "usa" else SA
    return make(options.kernel(), rotate_values=options.rotate_values, causal=options.causal)


def _write(options: FlowOptions, traj: Trajectory) -> dict:
    colours = {"cyclic": options.cyclic, "label": "label ξ (angle)" if options.cyclic else "label ξ"}
    write_zarr(options.out / "trajectory.zarr", traj.to_xarray())
    plot.save(plot.tokens(traj, **colours), options.out / "tokens.png")
    plot.save(plot.traces(traj), options.out / "traces.png")
    if options.film != "none":
        plot.animate(traj, options.out / f"flow.{options.film}", **colours)
    counts = observables.count_clusters(traj.final)
    clusters = {f"{angle:g}": int(count) for angle, count in zip(observables.TOLERANCES, counts, strict=True)}
    return {
        "order": float(observables.order_parameter(traj.final, traj.weights)),
        "energy": float(traj.energy[-1]) if traj.energy is not None else None,
        "clusters at tolerance": clusters,
        "effective dimension": float(observables.effective_dimension(traj.final, traj.weights)),
        "collapse time (1 - order <= 1e-3)": float(observables.collapse_time(traj)),
    }
