"""One picture: tokens that flow on the circle answer as a rollout of their position weights, with the gain of each harmonic.

Causal tokens from the uniform law, θ̇_i = Σ_j a_ij e^{β cos(θ_j − θ_i)} sin(θ_j − θ_i), a the ALiBi attention (rows sum to 1, no softmax over tokens).
To first order E e^{ip(θ_i(t) − θ_k(0))} grows by p²I_p(β)/β Σ_j a_ij: n E cos p(θ_n(t) − θ_k(0)) is n times the last row of e^{Λa}, Λ = p²I_p(β)t/β
(arXiv 2605.09213; theory.md 4), up to O(1/n): theory.md states 4 % at n = 32. It is measured through the exact influence, by the identity
E cos p(θ_n(t) − θ_k(0)) = E[cos p(θ_n(t) − θ_k(0)) ∂θ_n(t)/∂θ_k(0)], whose variance is n times smaller.
"""

import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from ._claims import Claim

pp = mf.propagation
DECAY, TOTAL = 3.0, 0.5  # αn and Λ
CASES = ((1.0, 1), (2.0, 2))  # β and the mode p


class _Field(mf.dynamics.AbstractDriftField):
    weights: jax.Array
    beta: jax.Array
    method: str = eqx.field(static=True, default="dense")

    def drift(self, x):
        return (self.weights * jnp.exp(self.beta * x @ x.T)) @ x

    def __call__(self, x):
        return mf.sphere.project(x, self.drift(x))


class _RowNormalised(mf.AbstractDynamics):
    """ẋ_i = P_{x_i} Σ_j a_ij e^{β⟨x_i, x_j⟩} x_j."""

    weights: jax.Array
    beta: jax.Array
    kernel: None = None
    prefix: None = None

    def bind(self, rho, d, dtype, method):
        return _Field(self.weights, self.beta)


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Figure harmonic.png with its numbers; initial angles are drawn from `seed`."""
    sizes, samples = ((8, 16, 24), 64) if smoke else ((16, 32, 64), 8192)
    errors, shown = {}, {}
    for n in sizes:
        attention = pp.attention(pp.Architecture(jnp.ones(1), jnp.asarray([DECAY / n])), 0, n)
        measure = _compiled(n, attention, min(samples, samples * 32 // n), seed)
        for beta, mode in CASES:
            time = TOTAL / float(mf.theory.growth_rates(beta, 2, [mode])[0])
            mean, noise = (np.asarray(a) for a in measure(*map(jnp.asarray, (beta, float(mode), time))))
            closed = n * np.asarray(mf.theory.harmonic_response(TOTAL, n, DECAY / n))[:-1]
            bins = slice(n // 8, n - n // 8)  # the first bin, and the last, which holds the atom, are left out
            errors[n, mode] = (mean / closed - 1)[bins].reshape(-1, n // 8).mean(1)
            shown[n, mode] = (mean, noise, closed)
    _figure(shown, out / "harmonic.png")
    small, middle, large = sizes
    return [
        claim
        for beta, mode in CASES
        for claim in (
            Claim(f"mode {mode}, β = {beta:g}, n = {middle}: response against the rollout, worst relative error of the inner bins", float(np.abs(errors[middle, mode]).max()), 0.04),
            Claim(f"mode {mode}, β = {beta:g}: mean relative error at n = {large} over that at n = {small} (tends to ¼)", float(errors[large, mode].mean() / errors[small, mode].mean()), 0.5),
        )
    ]  # fmt: skip


def _compiled(n: int, attention: jax.Array, samples: int, seed: int):
    """(β, mode, time) → mean response n E cos p(θ_n(t) − θ_k(0)) of every token k, (n,), and its standard error."""
    rho = mf.Marginal.positions(n)
    keys = jax.random.split(jax.random.key(seed), samples).reshape(-1, min(64, samples))

    def one(key, beta, mode, time):
        start = jax.random.uniform(key, (n,), attention.dtype, maxval=2 * np.pi)

        def last(angles):
            x0 = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
            ts = jnp.stack([jnp.zeros_like(time), time])
            x = mf.flow(_RowNormalised(attention, beta), x0, rho, ts, rtol=1e-4, atol=1e-6, save=("x",)).x
            return jnp.arctan2(x[-1, -1, 1], x[-1, -1, 0])

        angle, influence = jax.value_and_grad(last)(start)
        response = jnp.cos(mode * (angle - start)) * influence
        # A control variate of known mean: one direct step from k to the last token.
        apart = start - start[-1]
        step = jnp.exp(beta * jnp.cos(apart)) * (jnp.cos(apart) - beta * jnp.sin(apart) ** 2)
        direct = time * attention[-1] * (jnp.cos(mode * apart) * step)
        return n * response, n * direct

    @jax.jit
    def measure(beta, mode, time):
        batch = jax.vmap(lambda key: one(key, beta, mode, time))
        response, direct = (a.reshape(samples, n)[:, :-1] for a in jax.lax.map(batch, keys))
        known = n * TOTAL * attention[-1, :-1]
        centred = direct - direct.mean(0)
        share = (centred * response).mean(0) / (centred**2).mean(0)
        corrected = response - share * (direct - known)
        return corrected.mean(0), corrected.std(0) / np.sqrt(samples)

    return measure


def _figure(shown: dict, path: pathlib.Path) -> None:
    with mf.plot.style():
        fig = mf.plot.figure(3.0 * len(CASES) + 1.6, 3.4)
        axes = fig.subplots(1, len(CASES), sharey=True)
        for ax, (beta, mode) in zip(axes, CASES, strict=True):
            for n, marker in zip(sorted({n for n, _ in shown}), "os^", strict=True):
                mean, noise, rollout = shown[n, mode]
                s = (np.arange(n - 1) + 0.5) / n
                (line,) = ax.plot(s, rollout, linewidth=0.8)
                ax.errorbar(s, mean, noise, fmt=marker, markersize=3, color=line.get_color(), label=f"flow, n = {n}")
            ax.plot([], [], color="#888888", linewidth=0.8, label="rollout of the same n")
            s = np.linspace(0.005, 1, 200)
            ax.plot(s, mf.theory.harmonic_density(TOTAL, s, DECAY), color="black", label="closed form, n = ∞")
            ax.set(xlabel="position s = k/n", title=f"mode {mode}, β = {beta:g}")
        axes[0].set_ylabel("n E cos p(θ_n(t) − θ_k(0))")
        axes[0].legend()
    data = {
        f"n{n}_mode{p}_{name}": x
        for (n, p), arrays in shown.items()
        for name, x in zip(("flow", "error", "rollout"), arrays, strict=True)
    }
    mf.plot.save(fig, path, data)
