"""Maximisers: success from keys, seconds and bounds of the front door, pymanopt from the same starts, cost per move."""

import pathlib
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf
from meanfield.ascent import LBFGS, Stopping, bind, climb
from meanfield.ascent.landscape import AbstractLandscape
from meanfield.ascent.search import ascend_starts, schedule
from meanfield.ascent.starts import start_mixture

from .measure import table, timed

BEST = {1.0: 0.28257955, 2.0: 0.41122283, 4.0: 1.55818971, 6.0: 7.72317953}  # theory.md 2, n = 60
N = 60
REACHED = 1 - 1e-5
MOVES = 20


def run(out: pathlib.Path) -> None:
    """Writes the tables ascent_keys, ascent_seconds, ascent_pymanopt and ascent_moves."""
    with jax.enable_x64(True):
        for write in (keys, seconds, against_pymanopt, moves):
            write(out)


def cosine(beta: float) -> mf.Toeplitz:
    """The landscape of theory.md 2."""
    return mf.Toeplitz(mf.Cosine(), mf.ExpDot(beta))


def circle() -> mf.Marginal:
    """60 labels, in the precision of the moment."""
    return mf.Marginal.circle(N)


def keys(out: pathlib.Path) -> None:
    """How many of 20 keys reach the best energy known."""
    rows = []
    for dim in (2, 3):
        for beta, known in BEST.items():
            found = [mf.ascend(cosine(beta), circle(), dim, jax.random.key(seed), certify=False) for seed in range(20)]
            energies = np.array([float(best.energy) for best in found])
            hits = [np.mean(np.asarray(best.energies) > known * REACHED) for best in found]
            rows.append(
                {
                    "β": beta,
                    "d": dim,
                    "keys that reach it": f"{np.sum(energies > known * REACHED)} of 20",
                    "worst energy / best known − 1": energies.min() / known - 1,
                    "median share of the 64 restarts": float(np.median(hits)),
                    "converged": f"{sum(best.status == 'converged' for best in found)} of 20",
                }
            )
    note = "mf.ascend with its defaults; reached: within 1e-5 of the best energy known (theory.md 2)."
    table(rows, out / "ascent_keys", "Maximisers of cos τ · e^{βt}/β from 20 keys, n = 60", note)


def seconds(out: pathlib.Path) -> None:
    """Wall time of the front door after compiling, bound included, and the bound."""
    rows = []
    for dim in (2, 3):
        mf.ascend(cosine(1.5), circle(), dim, jax.random.key(99))
        for beta in range(1, 9):
            times, ratios = [], []
            for seed in range(3 if beta in BEST else 1):
                begin = time.perf_counter()
                best = mf.ascend(cosine(float(beta)), circle(), dim, jax.random.key(seed))
                times.append(time.perf_counter() - begin)
                ratios.append(best.upper_bound / float(best.energy))
            rows.append(
                {"β": beta, "d": dim, "keys": len(times), "median seconds": float(np.median(times)), "slowest": max(times),
                 "bound / energy": max(ratios), "bound by": best.bound.method}
            )  # fmt: skip
    note = "Defaults: 64 restarts, polish, curvature and upper bound; after one call with another β that compiles."
    table(rows, out / "ascent_seconds", "mf.ascend: seconds and certificate, cos τ · e^{βt}/β, n = 60", note)


def ours(beta: float, x0: jax.Array) -> jax.Array:
    """All starts as the search runs them, each to the search's tolerance."""
    plan = schedule(x0.shape[0], False, 2000, x0.dtype)
    return ascend_starts(cosine(beta), circle(), None, x0, *plan, LBFGS(), None)[1]


def against_pymanopt(out: pathlib.Path, rounds: int = 5) -> None:
    """One row per β, dimension and solver, from the same starts; all solvers in turn, `rounds` times."""
    rows = []
    for beta, dim in ((2.0, 3), (6.0, 2), (6.0, 3)):
        dtype = jnp.dtype(float)
        x0 = start_mixture(bind(cosine(beta), circle(), None, dim, dtype), jax.random.key(7), 64, dim, dtype)
        runs: dict[str, Callable[[], tuple[float, np.ndarray]]] = {
            f"meanfield L-BFGS, {len(x)} starts": lambda x=x, b=beta: _ours(b, x) for x in (x0, x0[:8])
        }
        for name in ("ConjugateGradient", "TrustRegions", "SteepestDescent"):
            runs[f"pymanopt {name}, 8 in turn"] = lambda n=name, x=x0, b=beta, d=dim: pymanopt(
                n, b, d, np.asarray(x[:8])
            )
        for run in runs.values():
            run()  # compiles
        found = [{name: run() for name, run in runs.items()} for _ in range(rounds)]
        for name in runs:
            rows.append(_row(name, beta, dim, [each[name][0] for each in found], found[0][name][1]))
    note = (
        "The first 8 of the 64 starts are pymanopt's; NumPy backend with exact gradient and Hessian, at most 1000 iterations "
        "a start. success: share of starts within 1e-5 of the best energy known; seconds per success: total over successes. "
        f"Seconds: median, fastest and slowest of {rounds} rounds, all solvers in turn."
    )
    table(rows, out / "ascent_pymanopt", "Ascent against pymanopt, cos τ · e^{βt}/β, n = 60", note)


def _ours(beta: float, x0: jax.Array) -> tuple[float, np.ndarray]:
    begin = time.perf_counter()
    energies = jax.block_until_ready(ours(beta, x0))
    return time.perf_counter() - begin, np.asarray(energies)


def _row(solver: str, beta: float, dim: int, spent: list[float], energies: np.ndarray) -> dict:
    hits, median = int(np.sum(energies > BEST[beta] * REACHED)), float(np.median(spent))
    return {
        "β": beta, "d": dim, "solver": solver, "seconds": median, "fastest": min(spent), "slowest": max(spent),
        "success": hits / len(energies), "seconds per success": median / hits if hits else None,
        "best / best known": float(energies.max() / BEST[beta]),
    }  # fmt: skip


def pymanopt(name: str, beta: float, dim: int, x0: np.ndarray) -> tuple[float, np.ndarray]:
    """Seconds and final energies of a pymanopt solver on the oblique manifold, one start after the other."""
    import pymanopt
    from pymanopt import optimizers

    manifold = pymanopt.manifolds.Oblique(dim, 60)
    angle = np.asarray(circle().labels)
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
    solver = getattr(optimizers, name)(max_iterations=1000, max_time=20, min_gradient_norm=1e-8, verbosity=0)
    begin = time.perf_counter()
    energies = np.array([-solver.run(problem, initial_point=x.T.copy()).cost for x in x0])
    return time.perf_counter() - begin, energies


class Linear(AbstractLandscape):
    """E = Σ w_i⟨x_i, b_i⟩: costs nothing to evaluate, so an ascent on it is vector work alone."""

    rho: mf.Marginal
    b: jax.Array

    def __call__(self, x):
        """Energy and force."""
        return jnp.sum(self.rho.weights[:, None] * x * self.b), self.b


def moves(out: pathlib.Path) -> None:
    """Seconds of one move of L-BFGS beside one velocity (all pairs) and the vector work, all inside one program."""
    rows = []
    for n in (60, 256, 1024, 4096):
        rho = mf.Marginal.circle(n)
        x, b = mf.sphere.sample(jax.random.key(0), (2, n, 3))
        never = Stopping(jnp.zeros(()), -jnp.ones(()), jnp.asarray(MOVES, jnp.int32))

        @jax.jit
        def ascend(x, rho=rho, never=never):
            return climb(bind(cosine(2.0), rho, None, 3, x.dtype), x, LBFGS(), never).point.x

        @jax.jit
        def vectors(x, rho=rho, b=b, never=never):
            return climb(Linear(rho, b), x, LBFGS(), never).point.x

        @jax.jit
        def velocities(x, rho=rho):
            method = "dense" if n <= 2048 else "blocked"
            field = lambda x: mf.velocity(mf.USA(cosine(2.0)), x, rho, method=method)
            return jax.lax.fori_loop(0, MOVES + 1, lambda _, x: mf.sphere.normalize(x + 0.01 * field(x)), x)

        move, vector, one = (
            timed(lambda f=f, x=x: f(x), 5).median / (MOVES + 1) for f in (ascend, vectors, velocities)
        )
        rows.append(
            {"n": n, "one move": move, "one velocity": one, "vector work": vector, "move / (velocity + vector work)": move / (one + vector)}
        )  # fmt: skip
    note = (
        f"Seconds, d = 3, one restart, mean of {MOVES + 1} evaluations in one compiled loop (medians of 5 runs). Up to 2048 tokens "
        "an ascent evaluates the position factor once, the velocity each time."
    )
    table(rows, out / "ascent_moves", "Cost of one L-BFGS move", note)
