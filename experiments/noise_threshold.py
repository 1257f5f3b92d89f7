"""Noisy USA: the uniform law loses stability at σ² = 2λ_1/β; continuously at β ≤ β_*, with hysteresis above (d = 2, 3, 4)."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import meanfield as mf

from ._axial import Axial
from ._claims import Claim
from ._record import least, worst

DIMENSIONS = (2, 3, 4)
BELOW, ABOVE = 1.0, 4.0  # β on either side of β_* = 2.45, 1.82, 1.58
TILT, END = 0.02, 1.0
LOOP = {BELOW: 30.0, ABOVE: 5.0}  # times of the hysteresis runs; speeds grow like e^β


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Writes noise_threshold.zarr, threshold.png and hysteresis.png."""
    n, runs, crowd = (256, 4, 64) if smoke else (4096, 64, 256)
    rates = xr.concat([growth(d, n, runs, seed) for d in DIMENSIONS], "dimension")
    loops = xr.concat([hysteresis(d, crowd, 0.1 if smoke else 1.0, seed) for d in DIMENSIONS], "dimension")
    mf.files.write_zarr(out / "noise_threshold.zarr", xr.DataTree.from_dict({"growth": rates, "hysteresis": loops}))
    draw_growth(out, rates)
    draw_loops(out, loops)
    exact = np.array([threshold(BELOW, d) for d in DIMENSIONS])
    error, sigmas = abs(rates.threshold / exact - 1).values, abs(rates.threshold - exact) / rates.threshold_error
    gap = loops.order.sel(start="ordered") - loops.order.sel(start="uniform")
    stable = abs(loops.order.sel(start="ordered") - loops.theory)
    # the bistable window of β = 4 ends at 1.06, 1.25, 1.47 thresholds for d = 2, 3, 4; near 1 few tokens leave the uniform law
    hysteretic = gap.sel(beta=ABOVE).where(gap.ratio > 1).max("ratio")
    return [
        *(Claim(f"d = {d}: relative error of the threshold σ² read off the growth of degree 1, n = {n}", float(e), 0.05) for d, e in zip(DIMENSIONS, error, strict=True)),
        Claim(f"the same in standard errors over {runs} runs, largest of the three", worst(sigmas.values), 4.0),
        Claim("β > β_*: largest gap between ordered and uniform starts above the threshold, least over d", least(hysteretic.values), 0.3, ">="),
        Claim("β < β_*: largest gap between the two starts at any σ²", worst(abs(gap.sel(beta=BELOW)).values.ravel()), 0.1),
        Claim("β < β_*: order parameter from the ordered start 25 % above the threshold, largest", worst(loops.order.sel(beta=BELOW, start="ordered", ratio=1.25).values), 0.3),
        Claim("largest distance of the ordered branch to the mean-field law, 20 % and more below the threshold", worst(stable.sel(ratio=[0.6, 0.8]).values.ravel()), 0.1),
    ]  # fmt: skip


def threshold(beta: float, d: int) -> float:
    """σ² = 2λ_1/β."""
    return float(1 / mf.theory.noise_threshold(beta, d))


def growth(d: int, n: int, runs: int, seed: int) -> xr.Dataset:
    """Growth rate of degree 1 at σ² = 0.6, 1, 1.4 times the threshold, from independent runs of n tokens.

    Two flows with the same noise start from uniform tokens tilted by ±TILT along e. Half the difference of their means
    along e, averaged over runs, grows like e^{(d−1)(λ_1/β − σ²/2)t}.
    """
    ratios, ts = np.array([0.6, 1.0, 1.4]), np.linspace(0.0, END, 6)
    variances, rho = ratios * threshold(BELOW, d), mf.Marginal(jnp.zeros(n, jnp.float32))
    e = jnp.eye(d, dtype=jnp.float32)[0]

    def response(number: int, variance: float) -> np.ndarray:
        start, noise = (jax.random.fold_in(jax.random.key(k), number) for k in (1, 2))
        half = mf.sphere.sample(start, (n // 2, d), jnp.float32)
        x0 = jnp.concatenate([half, -half])
        push = TILT * mf.sphere.project(x0, jnp.broadcast_to(e, x0.shape))
        noisy = mf.Noisy(mf.USA(mf.ExpDot(BELOW)), np.sqrt(variance), noise, 0.2)
        save = {"ts": jnp.asarray(ts, jnp.float32), "save": ("x",), "adjoint": "forward"}
        up, down = (mf.flow(noisy, mf.sphere.exp(x0, sign * push), rho, **save).x for sign in (1, -1))
        return np.asarray((up - down).mean(1) @ e / 2, np.float64)

    mean = np.array([[response(runs * seed + r, v) for r in range(runs)] for v in variances])
    others = np.array([rates_of(ts, np.delete(mean, r, axis=1)) for r in range(runs)])  # jackknife
    rate, zeros = rates_of(ts, mean), np.array([zero(variances, rate) for rate in others])
    return xr.Dataset(
        {
            "mean": (("ratio", "run", "time"), mean),
            "rate": ("ratio", rate),
            "rate_error": ("ratio", jackknife(others)),
            "variance": ("ratio", variances),
            "threshold": zero(variances, rate),
            "threshold_error": jackknife(zeros),
        },
        {"ratio": ratios, "time": ts, "dimension": d},
        {"tokens": n, "beta": BELOW, "tilt": TILT},
    )


def rates_of(ts: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Slopes of log(mean over runs) against time, for mean (ratio, run, time)."""
    return np.polyfit(ts, np.log(mean.mean(1)).T, 1)[0]


def zero(variances: np.ndarray, rates: np.ndarray) -> float:
    """The σ² at which the growth rate, linear in σ², is 0."""
    slope, intercept = np.polyfit(variances, rates, 1)
    return -intercept / slope


def jackknife(others: np.ndarray) -> np.ndarray:
    """Standard error of a statistic from its values with one run left out, along the first axis."""
    return np.sqrt((len(others) - 1) * others.var(axis=0))


def hysteresis(d: int, n: int, share: float, seed: int) -> xr.Dataset:
    """Order parameter, averaged over the second half of `share`·LOOP, from a uniform and an ordered start, around the threshold, for both β; mean-field law."""
    ratios = np.array([0.6, 0.8, 1.05, 1.25])
    rho = mf.Marginal(jnp.zeros(n, jnp.float32))
    uniform = mf.sphere.sample(jax.random.fold_in(jax.random.key(3), seed), (n, d), jnp.float32)
    pole = jnp.broadcast_to(jnp.eye(d, dtype=jnp.float32)[0], uniform.shape)
    starts = jnp.stack([uniform, mf.sphere.normalize(uniform + 2 * pole)])
    key = jax.random.fold_in(jax.random.key(4), seed)

    @jax.jit
    def final(beta, sigma, x0, end):
        # shift=1: time in units of e^{−β}, in which the contraction of a cluster has rate 1
        noisy = mf.Noisy(mf.USA(mf.ExpDot(beta, shift=1.0)), sigma * jnp.exp(-beta / 2), key, 0.5)
        traj = mf.flow(noisy, x0, rho, jnp.linspace(0.0, 1.0, 5) * end * jnp.exp(beta), save=("order",), throw=False)
        return traj.order[2:].mean()

    def one(beta, start, ratio):
        sigma = np.sqrt(ratio * threshold(beta, d))
        return float(final(*map(jnp.float32, (beta, sigma)), start, jnp.float32(share * LOOP[beta])))

    order = np.array([[[one(b, x, r) for r in ratios] for x in starts] for b in (BELOW, ABOVE)])
    laws = [Axial(b, d) for b in (BELOW, ABOVE)]
    fine = np.linspace(0.5, 1.5, 9 if share < 1 else 41)
    theory = [[law.order(r * threshold(b, d)) for r in ratios] for law, b in zip(laws, (BELOW, ABOVE), strict=True)]
    curve = [[law.order(r * threshold(b, d)) for r in fine] for law, b in zip(laws, (BELOW, ABOVE), strict=True)]
    return xr.Dataset(
        {
            "order": (("beta", "start", "ratio"), order),
            "theory": (("beta", "ratio"), theory),
            "curve": (("beta", "fine"), curve),
        },
        {"beta": [BELOW, ABOVE], "start": ["uniform", "ordered"], "ratio": ratios, "fine": fine, "dimension": d},
    )


def draw_growth(out: pathlib.Path, rates: xr.Dataset) -> None:
    """Growth rates against σ², with the theory's lines."""
    with mf.plot.style():
        fig = mf.plot.figure(4.6, 3.4)
        ax = fig.add_subplot()
        for i, d in enumerate(DIMENSIONS):
            one = rates.sel(dimension=d)
            critical = threshold(BELOW, d)
            v = np.linspace(0.5, 1.5, 2) * critical
            ax.plot(v / critical, (d - 1) * (critical - v) / 2, color=f"C{i}", label=f"d = {d}, (d−1)(λ$_1$/β − σ²/2)")
            ax.errorbar(one.variance / critical, one.rate, 2 * one.rate_error, fmt="o", ms=4, color=f"C{i}")
        ax.axhline(0, color="black", lw=0.8)
        ax.axvline(1, color="black", lw=0.8, ls=":")
        ax.set(
            xlabel="σ² / (2λ$_1$/β)",
            ylabel="growth rate of degree 1",
            title=f"Stability of the uniform law, β = {BELOW:g}",
        )
        ax.legend()
        mf.plot.save(fig, out / "threshold.png")


def draw_loops(out: pathlib.Path, loops: xr.Dataset) -> None:
    """Order parameter against σ² from both starts, mean-field branch and threshold."""
    with mf.plot.style():
        fig = mf.plot.figure(7.2, 4.2)
        axes = fig.subplots(2, len(DIMENSIONS), sharex=True, sharey=True)
        for row, beta in zip(axes, (BELOW, ABOVE), strict=True):
            for ax, d in zip(row, DIMENSIONS, strict=True):
                one = loops.sel(beta=beta, dimension=d)
                ax.plot(one.fine, one.curve, color="C2", label="mean field, ordered branch")
                ax.plot(one.ratio, one.order.sel(start="ordered"), "v", color="C1", label="from an ordered start")
                ax.plot(one.ratio, one.order.sel(start="uniform"), "^", color="C0", label="from the uniform law")
                ax.axvline(1, color="black", lw=0.8, ls=":")
                ax.set_title(f"d = {d}, β = {beta:g}, β$_*$ = {mf.theory.tricritical_beta(d):.2f}")
        for ax in axes[-1]:
            ax.set_xlabel("σ² / (2λ$_1$/β)")
        for ax in axes[:, 0]:
            ax.set_ylabel("order parameter")
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        mf.plot.save(fig, out / "hysteresis.png")
