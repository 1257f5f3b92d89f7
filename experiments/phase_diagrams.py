"""(t, β) phase diagrams of the order parameter and the number of clusters: USA, SA, RoPE, and SA with a frozen prefix."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.sparse.csgraph import connected_components
from scipy.stats import spearmanr

import meanfield as mf

from ._claims import Claim

TOLERANCE, END = 0.1, 1000.0
NAMES = ("USA", "SA", "RoPE", "prefix")


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Writes phase_diagrams.zarr and two figures; d = 3, times on a logarithmic scale to 1000."""
    n = 16 if smoke else 64
    betas = np.array([0.5, 4.0, 9.0]) if smoke else np.linspace(0.5, 10, 14)
    seeds = np.arange(1 if smoke else 2) + seed
    times = np.concatenate([[0.0], np.geomspace(0.05, 100.0 if smoke else END, 9 if smoke else 30)])
    data = xr.concat(
        [diagram(name, n, betas, seeds, times) for name in NAMES],
        xr.DataArray(list(NAMES), dims="dynamics", name="dynamics"),
    )
    mf.files.write_zarr(out / "phase_diagrams.zarr", data)
    for quantity in ("order", "clusters"):
        draw(out, data, quantity)
    mean = data.mean("seed")
    hot, cold = mean.sel(beta=betas[betas <= 1]), mean.sel(beta=betas[betas >= 9])
    last = float(data.time[-1])
    return [
        Claim("every run reached its last time (share)", float(data.ok.mean()), 1.0, ">="),
        Claim(f"USA, SA at β ≤ 1: least order parameter at t = {last:g}", float(hot.order.sel(dynamics=["USA", "SA"]).isel(time=-1).min()), 0.99, ">="),
        Claim(f"SA at β ≥ 9: least mean number of clusters at t = {last:g} (metastable)", float(cold.clusters.sel(dynamics="SA").isel(time=-1).min()), 1.5, ">="),
        Claim("RoPE at β ≤ 1: distance of the order parameter from |u_3| of the orbit {R_ξᵀu}, labels all round the circle", float(abs(hot.order - hot.axis).sel(dynamics="RoPE").isel(time=-1).max()), 0.01),
        Claim("RoPE at β ≤ 1: least order parameter of Q_i x_i at the last time", float(hot.aligned.sel(dynamics="RoPE").isel(time=-1).min()), 0.99, ">="),
        Claim("prefix at β ≤ 1: least alignment with the prefix at the last time", float(hot.aligned.sel(dynamics="prefix").isel(time=-1).min()), 0.99, ">="),
        Claim("SA: rank correlation of β and the time to order 0.9", delay(mean.sel(dynamics="SA")), 0.9, ">="),
    ]  # fmt: skip


def dynamics_of(name: str, beta: jax.Array, pole: jax.Array) -> mf.AbstractDynamics:
    """The dynamics of one panel. USA with shift=1: time in units of e^{−β}, so that panels share an axis."""
    kernel = mf.ExpDot(beta, shift=1.0)
    if name == "USA":
        return mf.USA(kernel)
    if name == "RoPE":
        return mf.SA(mf.RoPE(kernel, jnp.array([1.0])))
    return mf.SA(kernel, prefix=mf.Prefix(pole[None], jnp.array([0.5])) if name == "prefix" else None)


def diagram(name: str, n: int, betas: np.ndarray, seeds: np.ndarray, times: np.ndarray) -> xr.Dataset:
    """Order, clusters and alignment (of Q_i x_i for RoPE, with the prefix token for prefix) over β, seed and time."""
    rho, pole = mf.Marginal.circle(n), jnp.eye(3)[2]

    def point(beta, seed):
        x0 = mf.sphere.sample(jax.random.fold_in(jax.random.key(11), seed), (n, 3))
        dynamics = dynamics_of(name, beta, pole)
        options = {"throw": False, "max_steps": 32768, "save": ("x", "order")}
        traj = mf.flow(dynamics, x0, rho, jnp.asarray(times), rtol=1e-5, **options)
        x = traj.x
        if name == "RoPE":
            x = jax.vmap(lambda one: jax.vmap(dynamics.kernel.rotate)(rho.labels, one))(x)
        aligned = x.mean(1) @ pole if name == "prefix" else jnp.linalg.norm(x.mean(1), axis=-1)
        return {"order": traj.order, "aligned": aligned, "axis": jnp.abs(x.mean(1) @ pole), "turned": x, "ok": traj.ok}

    ds = mf.sweep(point, {"beta": betas, "seed": seeds}, name=f"phase diagram {name}")
    clusters = np.apply_along_axis(_clusters, -1, ds.turned.values.reshape(len(betas), len(seeds), len(times), -1), n)
    axes = ("beta", "seed", "time")
    columns = {
        "order": (axes, ds.order.values),
        "aligned": (axes, ds.aligned.values),
        "axis": (axes, ds.axis.values),
        "clusters": (axes, clusters),
    }
    return xr.Dataset({**columns, "ok": (axes[:2], ds.ok.values)}, {"beta": betas, "seed": seeds, "time": times})


def _clusters(flat: np.ndarray, n: int) -> float:
    """Connected components of tokens within TOLERANCE; NaN where the flow did not come so far."""
    x = flat.reshape(n, -1)
    if not np.isfinite(x).all():
        return np.nan
    return connected_components(x @ x.T >= np.cos(TOLERANCE), directed=False)[0]


def delay(mean: xr.Dataset) -> float:
    """Spearman correlation of β with the first time at which the order parameter is 0.9, where it comes so far."""
    above = mean.order.transpose("beta", "time").values >= 0.9
    reached = above.any(1)
    return float(spearmanr(mean.beta.values[reached], mean.time.values[above.argmax(1)][reached]).statistic)


def draw(out: pathlib.Path, data: xr.Dataset, quantity: str) -> None:
    """One panel per dynamics, β across, time up."""
    from matplotlib.colors import LogNorm

    titles = {"USA": "USA", "SA": "SA", "RoPE": "SA with RoPE", "prefix": "SA, prefix token"}
    if quantity == "clusters":
        titles["RoPE"] = "SA with RoPE, Q$_i$x$_i$"
    with mf.plot.style():
        fig = mf.plot.figure(7.4, 2.7)
        axes = fig.subplots(1, len(NAMES), sharey=True)
        for ax, name in zip(axes, NAMES, strict=True):
            mean = data.sel(dynamics=name).mean("seed").isel(time=slice(1, None))
            values = mean[quantity].transpose("time", "beta").values
            options = {"norm": LogNorm(1, data.clusters.max())} if quantity == "clusters" else {"vmin": 0, "vmax": 1}
            mesh = ax.pcolormesh(mean.beta, mean.time, values, shading="nearest", **options)
            ax.set(yscale="log", xlabel="β", title=titles[name])
            ax.grid(False)
        axes[0].set_ylabel("time (USA: unit e$^{-β}$)")
        label = "order parameter ‖Σ w$_i$x$_i$‖" if quantity == "order" else f"clusters ({TOLERANCE:g} rad)"
        fig.colorbar(mesh, ax=axes, label=label)
        mf.plot.save(fig, out / f"phase_{quantity}.png")
