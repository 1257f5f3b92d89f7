"""A sweep of 1,000 adaptive flows (n = 64, mixed β) against a Python loop over an already compiled solve, vmap and lax.map."""

import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from .measure import table

POINTS, TOKENS = 1000, 64


def relax(beta, seed):
    """Order parameter of USA at four times, from seeded random tokens on S²; β in [1, 9] gives 40 to 300 steps."""
    x0 = mf.sphere.sample(jax.random.fold_in(jax.random.key(0), seed), (TOKENS, 3), jnp.float32)
    kernel = mf.ExpDot(beta, shift=1.0)
    traj = mf.flow(
        mf.USA(kernel), x0, mf.Marginal(jnp.zeros(TOKENS)), jnp.linspace(0.0, 20.0, 4), throw=False, save=("order",)
    )
    return {"order": traj.order, "steps": traj.steps["steps"], "ok": traj.ok}


def run(out: pathlib.Path) -> None:
    """Writes sweep.md and sweep.csv: seconds for all points without compilation, ratios to the loop."""
    rng = np.random.default_rng(0)
    betas, seeds = rng.uniform(1.0, 9.0, POINTS), np.arange(POINTS)
    grid = [{"beta": b, "seed": s} for b, s in zip(betas, seeds, strict=True)]
    solve = jax.jit(relax)
    solo = [(jnp.asarray(b, jnp.float32), jnp.asarray(s, jnp.int32)) for b, s in zip(betas, seeds, strict=True)]
    many = (jnp.asarray(betas, jnp.float32), jnp.asarray(seeds, jnp.int32))
    ways = {
        "Python loop over a compiled solve": lambda: np.stack([np.asarray(solve(*point)["order"]) for point in solo]),
        "jax.lax.map": _compiled(lambda b, s: jax.lax.map(lambda p: relax(*p), (b, s)), many),
        "jax.vmap, all at once": _compiled(jax.vmap(relax), many),
    }
    rows, results, seconds = [], {}, {}
    for name, way in ways.items():
        way() if name.startswith("Python") else None  # compiles
        begin = time.perf_counter()
        results[name] = way()
        seconds[name] = time.perf_counter() - begin
    for workers in (1, 2):
        name = f"mf.sweep, {workers} thread{'s' * (workers > 1)}"
        ds = mf.sweep(relax, grid, workers=workers)
        results[name], seconds[name] = ds["order"].values, ds.attrs["wall_time"] - ds.attrs["compile_time"]
    loop = next(iter(ways))
    for name, value in seconds.items():
        worst = float(np.nanmax(np.abs(results[name] - results[loop])))
        rows.append({"way": name, "s": value, "ratio to the loop": value / seconds[loop], "largest difference": worst})
    note = f"{POINTS} points, n = {TOKENS}, d = 3, float32, t = 20, rtol 1e-6; steps {ds['steps'].values.min()} to {ds['steps'].values.max()}."
    table(
        rows,
        out / "sweep",
        "Sweeps",
        note + f" mf.sweep compiled {ds.attrs['compiles']} program, in {ds.attrs['compile_time']:.1f} s, not counted.",
    )


def _compiled(fn, arguments):
    program = jax.jit(fn).lower(*arguments).compile()
    return lambda: np.asarray(program(*arguments)["order"])
