"""A distance bias designed to keep tokens apart for as long as it can: time to consensus, against standard biases.

h = g(ξ − ζ) e^{β(⟨x,y⟩−1)}/β with g ≥ 0 falling in |ξ − ζ| (a monotone spline) and the total interaction of different tokens
fixed, Σ_{i≠j} w_i w_j g_ij = 1, so that slowness cannot come from a weak kernel. Any such g ends in one point (theory.md 2); the
design delays that, and finds that short-ranged is slow. Gradients go through the flow, averaged over starts; the result is judged on starts it has not seen.
"""

import pathlib
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

import meanfield as mf

from ._claims import Claim

BETA, LEVEL, BUMPS = 2.0, 0.9, 6
REACH = 0.6  # where a profile ends: from a start as wide as all labels the gradient leads to a plateau of wide profiles


def normalised(profile: Callable, rho: mf.Marginal) -> mf.AbstractKernel:
    """The kernel of a profile scaled to Σ_{i≠j} w_i w_j g_ij = 1."""
    tau = rho.labels[:, None] - rho.labels
    pairs = rho.weights[:, None] * rho.weights * (1 - jnp.eye(rho.n))
    total = jnp.sum(pairs * jax.vmap(jax.vmap(profile))(tau))
    return mf.Toeplitz(profile, mf.ExpDot(BETA, shift=1.0)) * (1 / total)


class Race:
    """Orders R(t) of many starts under a kernel, and the time that they need to reach LEVEL."""

    def __init__(self, n: int, end: float, saves: int):
        self.rho, self.ts = mf.Marginal.interval(n), jnp.linspace(0.0, end, saves)

    def order(self, profile: Callable, seed: jax.Array) -> jax.Array:
        """R (T,) from the start of a seed."""
        x0 = mf.sphere.sample(jax.random.fold_in(jax.random.key(5), seed), (self.rho.n, 3))
        dynamics = mf.USA(normalised(profile, self.rho))
        return mf.flow(dynamics, x0, self.rho, self.ts, save=("order",), max_steps=1024, rtol=1e-4, atol=1e-6).order

    def time(self, order: jax.Array) -> jax.Array:
        """Time below LEVEL: smooth, and at most the last time."""
        return mf.design.soft_collapse_time(order, self.ts, LEVEL, 30.0)

    def loss(self, profile: Callable, seeds: jax.Array) -> jax.Array:
        """−mean log time over seeds."""
        times = jax.lax.map(lambda seed: self.time(self.order(profile, seed)), seeds)
        return -jnp.mean(jnp.log(times))


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Writes design_slow_kernel.zarr and .png; claims compare median times on unseen starts."""
    n, saves, steps, train, test = (6, 21, 2, 1, 2) if smoke else (24, 101, 40, 8, 24)
    race = Race(n, 10.0 if smoke else 60.0, saves)
    spline = lambda slopes: mf.design.MonotoneSpline(slopes, reach=REACH)
    start = spline(jnp.zeros(BUMPS))
    seeds = seed + jnp.arange(train)
    fit = mf.design.fit(lambda slopes: race.loss(spline(slopes), seeds), start.slopes, steps, optax.adam(0.2))
    profiles = {
        "designed": spline(fit.best),
        "constant": mf.Cosine(frequency=0.0, offset=0.0),
        "linear to 0.6 (start)": start,
        "exponential, rate 4": mf.ExponentialDecay(4.0),
        "Gaussian, width 0.2": mf.Gaussian(0.2),
    }
    unseen = 1000 + seed + np.arange(test)
    orders = {
        name: mf.sweep(lambda seed, p=p: {"order": race.order(p, seed)}, {"seed": unseen})["order"]
        for name, p in profiles.items()
    }
    times = {name: np.asarray(jax.vmap(race.time)(jnp.asarray(order.values))) for name, order in orders.items()}
    medians = {name: float(np.median(values)) for name, values in times.items()}
    save(out, race, profiles, orders, times, fit.history)
    draw(out, race, profiles, orders, medians)
    best_other = max(value for name, value in medians.items() if name != "designed")
    return [
        Claim(
            "median time to R = 0.9 of the designed kernel over that of a constant one",
            medians["designed"] / medians["constant"],
            1.5,
            ">=",
        ),
        Claim("the same over the best standard profile", medians["designed"] / best_other, 1.0, ">="),
        Claim("loss after the fit minus loss before", float(fit.best_loss - fit.history[0]), 0.0, "<"),
    ]


def save(out: pathlib.Path, race: Race, profiles: dict, orders: dict, times: dict, history: np.ndarray) -> None:
    """Orders, times, profiles and losses as one labelled file."""
    tau = np.linspace(0.0, 1.0, 101)
    data = xr.Dataset(
        {
            "order": (("kernel", "seed", "time"), np.stack([order.values for order in orders.values()])),
            "time_to_consensus": (("kernel", "seed"), np.stack(list(times.values()))),
            "profile": (
                ("kernel", "tau"),
                np.stack([np.asarray(jax.vmap(p)(jnp.asarray(tau))) for p in profiles.values()]),
            ),
            "loss": (("evaluation",), history),
        },
        {
            "kernel": list(orders),
            "time": np.asarray(race.ts),
            "tau": tau,
            "seed": next(iter(orders.values()))["seed"].values,
        },
        {"beta": BETA, "level": LEVEL},
    )
    mf.files.write_zarr(out / "design_slow_kernel.zarr", data)


def draw(out: pathlib.Path, race: Race, profiles: dict, orders: dict, medians: dict) -> None:
    """Median order with quartiles against time, and the profiles, each over its mean."""
    tau = jnp.linspace(0.0, 1.0, 201)
    with mf.plot.style():
        fig = mf.plot.figure(9.0, 3.4)
        left, right = fig.subplots(1, 2)
        for name, order in orders.items():
            low, middle, high = np.quantile(order.values, [0.25, 0.5, 0.75], axis=0)
            (line,) = left.plot(race.ts, middle, label=f"{name}: {medians[name]:.3g}")
            left.fill_between(race.ts, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
            g = np.asarray(jax.vmap(profiles[name])(tau))
            right.plot(tau, g / g.max(), color=line.get_color())
        left.axhline(LEVEL, color="#888888", linewidth=0.8)
        left.set(xlabel="time t (dimensionless)", ylabel="order parameter R (median, quartiles)")
        left.legend(title="median time to R = 0.9")
        right.set(xlabel="distance of labels |τ|", ylabel="profile g over its largest value")
    mf.plot.save(fig, out / "design_slow_kernel.png")
