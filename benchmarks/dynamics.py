"""Flows and velocities of issue-sized problems: overhead of the solver, blocked against dense, batches, gradients."""

import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from .measure import table, timed


def run(out: pathlib.Path) -> None:
    """Writes `dynamics.md` and `dynamics.csv`: each row a quantity, what it is compared with, their ratio, the limit."""
    rows = [flow_overhead(), *blocked_against_dense(), *batch_of_flows(), *gradient_of_a_flow()]
    table(
        rows, out / "dynamics", "Token dynamics", "Ratios are of medians within one run; limits are those of the issue."
    )


def cloud(n: int, d: int, seed: int = 0):
    """n uniform tokens in R^d, float32, without labels."""
    return mf.sphere.sample(jax.random.key(seed), (n, d), np.float32), mf.Marginal(np.zeros(n, np.float32))


def _row(what, value, against, reference, limit, **more):
    ratio = value.median / reference.median
    return {
        "what": what,
        "time": value,
        "against": against,
        "reference": reference,
        "ratio": ratio,
        "limit": limit,
        **more,
    }


def flow_overhead() -> dict:
    """The flow's time per right-hand side over the bare jitted velocity."""
    x, rho = cloud(2048, 16)
    dynamics = mf.USA(mf.ExpDot(2.0))
    field = dynamics.bind(rho, 16, x.dtype, "auto")
    evaluate = eqx.filter_jit(lambda field, x: field(x))
    bare = timed(lambda: evaluate(field, x), 15)
    ts = jnp.array([0.0, 3.0])
    traj = mf.flow(dynamics, x, rho, ts, rtol=1e-5, save=("order",))
    # six new stages a step (first same as last), one to begin with, two for the first step size, one finiteness check
    evaluations = 6 * int(traj.steps["steps"]) + 4
    whole = timed(lambda: mf.flow(dynamics, x, rho, ts, rtol=1e-5, save=("order",)).final, 7)
    each = type(whole)(whole.median / evaluations, whole.low / evaluations, whole.high / evaluations, whole.repeats)
    return _row(
        f"flow per right-hand side, n=2048 d=16 f32 ({evaluations} evaluations)", each, "bare velocity", bare, "≤ 1.2"
    )


def blocked_against_dense() -> list[dict]:
    """The blocked velocity over a dense JAX product, and its peak memory."""
    n, d = 16384, 3
    x, rho = cloud(n, d)
    blocked = jax.jit(lambda x: mf.velocity(mf.USA(mf.ExpDot(2.0)), x, rho, method="blocked"))

    @jax.jit
    def dense(x):
        return mf.sphere.project(x, jnp.exp(2.0 * x @ x.T) @ x / n)

    np.testing.assert_allclose(blocked(x), dense(x), atol=2e-5)
    a, b = timed(lambda: blocked(x), 5), timed(lambda: dense(x), 5)
    memory = jax.jit(blocked).lower(x).compile().memory_analysis()
    row = _row("blocked velocity, n=16384 d=3 f32", a, "dense JAX product", b, "≤ 1/3")
    return [row | {"peak MB": memory.temp_size_in_bytes / 1e6}]


def batch_of_flows() -> list[dict]:
    """256 simulations as one compiled call over a Python loop over the compiled single solve."""
    seeds = jnp.arange(256)
    rho = mf.Marginal(np.zeros(64, np.float32))

    def one(seed):
        x = mf.sphere.sample(jax.random.fold_in(jax.random.key(0), seed), (64, 3), np.float32)
        return mf.flow(mf.USA(mf.ExpDot(2.0)), x, rho, jnp.array([0.0, 10.0]), rtol=1e-5, throw=False).order[-1]

    single = jax.jit(one)
    loop = timed(lambda: [jax.block_until_ready(single(s)) for s in seeds], 3)
    rows = []
    for name, batch in (("vmap", jax.jit(jax.vmap(one))), ("lax.map", jax.jit(lambda s: jax.lax.map(one, s)))):
        np.testing.assert_allclose(batch(seeds)[:3], [single(s) for s in seeds[:3]], atol=1e-4)
        rows.append(
            _row(f"256 flows of 64 tokens, one {name}", timed(lambda b=batch: b(seeds), 3), "Python loop", loop, "≤ 1")
        )
    return rows


def gradient_of_a_flow() -> list[dict]:
    """The gradient of a flow over 20 time units over the flow itself, for few and for many tokens."""
    rows = []
    for n, d in ((64, 3), (256, 4), (1024, 16)):
        x, rho = cloud(n, d)

        def order(beta, x=x, rho=rho):
            ts = jnp.array([0.0, 20.0])
            return mf.flow(mf.USA(mf.ExpDot(beta)), x, rho, ts, rtol=1e-5, save=("order",), throw=False).order[-1]

        forward, backward = jax.jit(order), jax.jit(jax.grad(order))
        beta = jnp.float32(1.0)
        cost, reference = timed(lambda f=backward: f(beta), 5), timed(lambda f=forward: f(beta), 9)
        rows.append(_row(f"gradient of a flow to t=20, n={n} d={d} f32", cost, "the flow", reference, "≤ 6"))
    return rows
