"""The bridge: the rollout of a causal flow's own attention against its exact influence.

Along `mf.flow` and `mf.layers` of a causal SA with ALiBi factor e^{−α|i−j|}: p, the last row of Π((1−λ)I + λA(t)), against ‖∂x_last(T)/∂x_j(0)‖ by
automatic differentiation (tangent directions, Frobenius norm, normalised), for β, step λ and slope α (theory.md 4). The rollout knows neither how
attention changes with the tokens nor the projections onto tangent spaces; normalising takes out the factor e^{∫(1 − ⟨x, Ax⟩)} where tokens share it.
"""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf
from meanfield.files import write_text

from ._claims import Claim

pp = mf.propagation
TIME = 2.0  # Σλ of the layers, and the flow's final time
STEPS, BETAS, ALPHAS = (0.05, 0.2, 0.5), (0.25, 1.0, 4.0), (0.0, 0.3)


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Figure bridge.png, numbers bridge.csv and bridge.npz; initial tokens are drawn from `seed`."""
    n, seeds = (8, 2) if smoke else (32, 8)
    found = {}
    for step in (*STEPS, None):  # None: the flow itself
        pair = _compiled(step, n, seeds, seed)
        for beta in BETAS:
            for alpha in ALPHAS:
                found[step, beta, alpha] = tuple(np.asarray(p) for p in pair(jnp.asarray(beta), jnp.asarray(alpha)))
    rows = [_row(*key, *pair) for key, pair in found.items()]
    write_text(
        out / "bridge.csv", "\n".join([",".join(rows[0]), *(",".join(map(str, r.values())) for r in rows)]) + "\n"
    )
    _figure({key[1:]: pair for key, pair in found.items() if key[0] is None}, out / "bridge.png")
    gaps = {
        step: max(float(pp.wasserstein(found[step, b, a][1], found[None, b, a][1])) for b in BETAS for a in ALPHAS)
        for step in STEPS
    }
    return [
        Claim("the rollout is nearer to the exact influence than the uniform profile (worst ratio of distances)", max(r["rollout"] / r["uniform"] for r in rows), 1.0, "<"),
        Claim("and than attention without residuals (worst ratio of distances)", max(r["rollout"] / r["attention only"] for r in rows), 1.0, "<"),
        Claim("exact influence of layers tends to that of the flow at first order: distance at λ = .05 over that at λ = .2", gaps[0.05] / gaps[0.2], 0.4),
    ]  # fmt: skip


def _row(step: float | None, beta: float, alpha: float, predicted: np.ndarray, exact: np.ndarray) -> dict:
    """Wasserstein distances to the exact influence of the rollout and of three predictors that know less, and the rollout's Spearman."""
    n = len(exact)
    mixing = _mixing(step)
    others = {
        "architecture alone": pp.profile(pp.Architecture(mixing, [alpha]), n),
        "attention only": pp.profile(pp.Architecture(np.ones_like(mixing), [alpha]), n),
        "uniform": np.ones(n),
    }
    row = {"beta": beta, "alpha": alpha, "step": "flow" if step is None else step}
    row |= {name: float(pp.wasserstein(p, exact)) for name, p in ({"rollout": predicted} | others).items()}
    return row | {"spearman": float(pp.spearman(predicted, exact))}


def _mixing(step: float | None) -> np.ndarray:
    """λ of the layers, or of the rollout along the flow, in steps of 0.1."""
    depth = round(TIME / (step or 0.1))
    return np.full(depth, TIME / depth, jnp.result_type(float))


def _dynamics(beta: float | jax.Array, alpha: float | jax.Array) -> mf.SA:
    return mf.SA(mf.Toeplitz(mf.ExponentialDecay(alpha), mf.ExpDot(beta, shift=1.0)), causal=True)


def _compiled(step: float | None, n: int, seeds: int, seed: int):
    """(β, α) → the rollout's last row and the exact influence, both averaged over initial conditions."""
    starts = mf.sphere.sample(jax.random.key(seed), (seeds, n, 3))
    rho = mf.Marginal.positions(n)

    def one(x0: jax.Array, beta: jax.Array, alpha: jax.Array, mixing: jax.Array) -> tuple[jax.Array, jax.Array]:
        dynamics = _dynamics(beta, alpha)

        def last(x0: jax.Array) -> tuple[jax.Array, jax.Array]:
            if step is None:
                ts = jnp.linspace(0, TIME, mixing.shape[0] + 1)
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
    def pair(beta: jax.Array, alpha: jax.Array, mixing: jax.Array) -> tuple[jax.Array, jax.Array]:
        rollouts, influence = jax.lax.map(lambda x0: one(x0, beta, alpha, mixing), starts)
        return rollouts.mean(0), influence.mean(0)

    return functools.partial(pair, mixing=jnp.asarray(_mixing(step)))


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
