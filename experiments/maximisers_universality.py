"""Gauges realise any law: uniform on a circle, a spiral, a two-component von Mises–Fisher mixture, by orbit and by gauge."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import vonmises_fisher

import meanfield as mf

from ._claims import Claim
from ._maximisers import write


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Each law: maximiser exact, flows from near it stay, random starts reach it up to a rotation of the gauge frame, or itself."""
    n = 24 if smoke else 200
    rows, realised = {}, {}
    for name, samples in targets(n, seed).items():
        made = mf.theory.realize_law(samples, inner=mf.ExpDot(2.0, 1.0))
        best = mf.ascend(made.kernel, made.rho, 3, jax.random.key(seed), x0=made.x[None], certify="cheap")
        near = flow(made, mf.sphere.normalize(made.x + 0.05 * jax.random.normal(jax.random.key(seed), made.x.shape)))
        far = flow(made, mf.sphere.sample(jax.random.key(seed + 1), made.x.shape))
        anchored = mf.theory.anchored(made, 0.2)
        exact = flow(anchored, mf.sphere.sample(jax.random.key(seed + 1), made.x.shape))
        realised[name] = (samples, near, far, exact)
        rows[name] = [
            float(best.gap), float(best.curvature), float(jnp.max(mf.sphere.distance(near, samples))),
            consensus(made, far), aligned(made, far, samples), float(jnp.max(mf.sphere.distance(exact, samples))),
        ]  # fmt: skip
    measures = ["gap", "curvature", "drift", "gauge_spread", "aligned_distance", "anchored_distance"]
    data = write(
        out,
        "universality",
        {"value": (("law", "measure"), list(rows.values()))},
        {"law": list(rows), "measure": measures},
    )
    draw(out, realised)
    orbit = mf.theory.realize_orbit(
        lambda a: jnp.exp(3 * jnp.cos(a)) + jnp.exp(3 * jnp.cos(a - 2)), jnp.array([1.0, 0.0, 0.0]), n
    )
    found = mf.ascend(orbit.kernel, orbit.rho, 3, jax.random.key(seed), x0=orbit.x[None], certify="cheap")
    worst = data.value.max("law")
    return [
        Claim("gauge: largest gap between realised law and proved maximum", float(worst.sel(measure="gap")), 1e-9),
        Claim("gauge: largest curvature at the realised law", float(worst.sel(measure="curvature")), 1e-9),
        Claim("flow started 0.05 away: largest distance from the target afterwards (rad)", float(worst.sel(measure="drift")), 0.1),
        Claim("flow from random starts: spread in the gauge frame (rad)", float(worst.sel(measure="gauge_spread")), 1e-3),
        Claim("… and its distance from the target after one rotation of that frame (rad)", float(worst.sel(measure="aligned_distance")), 1e-3),
        Claim("anchored kernel, flow from random starts: distance from the target itself (rad)", float(worst.sel(measure="anchored_distance")), 1e-3),
        Claim("RoPE orbit: W₁ between target density and realised law, times n", orbit.distance * n, 2 * np.pi),
        Claim("RoPE orbit: gap", float(found.gap), 1e-9),
    ]  # fmt: skip


def targets(n: int, seed: int) -> dict[str, jax.Array]:
    """Samples (n, 3) of the three laws."""
    t = np.arange(n) / n
    circle = np.stack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t), 0 * t], axis=1)
    height, angle = 1.8 * t - 0.9, 6 * np.pi * t
    radius = np.sqrt(1 - height**2)
    spiral = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)
    generator = np.random.default_rng(seed)
    parts = [vonmises_fisher(mu, 20).rvs(n // 2, random_state=generator) for mu in ([0, 0, 1], [0.8, 0.6, 0])]
    laws = {"circle": circle, "spiral": spiral, "vMF mixture": np.concatenate(parts)}
    return {name: mf.sphere.normalize(jnp.asarray(x)) for name, x in laws.items()}


def flow(made, x0: jax.Array) -> jax.Array:
    """The USA flow to t = 400: a token near the antipode of the others is drawn only at the rate e^{−2β}."""
    return mf.flow(mf.USA(made.kernel), x0, made.rho, jnp.array([0.0, 400.0]), adjoint="forward").x[-1]


def gauged(made, x: jax.Array) -> jax.Array:
    """Q_ξ x."""
    return jnp.einsum("nij,nj->ni", jax.vmap(made.kernel.map)(made.rho.labels), x)


def consensus(made, x: jax.Array) -> float:
    """Largest distance between tokens in the gauge frame."""
    y = gauged(made, x)
    return float(jnp.max(mf.sphere.distance(y, jnp.broadcast_to(mf.sphere.normalize(y.mean(axis=0)), y.shape))))


def aligned(made, x: jax.Array, samples: jax.Array) -> float:
    """Distance from the samples after the orthogonal map that takes the common point of the gauge frame to u."""
    y = gauged(made, x)
    turn = mf.theory.align(mf.sphere.normalize(y.mean(axis=0)), made.kernel.map.u)
    frames = jax.vmap(made.kernel.map)(made.rho.labels)
    back = jnp.einsum("nji,nj->ni", frames, y @ turn.T)
    return float(jnp.max(mf.sphere.distance(back, samples)))


def draw(out: pathlib.Path, realised) -> None:
    """Targets, flows from near and from random starts, with and without anchor, for the three laws."""
    titles = ("target", "flow from near", "from random", "from random, anchored")
    with mf.plot.style():
        fig = mf.plot.figure(11.2, 7.6)
        axes = fig.subplots(3, 4)
        for row, (name, states) in zip(axes, realised.items(), strict=True):
            colour = np.arange(len(states[0]))
            for ax, x, title in zip(row, states, titles, strict=True):
                mf.plot.tokens(x, colour=colour, label="sample", title=f"{name}: {title}", ax=ax)
    mf.plot.save(fig, out / "universality.png")
