"""The law of n tokens against the limit n → ∞: distances fall like n^(−1/2), energy errors too, or like 1/n for RoPE.

With labels all round the circle and independent of the tokens, the law of Q_ξ x is uniform under RoPE: a critical point of the
energy, whose error is then of second order in the fluctuations.
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from ._claims import Claim
from ._record import save_table

MEAN = (0.7, 0.2)  # tokens start as normalised Gaussians around it
DYNAMICS = {
    "USA": lambda: mf.USA(mf.ExpDot(4.0, shift=1.0)),
    "SA": lambda: mf.SA(mf.ExpDot(4.0)),
    "RoPE": lambda: mf.USA(mf.RoPE(mf.ExpDot(4.0, shift=1.0), jnp.array([1.0]))),
}
TIME = {"USA": 3.0, "SA": 1.0, "RoPE": 3.0}
ENERGY_RATE = {"USA": -0.5, "SA": -0.5, "RoPE": -1.0}


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Sliced Wasserstein distance to a million tokens, energy error against the limit's spectral solution; fitted rates."""
    largest = 20_000 if smoke else 1_000_000
    sizes = np.array([64, 256, 1024] if smoke else [100, 1000, 10_000, 100_000])
    repeats = 2 if smoke else 6
    claims, rows, distances, errors = [], [], {}, {}
    for name, make in DYNAMICS.items():
        x, energy = final(make(), largest, seed + 10_000, TIME[name])
        reference = quantiles(x)
        limit = limit_energy(make(), TIME[name])
        found = np.array(
            [
                [compare(make(), n, seed + r, TIME[name], reference, limit) for r in range(repeats)]
                for n in sizes.tolist()
            ]
        )
        distances[name], errors[name] = found.mean(axis=1).T
        rows += [
            {"dynamics": name, "n": n, "repeat": r, "sliced_wasserstein": a, "energy_error": b}
            for n, runs in zip(sizes, found, strict=True)
            for r, (a, b) in enumerate(runs)
        ]
        claims += judge(name, sizes, distances[name], errors[name], abs(energy / limit - 1), largest)
    save_table(out, "meanfield_limit", rows)
    picture(sizes, distances, errors, out / "meanfield_limit.png")
    return claims


def judge(name: str, sizes, distances, errors, gap: float, largest: int) -> list[Claim]:
    """The fitted rates against the expected ones, and the largest run against the limit itself (sampling error about n^(−1/2))."""
    expected = ENERGY_RATE[name]
    rates = [float(np.polyfit(np.log(sizes), np.log(values), 1)[0]) for values in (distances, errors)]
    return [
        Claim(f"{name}: distance between the fitted rate {rates[0]:.3f} of the sliced distance and -1/2", abs(rates[0] + 0.5), 0.1),
        Claim(f"{name}: distance between the fitted rate {rates[1]:.3f} of the energy error and {expected:g}", abs(rates[1] - expected), 0.25),
        Claim(f"{name}: energy of {largest:,} tokens against the spectral limit, relative", gap, 5 / largest**0.5),
    ]  # fmt: skip


def final(dynamics, n: int, seed: int, t: float) -> tuple[np.ndarray, float]:
    """Tokens and energy at time t from n independent draws of one law on the circle, labels uniform angles."""
    keys = jax.random.split(jax.random.key(seed))
    labels = jax.random.uniform(keys[0], (n,), jnp.float32, maxval=2 * np.pi)
    x = jax.random.normal(keys[1], (n, 2), jnp.float32) + jnp.array(MEAN, jnp.float32)
    rho = mf.Marginal(labels, np.full(n, 1 / n, np.float32))
    ts = np.array([0.0, t], np.float32)
    traj = mf.flow(dynamics, mf.sphere.normalize(x), rho, ts, rtol=1e-4, atol=1e-5)
    return np.asarray(traj.x[-1]), float(traj.energy[-1])


def limit_energy(dynamics, t: float, nodes: int = 64) -> float:
    """Energy at time t of infinitely many tokens: the projected Gaussian's density for every one of the label nodes."""

    def density(theta, label):
        along = MEAN[0] * jnp.cos(theta) + MEAN[1] * jnp.sin(theta)
        normal = jax.scipy.stats.norm
        # ∫_0^∞ r e^{−|r u − m|²/2} dr up to a constant, D = ⟨u, m⟩: 1 + D Φ(D)/Φ'(D)
        return 1 + along * normal.cdf(along) / normal.pdf(along)

    rho = mf.Marginal(2 * np.pi * np.arange(nodes) / nodes)
    found = mf.law(dynamics, density, rho, np.array([0.0, t]), rtol=1e-5, atol=1e-7)
    return float(found.energy[-1])


def quantiles(x: np.ndarray) -> np.ndarray:
    """4096 quantiles of the tokens' projections on 16 lines: the million is sorted once (`sliced_wasserstein` sorts it for every run)."""
    angles = np.pi * np.arange(16) / 16
    lines = np.stack([np.cos(angles), np.sin(angles)])
    return np.quantile(x @ lines, (np.arange(4096) + 0.5) / 4096, axis=0)


def compare(dynamics, n: int, seed: int, t: float, reference: np.ndarray, energy: float) -> tuple[float, float]:
    """Sliced 1-Wasserstein distance to the reference, and the energy error."""
    x, value = final(dynamics, n, seed, t)
    return float(np.mean(np.abs(quantiles(x) - reference))), abs(value - energy)


def picture(sizes: np.ndarray, distances: dict, errors: dict, path: pathlib.Path) -> None:
    """Both over n, and the slopes −1/2 and −1."""
    with mf.plot.style():
        fig = mf.plot.figure(8.5, 3.4)
        panels = fig.subplots(1, 2)
        labels = ("sliced Wasserstein distance to 10⁶ tokens", "energy error against the limit")
        for ax, values, label in zip(panels, (distances, errors), labels, strict=True):
            for name, value in values.items():
                ax.loglog(sizes, value, "o-", label=name)
            first = max(v[0] for v in values.values())
            ax.loglog(sizes, first * (sizes / sizes[0]) ** -0.5, "k--", lw=1, label="$n^{-1/2}$")
            ax.set(xlabel="tokens n", ylabel=label)
        panels[1].loglog(sizes, min(v[0] for v in errors.values()) * sizes[0] / sizes, "k:", lw=1, label="$n^{-1}$")
        for ax in panels:
            ax.legend()
    mf.plot.save(fig, path)
