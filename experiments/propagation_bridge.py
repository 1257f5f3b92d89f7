"""The bridge: the rollout of a causal flow's own attention against its exact influence.

Along `mf.flow` and `mf.layers` of a causal SA with ALiBi factor e^{−α|i−j|}: p, the last row of Π((1−λ)I + λA(t)), against ‖∂x_last(T)/∂x_j(0)‖ by
automatic differentiation (tangent directions, Frobenius norm, normalised), for β, step λ and slope α (theory.md 4).
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf
from meanfield.files import write_text

from ._claims import Claim

pp = mf.propagation
TIME = 2.0  # Σλ of the layers, and the flow's final time


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Figure bridge.png, numbers bridge.csv and bridge.npz; initial tokens are drawn from `seed`."""
    n, seeds = (8, 2) if smoke else (32, 8)
    rows, shown = [], {}
    for step in (0.05, 0.2, 0.5, None):  # None: the flow itself
        pair = _compiled(step, n, seeds, seed)
        for beta in (0.25, 1.0, 4.0):
            for alpha in (0.0, 0.3):
                predicted, exact = pair(jnp.asarray(beta), jnp.asarray(alpha))
                distance, rank = float(pp.wasserstein(predicted, exact)), float(pp.spearman(predicted, exact))
                rows.append((beta, alpha, "flow" if step is None else step, distance, rank))
                if step is None:
                    shown[beta, alpha] = (np.asarray(predicted), np.asarray(exact))
    head = "beta,alpha,step,wasserstein,spearman"
    write_text(out / "bridge.csv", "\n".join([head, *(",".join(map(str, r)) for r in rows)]) + "\n")
    _figure(shown, out / "bridge.png")
    flows = [r for r in rows if r[2] == "flow"]
    gap = max(abs(r[3] - f[3]) for r in rows if r[2] == 0.05 for f in flows if f[:2] == r[:2])
    return [
        Claim(
            "Wasserstein distance of rollout and exact influence, worst over β, λ and α", max(r[3] for r in rows), 0.15
        ),
        Claim("layers of step 0.05 and the flow agree on that distance (largest difference)", gap, 0.03),
    ]


def _dynamics(beta: float | jax.Array, alpha: float | jax.Array) -> mf.SA:
    return mf.SA(mf.Toeplitz(mf.ExponentialDecay(alpha), mf.ExpDot(beta, shift=1.0)), causal=True)


def _compiled(step: float | None, n: int, seeds: int, seed: int):
    """(β, α) → the rollout's last row and the exact influence, both averaged over initial conditions."""
    starts = mf.sphere.sample(jax.random.key(seed), (seeds, n, 3))
    rho = mf.Marginal.positions(n)
    depth = 20 if step is None else round(TIME / step)
    mixing = jnp.full((depth,), TIME / depth)

    def one(x0: jax.Array, beta: jax.Array, alpha: jax.Array) -> tuple[jax.Array, jax.Array]:
        dynamics = _dynamics(beta, alpha)

        def last(x0: jax.Array) -> tuple[jax.Array, jax.Array]:
            if step is None:
                ts = jnp.linspace(0, TIME, depth + 1)
                x = mf.flow(dynamics, x0, rho, ts, rtol=1e-5, save=("x",)).x
            else:
                x = mf.layers(dynamics, x0, rho, mixing).x
            return x[-1, -1], x

        jacobian, x = jax.jacrev(last, has_aux=True)(x0)  # (d, n, d)
        tangent = jacobian - jnp.einsum("and,nd,ne->ane", jacobian, x0, x0)
        matrices = jax.lax.map(lambda x: mf.attention(dynamics, x, rho), x[:-1])
        influence = jnp.sqrt((tangent**2).sum((0, 2)))
        return pp.rollout(matrices, mixing)[-1], influence / influence.sum()

    @jax.jit
    def pair(beta: jax.Array, alpha: jax.Array) -> tuple[jax.Array, jax.Array]:
        rollouts, influence = jax.lax.map(lambda x0: one(x0, beta, alpha), starts)
        return rollouts.mean(0), influence.mean(0)

    return pair


def _figure(shown: dict, path: pathlib.Path) -> None:
    with mf.plot.style():
        fig = mf.plot.figure(8.6, 4.4)
        axes = fig.subplots(2, 3, sharex=True)
        for k, ((beta, alpha), (predicted, exact)) in enumerate(shown.items()):
            ax = axes[k % 2, k // 2]
            ax.semilogy(exact, label="exact, by autodiff")
            ax.semilogy(predicted, "--", label="rollout of its attention")
            ax.set_title(f"β = {beta}, α = {alpha}")
        axes[0, 0].legend()
        fig.supxlabel("token j")
        fig.supylabel("influence on the last token")
    data = {
        f"beta{b}_alpha{a}_{name}": x
        for (b, a), pair in shown.items()
        for name, x in zip(("rollout", "exact"), pair, strict=True)
    }
    mf.plot.save(fig, path, data)
