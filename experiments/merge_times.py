"""Merge times grow exponentially in β: two clusters against the quadrature, and random starts over seeds with the fit."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import meanfield as mf

from ._claims import Claim
from ._record import worst

START, END = 2.0, 0.5
RADIUS = 0.1


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Writes merge_times.zarr and merge_times.png; β = 2 … 8."""
    betas = np.array([2.0, 4.0, 6.0]) if smoke else np.arange(2.0, 8.5, 1.0)
    seeds = np.arange(2 if smoke else 6) + seed
    pair, exact = two_clusters(betas), np.array([mf.theory.two_cluster_time(b, START, END) for b in betas])
    crowd, found = random_starts(betas, seeds, 12 if smoke else 24)
    data = xr.Dataset(
        {
            "pair_time": ("beta", pair, {"long_name": "time of two equal clusters from angle 2 to 0.5"}),
            "pair_quadrature": ("beta", exact, {"long_name": "the same by quadrature"}),
            "last_merge": (("beta", "seed"), crowd, {"long_name": "time of the last merge, SA on the circle"}),
            "clusters": (("beta", "seed"), found, {"long_name": "clusters on the longest plateau"}),
        },
        {"beta": betas, "seed": seeds},
        {"radius": RADIUS, "tokens": 12 if smoke else 24},
    )
    mf.files.write_zarr(out / "merge_times.zarr", data)
    medians = np.median(crowd, axis=1)
    reference, fit = mf.longtime.exponential_fit(betas, exact), mf.longtime.exponential_fit(betas, medians)
    draw(out, data, medians, fit)
    return [
        Claim("two clusters: largest relative error of the time 2 → 0.5 against the quadrature", worst(abs(pair / exact - 1)), 0.01),
        Claim(
            "two clusters: error of the fitted exponent d log T/dβ against the quadrature's",
            abs(mf.longtime.exponential_fit(betas, pair).rate - reference.rate), 0.01,
        ),
        Claim("random starts: every run ends in one cluster (share)", float(np.isfinite(crowd).mean()), 1.0, ">="),
        Claim("random starts: exponent d log T/dβ of the median last merge", fit.rate, 0.5, ">="),
        Claim("random starts: R² of log median time against β", fit.r_squared, 0.9, ">="),
    ]  # fmt: skip


def two_clusters(betas: np.ndarray) -> np.ndarray:
    """Times of two equal SA clusters from START to END."""
    x0 = jnp.array([[1.0, 0.0], [np.cos(START), np.sin(START)]])
    runs = coarsen_all(betas, x0[None])
    return np.array([take(runs, i, 0).merges(END)[0].t for i in range(len(betas))])


def random_starts(betas: np.ndarray, seeds: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Time of the last merge, and number of clusters on the longest plateau (in log t), per β and seed."""
    keys = [jax.random.fold_in(jax.random.key(0), int(s)) for s in seeds]
    runs = coarsen_all(betas, jnp.stack([mf.sphere.sample(key, (n, 2)) for key in keys]))
    times, found = np.full((2, len(betas), len(seeds)), np.nan)
    for i in range(len(betas)):
        for k in range(len(seeds)):
            one = take(runs, i, k)
            merges = one.merges(RADIUS)
            if one.status == mf.longtime.CoarseningStatus.ONE_CLUSTER and merges:
                times[i, k] = merges[-1].t
            plateaus = one.plateaus(RADIUS, 1.2)
            if plateaus:
                found[i, k] = len(max(plateaus, key=lambda p: p.end / p.start).weights)
    return times, found


@jax.jit
def coarsen_all(betas: jax.Array, starts: jax.Array):
    """SA from every start at every β, as one program."""
    rho = mf.Marginal(jnp.zeros(starts.shape[1]))

    def one(beta, x0):
        return mf.coarsen(mf.SA(mf.ExpDot(beta)), x0, rho, 1e12, throw=False, max_steps=512)

    return jax.vmap(lambda b: jax.vmap(lambda x: one(b, x))(starts))(jnp.asarray(betas))


def take(runs, i: int, k: int):
    """One run of the batch."""
    return jax.tree.map(lambda a: a[i, k], runs)


def draw(out: pathlib.Path, data: xr.Dataset, medians: np.ndarray, fit) -> None:
    """Times against β on a logarithmic scale."""
    betas = data.beta.values
    with mf.plot.style():
        fig = mf.plot.figure(5.2, 3.6)
        ax = fig.add_subplot()
        fine = np.linspace(betas[0], betas[-1], 100)
        curve = [mf.theory.two_cluster_time(b, START, END) for b in fine]
        ax.semilogy(fine, curve, color="C0", label="two clusters, 2 → 0.5 rad, quadrature")
        ax.semilogy(betas, data.pair_time, "o", color="C0", label="two clusters, measured")
        ax.semilogy(
            np.repeat(betas, data.sizes["seed"]), data.last_merge.values.ravel(), ".", color="C1", alpha=0.5, ms=4
        )
        ax.semilogy(
            betas, medians, "s", color="C1", label=f"last merge of {data.attrs['tokens']} random tokens, median"
        )
        label = f"fit, exponent {fit.rate:.2f} ± {fit.error:.2f}"
        ax.semilogy(fine, fit.prefactor * np.exp(fit.rate * fine), "--", color="C1", label=label)
        ax.set(xlabel="inverse temperature β", ylabel="time", title="SA on the circle: metastable times")
        ax.legend()
        mf.plot.save(fig, out / "merge_times.png")
