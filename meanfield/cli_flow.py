"""`meanfield flow`: one simulation from the shell."""

import math
import pathlib
import sys
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import tyro

from . import _run, distributed, observables, plot, sphere
from .dynamics import SA, USA, AbstractDynamics
from .dynamics.refuse import refuse_values
from .files import write_zarr
from .flow import flow as integrate
from .kernels import AbstractKernel, Cosine, Dot, ExpDot, ExponentialDecay, Gaussian, RoPE, Toeplitz
from .marginal import Marginal
from .trajectory import Trajectory


@dataclass(frozen=True)
class FlowOptions:
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
    beta: float = 1.0
    """Inverse temperature; 0 is the linear model."""
    shift: float = 0.0
    """e^{beta (t - shift)}: 1 keeps large beta from overflowing and only rescales time."""
    labels: Literal["circle", "interval", "positions", "uniform"] = "circle"
    """circle: 2πi/n; interval: [0, 1]; positions: 0 … n-1; uniform: random angles."""
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
            rho = _marginal(options, label_key)
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


def _marginal(options: FlowOptions, key) -> Marginal:
    if options.labels == "circle":
        return Marginal.circle(options.n)
    if options.labels == "interval":
        return Marginal.interval(options.n)
    if options.labels == "positions":
        return Marginal.positions(options.n)
    return Marginal.sample(key, options.n, lambda k, n: jax.random.uniform(k, (n,), maxval=2 * math.pi))


def _kernel(options: FlowOptions) -> AbstractKernel:
    kernel = Dot() if options.beta == 0 else ExpDot(options.beta, options.shift)
    if options.gauge == "rope":
        kernel = RoPE(kernel, jnp.asarray(options.frequencies))
    if options.factor == "cosine":
        return Toeplitz(Cosine(options.scale, options.offset), kernel)
    if options.factor == "decay":
        return Toeplitz(ExponentialDecay(options.scale), kernel)
    if options.factor == "gaussian":
        return Toeplitz(Gaussian(options.scale), kernel)
    return kernel


def _dynamics(options: FlowOptions) -> AbstractDynamics:
    make = USA if options.dynamics == "usa" else SA
    return make(_kernel(options), rotate_values=options.rotate_values, causal=options.causal)


def _write(options: FlowOptions, traj: Trajectory) -> dict:
    cyclic = options.labels in ("circle", "uniform")
    colours = {"cyclic": cyclic, "label": "label ξ (angle)" if cyclic else "label ξ"}
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
