"""Prompt gauges: the law of the prompts decides where tokens end, in several clusters or on any law.

Each token carries a prompt p from a law and a gauge Q_p. Five prompts give five clusters with the prompts' masses; a
continuum of prompts with Q_p f(p) = u gives the law of f(p): a spiral, or a mixture of two caps. From a start scattered
about f(p) the flow finds it again, where plain attention ends in one point (theory.md 2, gauge realisation).
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from ._claims import Claim
from ._record import COLLAPSED, clusters, orbit_error, save_panels, save_runs, simulate, sizes, start, worst

BETA = 1.0
PROMPTS = jnp.array([0.3, 0.25, 0.2, 0.15, 0.1])


def token_gauge(matrices: jax.Array) -> mf.Gauge:
    """The gauge whose label is the number of the token: Q_i = matrices[i]."""
    return mf.Gauge(mf.ExpDot(BETA), jax.tree_util.Partial(row, matrices))


def row(table: jax.Array, i: jax.Array) -> jax.Array:
    """table[i]."""
    return table[i]


def spiral(p: jax.Array) -> jax.Array:
    """A spiral from pole to pole, three turns, p ∈ [0, 1]."""
    z, angle = 0.9 * (2 * p - 1), 6 * jnp.pi * p
    r = jnp.sqrt(1 - z**2)
    return jnp.stack([r * jnp.cos(angle), r * jnp.sin(angle), z], axis=-1)


def two_caps(key: jax.Array, n: int) -> jax.Array:
    """A mixture of two caps with weights 0.7 and 0.3."""
    centres = mf.sphere.normalize(jnp.array([[1.0, -0.5, 0.5], [0.2, 0.6, -1.0]]))
    chosen = centres[(jax.random.uniform(key, (n,)) > 0.7).astype(int)]
    return mf.sphere.normalize(chosen + 0.25 * jax.random.normal(jax.random.split(key)[0], (n, 3)))


def run_prompts(n: int, key: jax.Array, seed: int):
    """n tokens with one of five prompts each, from a uniform start."""
    prompt = jax.random.choice(key, len(PROMPTS), (n,), p=PROMPTS)
    turns = jnp.linalg.qr(jax.random.normal(jax.random.fold_in(key, 1), (len(PROMPTS), 3, 3)))[0]
    gauge, rho = token_gauge(turns[prompt]), mf.Marginal.positions(n)
    return gauge, rho, prompt, simulate(mf.USA(gauge), start(n, seed), rho)


def run_target(targets: jax.Array, key: jax.Array):
    """Tokens with the gauge that realises `targets`, from a start scattered about them; and the distances to the target."""
    n = targets.shape[0]
    gauge, rho = token_gauge(mf.theory.realize_gauge(targets, jnp.array([0.0, 0.0, 1.0]))), mf.Marginal.positions(n)
    x0 = mf.sphere.normalize(targets + 0.4 * jax.random.normal(key, targets.shape))
    flow = simulate(mf.USA(gauge), x0, rho)
    end, begin = (mf.observables.sliced_wasserstein(x, targets, jax.random.key(0)) for x in (flow.final, x0))
    dirac = jnp.broadcast_to(mf.sphere.normalize(jnp.mean(targets, axis=0)), targets.shape)
    collapsed = mf.observables.sliced_wasserstein(dirac, targets, jax.random.key(0))
    return gauge, rho, flow, {"end": end, "begin": begin, "collapsed": collapsed}


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Simulates, draws, and states the claims."""
    runs, panels, orbits, missing, masses, ratio = {}, {}, [], [], [], []
    for n in sizes(smoke):
        key = jax.random.fold_in(jax.random.key(seed), 7 * n)
        gauge, rho, prompt, flow = run_prompts(n, key, seed)
        runs[f"five prompts, n = {n}"] = flow
        panels[f"five prompts, n = {n}"] = (flow, {"colour": prompt, "label": "prompt", "trails": False})
        orbits.append(orbit_error(gauge, flow, rho))
        missing.append(abs(clusters(flow) - len(np.unique(prompt))))
        found = mf.observables.cluster_labels(flow.final, COLLAPSED)
        masses.append(np.abs(np.sort(np.bincount(found)) - np.sort(np.unique(prompt, return_counts=True)[1])).max() / n)
        for name, targets in (("spiral", spiral(jnp.linspace(0.0, 1.0, n))), ("two caps", two_caps(key, n))):
            gauge, rho, flow, distance = run_target(targets, key)
            runs[f"{name}, n = {n}"] = flow
            panels[f"{name}, n = {n}"] = (
                flow,
                {"colour": jnp.linspace(0.0, 1.0, n), "label": "token / n", "trails": False},
            )
            orbits.append(orbit_error(gauge, flow, rho))
            ratio.append(distance["end"] / distance["collapsed"])
    save_runs(out, runs)
    save_panels(out, "tokens", panels)
    return [
        Claim("distance to an orbit Q_pᵀu", worst(orbits), 1e-3),
        Claim("five prompts: clusters minus prompts", worst(missing), 0.0),
        Claim("five prompts: mass of a cluster minus mass of its prompt", worst(masses), 0.0),
        Claim("spiral, caps: sliced W₂ to the target, as a fraction of a Dirac's", worst(ratio), 0.25),
    ]
