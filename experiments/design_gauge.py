"""Gauges learned by gradients through the flow realise a spiral, a figure of eight and a mixture of caps on S².

A flax table of rotations Q_i, one per label, is fitted so that the tokens that flow from a fixed scattered start end on
samples of a target law (Sinkhorn divergence): first on the maximisers x_i = Q_iᵀu, then through the flow itself. The
yardstick is the exact construction `mf.theory.realize_gauge` with as many labels, on samples of the law that neither has
seen: at its maximiser, the strictest, and (in the figure) under the same flow from an equally scattered start.
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

BETA, END, EPSILON, SCATTER = 1.0, 12.0, 0.005, 0.3
POLE = jnp.array([0.0, 0.0, 1.0])


def spiral(key: jax.Array, p: jax.Array) -> jax.Array:
    """Two turns from near one pole to near the other, p ∈ [0, 1] ↦ (…, 3)."""
    z, angle = 0.9 * (2 * p - 1), 4 * jnp.pi * p
    r = jnp.sqrt(1 - z**2)
    return jnp.stack([r * jnp.cos(angle), r * jnp.sin(angle), z], axis=-1)


def eight(key: jax.Array, p: jax.Array) -> jax.Array:
    """Viviani's curve: (cos²s, cos s sin s, sin s), s = 2πp, which crosses itself at (1, 0, 0)."""
    s = 2 * jnp.pi * p
    return jnp.stack([jnp.cos(s) ** 2, jnp.cos(s) * jnp.sin(s), jnp.sin(s)], axis=-1)


def caps(key: jax.Array, p: jax.Array) -> jax.Array:
    """Two von Mises–Fisher laws on S², concentrations 30 and 60, with weights 0.6 and 0.4, sampled by inversion of z."""
    azimuth_key, height_key = jax.random.split(key)
    first = p < 0.6
    kappa = jnp.where(first, 30.0, 60.0)
    u = jax.random.uniform(height_key, p.shape)
    z = 1 + jnp.log(u + (1 - u) * jnp.exp(-2 * kappa)) / kappa
    azimuth, r = 2 * jnp.pi * jax.random.uniform(azimuth_key, p.shape), jnp.sqrt(jnp.maximum(1 - z**2, 0))
    local = jnp.stack([r * jnp.cos(azimuth), r * jnp.sin(azimuth), z], axis=-1)
    centres = mf.sphere.normalize(jnp.array([[1.0, -0.5, 0.5], [0.2, 0.6, -1.0]]))
    turns = mf.theory.realize_gauge(centres, POLE)
    return jnp.einsum("nji,nj->ni", jnp.where(first[:, None, None], turns[0], turns[1]), local)


TARGETS: dict[str, Callable] = {"spiral": spiral, "figure of eight": eight, "vMF mixture": caps}


def sample(name: str, seed: int, count: int, offset: float = 0.5) -> jax.Array:
    """`count` points of a target at equal steps of p; `offset` and `seed` make another sample of the same law."""
    return TARGETS[name](jax.random.key(seed), (jnp.arange(count) + offset) / count)


class Problem:
    """A target, the labels, the start of the tokens, and the distance of what flows from it to samples of the target."""

    def __init__(self, name: str, n: int, samples: int, seed: int):
        self.name, self.n = name, n
        self.train = sample(name, 100 + seed, samples)
        self.test = sample(name, 200 + seed, 2 * samples, offset=0.25)
        self.exact_targets = sample(name, 300 + seed, n)
        self.rho = mf.Marginal.positions(n)
        self.module = mf.design.TableGauge(n, 3, scale=1.5)
        self.noise = SCATTER * jax.random.normal(jax.random.key(400 + seed), (n, 3))

    def orbit(self, variables: dict) -> jax.Array:
        """The maximisers Q_iᵀ u of the gauge kernel (theory.md 2), u the pole."""
        matrices = jax.vmap(lambda i: self.module.apply(variables, i))(self.rho.labels)
        return jnp.einsum("nji,j->ni", matrices, POLE)

    def flow(self, map: Callable, x0: jax.Array) -> jax.Array:
        """Where the tokens x0 end under USA with the gauge ξ ↦ map(ξ)."""
        kernel = mf.Gauge(mf.ExpDot(BETA), map)
        return mf.flow(
            mf.USA(kernel), x0, self.rho, jnp.array([0.0, END]), save=("order",), max_steps=256, rtol=1e-4
        ).final

    def learned(self, steps: int, fine: int, seed: int):
        """(tokens at the end of the flow, history of both stages)."""
        start = self.module.init(jax.random.key(seed), jnp.asarray(0))
        schedule = optax.cosine_decay_schedule(0.1, steps)
        coarse = mf.design.fit(
            lambda v: mf.design.sinkhorn(self.orbit(v), self.train, epsilon=EPSILON), start, steps, optax.adam(schedule)
        )
        x0 = mf.sphere.normalize(jax.lax.stop_gradient(self.orbit(coarse.best)) + self.noise)

        def loss(variables):
            return mf.design.sinkhorn(self.flow(self.module.bind(variables), x0), self.train, epsilon=EPSILON)

        through = mf.design.fit(loss, coarse.best, fine, optax.adam(optax.cosine_decay_schedule(0.04, fine)))
        return self.flow(self.module.bind(through.best), x0), coarse.history, through.history

    def exact(self) -> jax.Array:
        """Where tokens end from an equally scattered start, under the gauge that realises as many points of the target."""
        matrices = mf.theory.realize_gauge(self.exact_targets, POLE)
        x0 = mf.sphere.normalize(self.exact_targets + self.noise)
        return self.flow(jax.tree_util.Partial(lambda table, i: table[i], matrices), x0)

    def distance(self, x: jax.Array) -> float:
        """√S_ε to samples of the target that no gauge was fitted to."""
        return float(jnp.sqrt(jnp.maximum(mf.design.sinkhorn(x, self.test, epsilon=EPSILON), 0)))


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Writes design_gauge.zarr, design_gauge.png, loss.png; one claim per target."""
    n, samples, steps, fine = (8, 32, 10, 2) if smoke else (48, 256, 120, 80)
    claims, found, distances, histories = [], {}, {}, {}
    for name in TARGETS:
        problem = Problem(name, n, samples, seed)
        learned, coarse, through = problem.learned(steps, fine, seed)
        exact, ideal = problem.exact(), problem.exact_targets
        found[name] = (problem.test, learned, exact)
        distances[name] = [problem.distance(x) for x in (learned, exact, ideal)]
        histories[name] = np.concatenate([coarse, through])
        ratio = distances[name][0] / distances[name][2]
        claims.append(
            Claim(f"{name}: Sinkhorn distance of the learned gauge over that of the exact maximiser", ratio, 1.1)
        )
    save(out, found, distances, histories)
    draw(out, found, distances, histories, steps)
    return claims


def save(out: pathlib.Path, found: dict, distances: dict, histories: dict) -> None:
    """All tokens, distances and losses as one labelled file."""
    names = list(found)
    tokens = np.stack([np.stack([np.asarray(x) for x in found[name][1:]]) for name in names])
    data = xr.Dataset(
        {
            "tokens": (("target", "gauge", "token", "coordinate"), tokens),
            "distance": (("target", "law"), np.array([distances[name] for name in names])),
            "loss": (("target", "evaluation"), np.stack([histories[name] for name in names])),
            "samples": (("target", "sample", "coordinate"), np.stack([np.asarray(found[name][0]) for name in names])),
        },
        {"target": names, "gauge": ["learned", "exact"], "law": ["learned", "exact under the flow", "exact maximiser"]},
        {"epsilon": EPSILON, "beta": BETA, "end": END},
    )
    mf.files.write_zarr(out / "design_gauge.zarr", data)


def draw(out: pathlib.Path, found: dict, distances: dict, histories: dict, steps: int) -> None:
    """Tokens of both gauges over the target, and the losses."""
    with mf.plot.style():
        fig = mf.plot.figure(9.0, 6.2)
        axes = fig.subplots(2, len(found), subplot_kw={"projection": "3d"})
        for column, (name, (target, learned, exact)) in enumerate(found.items()):
            for row, (label, x) in enumerate((("learned", learned), ("exact", exact))):
                ax = axes[row, column]
                ax.scatter(*np.asarray(target).T, s=2, color="#bbbbbb", depthshade=False)
                ax.scatter(*np.asarray(x).T, s=14, c=np.arange(len(x)), cmap="viridis", depthshade=False)
                shown = f"{distances[name][row]:.3g}" + (f" (maximiser {distances[name][2]:.3g})" if row else "")
                ax.set_title(f"{name}, {label}\n√S = {shown}")
                ax.set_box_aspect((1, 1, 1))
                ax.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1), xticks=[], yticks=[], zticks=[])
    mf.plot.save(fig, out / "design_gauge.png")
    with mf.plot.style():
        fig = mf.plot.figure()
        ax = fig.subplots()
        for name, history in histories.items():
            ax.plot(history, label=name)
        ax.axvline(steps + 1, color="#888888", linewidth=0.8)
        ax.set(
            yscale="log",
            xlabel="update (right of the line: through the flow)",
            ylabel="Sinkhorn divergence to the samples",
        )
        ax.legend()
    mf.plot.save(fig, out / "loss.png")
