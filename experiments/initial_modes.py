"""Clusters at the start: modes of the initial kernel density on the circle number √(3β/2) at large β."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from ._claims import Claim
from ._record import save_table, worst


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Writes initial_modes.csv and initial_modes.png."""
    betas = np.array([4.0, 16.0]) if smoke else np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
    n, samples = (1024, 40) if smoke else (16384, 2000)
    rows = []
    for k, beta in enumerate(betas):
        counts = count_modes(np.random.default_rng([seed, k]), n, samples, beta)
        theory, limit = mf.theory.initial_modes(beta), np.sqrt(1.5 * beta)
        error = counts.std(ddof=1) / np.sqrt(samples)
        rows.append({"beta": beta, "modes": counts.mean(), "error": error, "theory": theory, "limit": limit})
    clusters = first_clusters(
        betas[betas >= 8][:4] if not smoke else betas[1:], 24 if smoke else 96, 2 if smoke else 8, seed
    )
    for row in rows:
        row["clusters"] = clusters.get(row["beta"], np.nan)
    save_table(out, "initial_modes", rows)
    draw(out, rows)
    tolerance = 0.1 if smoke else 0.03
    return [
        Claim("largest relative error of the mean number of modes against √(Σl⁴I_l²/Σl²I_l²)",
              worst(abs(r["modes"] / r["theory"] - 1) for r in rows), tolerance),
        Claim(f"relative difference from √(3β/2) at β = {betas[-1]:g}", abs(rows[-1]["modes"] / rows[-1]["limit"] - 1), 0.15 if smoke else 0.05),
        Claim("clusters of the SA flow after its first collapse per mode, smallest", min(c / mf.theory.initial_modes(b) for b, c in clusters.items()), 0.5, ">="),
        Claim("clusters of the SA flow after its first collapse per mode, largest", worst(c / mf.theory.initial_modes(b) for b, c in clusters.items()), 1.3),
    ]  # fmt: skip


def count_modes(rng: np.random.Generator, n: int, samples: int, beta: float) -> np.ndarray:
    """Local maxima on the circle of θ ↦ Σ_j e^{β cos(θ − θ_j)} for n uniform θ_j, by Fourier series on a fine grid."""
    size = 2048
    kernel = np.fft.rfft(np.exp(beta * (np.cos(2 * np.pi * np.arange(size) / size) - 1)))
    counts = np.empty(samples)
    for s in range(samples):
        # binning moves a token by less than π/2048, far below the kernel's width 1/√β
        histogram = np.bincount(rng.integers(0, size, n), minlength=size)
        density = np.fft.irfft(np.fft.rfft(histogram) * kernel, size)
        counts[s] = np.sum((density > np.roll(density, 1)) & (density >= np.roll(density, -1)))
    return counts


def first_clusters(betas: np.ndarray, n: int, seeds: int, seed: int) -> dict[float, float]:
    """Mean number of clusters (0.1 rad) of SA from n random tokens at t = 30, before metastable merging sets in."""
    keys = jax.random.split(jax.random.key(seed), seeds)
    starts = jnp.stack([mf.sphere.sample(key, (n, 2)) for key in keys])
    rho = mf.Marginal(jnp.zeros(n))

    @jax.jit
    def clusters(beta):
        def one(x0):
            return mf.flow(
                mf.SA(mf.ExpDot(beta)), x0, rho, jnp.array([0.0, 30.0]), rtol=1e-5, throw=False, save=("order",)
            ).final

        return jax.vmap(one)(starts)

    states = {float(beta): np.asarray(clusters(jnp.asarray(beta))) for beta in betas}
    return {
        b: float(np.mean([mf.observables.count_clusters(x, np.array([0.1]))[0] for x in s])) for b, s in states.items()
    }


def draw(out: pathlib.Path, rows: list[dict]) -> None:
    """Modes against β, logarithmic."""
    betas = np.array([r["beta"] for r in rows])
    fine = np.geomspace(betas[0], betas[-1], 100)
    with mf.plot.style():
        fig = mf.plot.figure(5.0, 3.4)
        ax = fig.add_subplot()
        ax.loglog(
            fine,
            [mf.theory.initial_modes(b) for b in fine],
            color="C0",
            label=r"$(\sum \ell^4 I_\ell^2 / \sum \ell^2 I_\ell^2)^{1/2}$",
        )
        ax.loglog(fine, np.sqrt(1.5 * fine), "--", color="black", lw=1, label="√(3β/2)")
        ax.errorbar(
            betas,
            [r["modes"] for r in rows],
            [2 * r["error"] for r in rows],
            fmt="o",
            color="C0",
            label="modes counted",
        )
        ax.plot(betas, [r["clusters"] for r in rows], "s", color="C1", label="clusters of SA at t = 30")
        ticks = [2, 4, 8, 16, 32, 64, 128]
        ax.set_xticks(ticks, [str(t) for t in ticks])
        ax.set_yticks([2, 4, 8, 16], ["2", "4", "8", "16"])
        ax.minorticks_off()
        ax.set(
            xlabel="inverse temperature β", ylabel="number", title="Modes of the initial density, circle, many tokens"
        )
        ax.legend()
        mf.plot.save(fig, out / "initial_modes.png")
