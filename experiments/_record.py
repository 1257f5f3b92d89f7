"""What the dynamics experiments share: sizes, starts, measurements, and how numbers and figures are written."""

import pathlib

import jax
import jax.numpy as jnp

import meanfield as mf

SIZES = (64, 128, 256)
COLLAPSED = 1e-3  # radians: tokens closer than this are one cluster


def sizes(smoke: bool) -> tuple[int, ...]:
    """Numbers of tokens of a dynamics experiment."""
    return (12,) if smoke else SIZES


def times(end: float = 20.0, frames: int = 81) -> jax.Array:
    """Equispaced save times from 0 (one number of frames, so that flows of one kernel compile once)."""
    return jnp.linspace(0.0, end, frames)


def start(n: int, seed: int, d: int = 3) -> jax.Array:
    """Independent uniform tokens (n, d) of a seed."""
    return mf.sphere.sample(jax.random.fold_in(jax.random.key(seed), n), (n, d))


def simulate(
    dynamics: mf.AbstractDynamics, x0: jax.Array, rho: mf.Marginal, ts: jax.Array | None = None
) -> mf.Trajectory:
    """The flow to t = 20 (no reverse mode is needed, which compiles faster)."""
    return mf.flow(dynamics, x0, rho, times() if ts is None else ts, adjoint="forward")


def in_gauge(gauge: mf.AbstractGauge, rho: mf.Marginal, x: jax.Array) -> jax.Array:
    """Q_ξ x for every token: where the gauge flow is the plain flow."""
    return jax.vmap(gauge.rotate)(rho.labels, x)


def orbit_error(gauge: mf.AbstractGauge, run: mf.Trajectory, rho: mf.Marginal) -> jax.Array:
    """max_i ‖x_i − Q_ξᵀ u‖ at the end, u the common direction of the Q_ξ x_i: 0 on an orbit of the gauge."""
    y = in_gauge(gauge, rho, run.final)
    u = mf.sphere.normalize(rho.weights @ y)
    return jnp.max(jnp.linalg.norm(y - u, axis=1))


def energy_defect(run: mf.Trajectory, maximum: float | jax.Array) -> jax.Array:
    """|E(end)/maximum − 1|."""
    return jnp.abs(run.energy[-1] / maximum - 1)


def energy_drop(run: mf.Trajectory) -> jax.Array:
    """The largest decrease of the energy between saved times, relative to its size (0 along a gradient flow)."""
    return jnp.max(jnp.maximum(-jnp.diff(run.energy), 0)) / jnp.max(jnp.abs(run.energy))


def clusters(run: mf.Trajectory, tolerance: float = COLLAPSED) -> int:
    """Number of clusters at the end."""
    return int(mf.observables.count_clusters(run.final, tolerance))


def worst(values) -> float:
    """The largest of measured numbers, NaN if any is NaN: a claim is as good as its worst case."""
    return float(jnp.max(jnp.asarray([float(value) for value in values])))


def least(values) -> float:
    """The smallest of measured numbers, NaN if any is NaN."""
    return float(jnp.min(jnp.asarray([float(value) for value in values])))


def save_runs(out: pathlib.Path, runs: dict[str, mf.Trajectory], log_time: bool = False) -> None:
    """Writes all trajectories, one group each, to `out`/trajectories.zarr, and R and E against time to traces.png."""
    import xarray as xr

    tree = xr.DataTree.from_dict({name: run.to_xarray() for name, run in runs.items()})
    mf.files.write_zarr(out / "trajectories.zarr", tree)
    mf.plot.save(mf.plot.traces(runs, log_time=log_time), out / "traces.png")


def save_table(out: pathlib.Path, name: str, rows: list[dict]) -> None:
    """Writes rows of equal keys as `out`/`name`.csv."""

    def cell(value) -> str:
        return value if isinstance(value, str) else f"{float(value):.10g}"

    lines = [",".join(rows[0])] + [",".join(cell(value) for value in row.values()) for row in rows]
    mf.files.write_text(out / f"{name}.csv", "\n".join(lines) + "\n")


def save_panels(out: pathlib.Path, name: str, panels: dict[str, tuple], columns: int = 3) -> None:
    """Writes `out`/`name`.png: one sphere per {title: (tokens or trajectory, keyword arguments of mf.plot.tokens)}."""
    rows = -(-len(panels) // columns)
    with mf.plot.style():
        fig = mf.plot.figure(3.3 * min(columns, len(panels)), 2.9 * rows)
        axes = fig.subplots(rows, min(columns, len(panels)), squeeze=False).ravel()
        for ax in axes[len(panels) :]:
            ax.remove()
        for ax, (title, (x, options)) in zip(axes, panels.items(), strict=False):
            mf.plot.tokens(x, ax=ax, title=title, **options)
    mf.plot.save(fig, out / f"{name}.png")
