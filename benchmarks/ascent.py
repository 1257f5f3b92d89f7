"""Maximisers: time to the best energy against pymanopt from the same starts, success from keys, cost per iteration."""

import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf
from meanfield.ascent import LBFGS, bind, climb
from meanfield.ascent.engine import stopping
from meanfield.ascent.starts import start_mixture

from .measure import table, timed

BEST = {1.0: 0.28257955, 2.0: 0.41122283, 4.0: 1.55818971, 6.0: 7.72317953}  # theory.md 2, n = 60
RHO = mf.Marginal.circle(60)
REACHED = 1 - 1e-5


def run(out: pathlib.Path) -> None:
    """Writes ascent_pymanopt, ascent_keys and ascent_iteration tables."""
    with jax.enable_x64(True):
        table(against_pymanopt(), out / "ascent_pymanopt", "Ascent against pymanopt, g = cos τ, n = 60",
              "Same starts. pymanopt: each solver from 8 starts; meanfield: 64 starts together (L-BFGS only, no polish).")  # fmt: skip
        table(from_keys(), out / "ascent_keys", "mf.ascend from 20 keys, g = cos τ, n = 60",
              "Defaults, bound included, after compiling; reached: within 1e-5 of the best energy known.")  # fmt: skip
        table(per_iteration(), out / "ascent_iteration", "Cost of one L-BFGS move, d = 3, one restart")


def cosine(beta: float) -> mf.Toeplitz:
    """The landscape of theory.md 2."""
    return mf.Toeplitz(mf.Cosine(), mf.ExpDot(beta))


def starts(beta: float, dim: int, count: int = 64) -> jax.Array:
    """The library's own mixture of starts."""
    return start_mixture(
        bind(cosine(beta), RHO, None, dim, jnp.dtype(float)), jax.random.key(7), count, dim, jnp.dtype(float)
    )


@jax.jit
def ours(beta, x0):
    """All starts together, each to the search's tolerance."""
    landscape = bind(cosine(beta), RHO, None, x0.shape[-1], x0.dtype)
    return jax.vmap(lambda x: climb(landscape, x, LBFGS(), stopping(x0.dtype, 2000)).point.energy)(x0)


def against_pymanopt() -> list[dict]:
    """One row per β, dimension and solver."""
    rows = []
    for dim in (2, 3):
        for beta in (2.0, 6.0):
            x0 = starts(beta, dim)
            energies = np.asarray(ours(beta, x0))
            rows.append(
                {"solver": "meanfield L-BFGS, 64 together", "beta": beta, "d": dim, "seconds": timed(lambda b=beta, x=x0: ours(b, x), 3),
                 "starts": 64, "success": float(np.mean(energies > BEST[beta] * REACHED)),
                 "best / known": float(energies.max() / BEST[beta])}
            )  # fmt: skip
            rows += [
                pymanopt_row(name, beta, dim, np.asarray(x0[:8]))
                for name in ("ConjugateGradient", "TrustRegions", "SteepestDescent")
            ]
    return rows


def pymanopt_row(name: str, beta: float, dim: int, x0: np.ndarray) -> dict:
    """pymanopt's NumPy backend with the exact Euclidean gradient, from 8 starts, one after the other."""
    import pymanopt
    from pymanopt import optimizers

    manifold = pymanopt.manifolds.Oblique(dim, 60)
    angle = np.asarray(RHO.labels)
    factor = np.cos(angle[:, None] - angle) / 60**2

    @pymanopt.function.numpy(manifold)
    def cost(x):
        return -0.5 * np.sum(factor * np.exp(beta * (x.T @ x))) / beta

    @pymanopt.function.numpy(manifold)
    def gradient(x):
        return -x @ (factor * np.exp(beta * (x.T @ x)))

    @pymanopt.function.numpy(manifold)
    def hessian(x, u):
        weights = factor * np.exp(beta * (x.T @ x))
        cross = x.T @ u
        return -u @ weights - beta * (x @ (weights * (cross + cross.T)))

    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
    solver = getattr(optimizers, name)(max_iterations=2000, max_time=20, min_gradient_norm=1e-8, verbosity=0)
    begin = time.perf_counter()
    energies = np.array([-solver.run(problem, initial_point=x.T.copy()).cost for x in x0])
    return {
        "solver": f"pymanopt {name}, 8 in turn", "beta": beta, "d": dim, "seconds": time.perf_counter() - begin, "starts": 8,
        "success": float(np.mean(energies > BEST[beta] * REACHED)), "best / known": float(energies.max() / BEST[beta]),
    }  # fmt: skip


def from_keys() -> list[dict]:
    """Success and time of the front door for 20 keys."""
    rows = []
    for dim in (2, 3):
        for beta, known in BEST.items():
            mf.ascend(cosine(beta), RHO, dim, jax.random.key(99))
            seconds, energies, bounds = [], [], []
            for seed in range(20):
                begin = time.perf_counter()
                best = mf.ascend(cosine(beta), RHO, dim, jax.random.key(seed))
                seconds.append(time.perf_counter() - begin)
                energies.append(float(best.energy))
                bounds.append(best.upper_bound)
            rows.append(
                {"beta": beta, "d": dim, "keys that reach the best": int(np.sum(np.array(energies) > known * REACHED)),
                 "median seconds": float(np.median(seconds)), "slowest": float(np.max(seconds)),
                 "worst energy / known": min(energies) / known, "bound / known": max(bounds) / known}
            )  # fmt: skip
    return rows


def per_iteration() -> list[dict]:
    """Seconds of one move of L-BFGS and of one velocity evaluation."""
    rows = []
    for n in (60, 256, 1024, 4096):
        rho = mf.Marginal.circle(n)
        x = mf.sphere.sample(jax.random.key(0), (n, 3))
        moves = 20

        @jax.jit
        def ascend(x, rho=rho, moves=moves):
            return climb(bind(cosine(2.0), rho, None, 3, x.dtype), x, LBFGS(), stopping(x.dtype, moves)).point.x

        velocity = jax.jit(lambda x, rho=rho: mf.velocity(mf.USA(cosine(2.0)), x, rho))
        move, one = (
            timed(lambda x=x, f=ascend: f(x), 5).median / (moves + 1),
            timed(lambda x=x, f=velocity: f(x), 5).median,
        )
        rows.append({"n": n, "seconds per move": move, "seconds per velocity": one, "ratio": move / one})
    return rows
