"""Flows: on the sphere, monotone, of the solver's order, labelled status; what a user asks of a run."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from table import tokens

import meanfield as mf
from meanfield._integrate import OnSphere, right_hand_side

TS = jnp.linspace(0.0, 6.0, 13)


def run(beta, x, rho, **options):
    return mf.flow(mf.USA(mf.RoPE(mf.ExpDot(beta), jnp.array([0.9]))), x, rho, TS.astype(x.dtype), **options)


def test_states_are_unit_and_energy_never_falls(precision):
    """At loose tolerances too: trap of norm drift."""
    x, rho = tokens(dtype=precision)
    eps = float(np.finfo(precision).eps)
    for rtol in (1e-2, 1e-5):
        traj = run(1.3, x, rho, rtol=rtol)
        assert traj.x.dtype == precision and traj.energy.dtype == precision
        np.testing.assert_allclose(jnp.linalg.norm(traj.x, axis=-1), 1, atol=4 * eps)
        rise = np.diff(np.asarray(traj.energy, np.float64))
        assert rise.min() >= -20 * eps * float(traj.energy.max())
    np.testing.assert_allclose(
        traj.energy,
        [mf.energy(mf.RoPE(mf.ExpDot(1.3), jnp.array([0.9])), x, rho) for x in traj.x[:3]] + list(traj.energy[3:]),
        rtol=50 * eps,
    )
    np.testing.assert_allclose(
        traj.order, jnp.linalg.norm(jnp.einsum("n,tnd->td", rho.weights, traj.x), axis=-1), rtol=50 * eps
    )


def test_convergence_order_is_the_solvers():
    """Projected fixed steps: the fitted order of global error is that of the solver (Tsit5: 5, Heun: 2)."""
    x, rho = tokens()
    field = mf.USA(mf.RoPE(mf.ExpDot(1.3), jnp.array([0.9]))).bind(rho, 4, x.dtype, "dense")

    @eqx.filter_jit
    def end(steps, solver):
        h = 1.0 / steps
        term = diffrax.ODETerm(right_hand_side)
        projected = OnSphere(solver, h, h)

        def body(i, y):
            t = i * h
            state = projected.init(term, t, t + h, y, field)
            return projected.step(term, t, t + h, y, field, state, made_jump=False)[0]

        return jax.lax.fori_loop(0, steps, body, x)

    for solver, order, counts in ((diffrax.Heun(), 2, (16, 32, 64)), (diffrax.Tsit5(), 5, (10, 20, 40))):
        exact = end(jnp.asarray(400), diffrax.Tsit5())
        errors = [float(jnp.abs(end(jnp.asarray(k), solver) - exact).max()) for k in counts]
        fitted = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
        assert order - 0.35 < fitted < order + 0.5, (solver, errors)


def test_stops_continues_and_reports():
    x, rho = tokens(12, 3)
    rho = mf.Marginal(jnp.zeros(12))
    usa = mf.USA(mf.ExpDot(1.0))
    ts = jnp.array([0.0, 1.0, 2.0, 40.0])
    whole = mf.flow(usa, x, rho, ts, rtol=1e-8)
    assert whole.ok and whole.status == mf.FlowStatus.FINISHED and float(whole.t) == 40
    collapsed = mf.flow(usa, x, rho, ts, stop="collapse", stop_tolerance=1e-4)
    assert collapsed.status == mf.FlowStatus.STOPPED and collapsed.ok and 2 < float(collapsed.t) < 20
    assert bool(jnp.isnan(collapsed.x[-1]).all()) and 1 - float(jnp.linalg.norm(collapsed.final.mean(0))) < 1e-4
    assert "stopped where asked" in collapsed.explain()
    half = mf.flow(usa, x, rho, jnp.array([0.0, 0.3, 0.6, 1.0]), rtol=1e-8)
    rest = mf.flow(usa, half, rho, jnp.array([1.0, 1.5, 1.8, 2.0]), rtol=1e-8)
    np.testing.assert_allclose(rest.x[-1], whole.x[2], atol=1e-6)
    with pytest.raises(ValueError, match="begin ts at 1"):
        mf.flow(usa, half, rho, jnp.array([0.5, 2.0]))


def test_budget_is_named_and_rows_not_reached_are_nan():
    x, rho = tokens(12, 3)
    few = mf.flow(mf.USA(mf.ExpDot(3.0)), x, rho, jnp.array([0.0, 0.05, 50.0]), max_steps=8, throw=False)
    assert not few.ok and few.status == mf.FlowStatus.MAX_STEPS and int(few.stats["steps"]) == 8
    assert np.isfinite(few.x[1]).all() and bool(jnp.isnan(few.x[2]).all()) and bool(jnp.isnan(few.order[2]))
    assert np.isfinite(few.final).all() and float(few.t) < 50
    with pytest.raises(mf.FlowError, match=r"reached t = .* of 50 with .* accepted.*max_steps"):
        mf.flow(mf.USA(mf.ExpDot(3.0)), x, rho, jnp.array([0.0, 0.05, 50.0]), max_steps=8)


def test_points_of_a_batch_are_alone_and_compile_once():
    """One overflowing point of a vmapped sweep fails visibly; the others equal their solo runs; one trace for all."""
    x, rho = tokens(12, 3)
    traces = []

    @jax.jit
    def end(beta):
        traces.append(1)
        traj = mf.flow(mf.USA(mf.ExpDot(beta)), x, rho, jnp.array([0.0, 1.0]), throw=False)
        return traj.x[-1], traj.status, traj.steps["steps"]

    batch = jax.jit(jax.vmap(end))
    xs, status, steps = batch(jnp.array([0.5, 900.0, 2.0]))
    assert status.tolist() == [0, int(mf.FlowStatus.NOT_FINITE), 0]
    assert bool(jnp.isnan(xs[1]).all())
    others = batch(jnp.array([0.5, 1.2, 2.0]))
    np.testing.assert_allclose(xs[jnp.array([0, 2])], others[0][jnp.array([0, 2])], atol=1e-13)
    alone = end(jnp.asarray(2.0))
    np.testing.assert_allclose(xs[2], alone[0], atol=1e-13)
    assert steps[2] == alone[2]
    assert len(traces) == 2  # once under vmap, once alone


def test_compiled_failure_raises():
    x, rho = tokens(12, 3)
    go = eqx.filter_jit(lambda beta: mf.flow(mf.USA(mf.ExpDot(beta)), x, rho, jnp.array([0.0, 1.0])).order[-1])
    with pytest.raises(Exception, match="shift"):
        jax.block_until_ready(go(jnp.asarray(900.0)))


def test_saves_only_what_is_asked_and_labels_it():
    x, rho = tokens()
    traj = run(1.3, x, rho, save=("order",))
    assert traj.x is None and traj.energy is None and traj.order.shape == TS.shape
    ds = run(1.3, x, rho, rtol=1e-5).to_xarray()
    assert ds["x"].dims == ("time", "token", "coordinate") and ds.attrs["status"] == "FINISHED"
    np.testing.assert_allclose(ds["label"], rho.labels)


def test_permuted_tokens_give_the_permuted_flow():
    """theory.md 1.10, whatever the order of tokens."""
    x, rho = tokens()
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    a = run(1.3, x, rho, rtol=1e-5)
    b = run(1.3, x[order], mf.Marginal(rho.labels[order], rho.weights[order]), rtol=1e-5)
    np.testing.assert_allclose(b.x, a.x[:, order], atol=1e-11)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"rtol": 1e-20}, "rtol=1e-20"),
        ({"ts": np.array([0.0, 1.0, 0.5])}, "strictly increasing"),
        ({"save": ("everything",)}, "save"),
        ({"stop": "someday"}, "someday"),
        ({"adjoint": "sideways"}, "sideways"),
        ({"max_steps": 0}, "max_steps"),
        ({"solver": diffrax.Euler()}, "error estimate"),
        ({"x0": 2 * np.eye(3)}, "normalize"),
        ({"x0": np.array([[1.0, 0, 0], [0, 0, 0], [0, 1, 0]])}, "zero rows 1"),
        ({"kernel": mf.ExpDot(800.0)}, "shift=1"),
    ],
)
def test_refusals(options, message, as_user):
    x0 = options.pop("x0", np.eye(3))
    kernel = options.pop("kernel", mf.ExpDot(1.0))
    ts = options.pop("ts", np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match=message):
        mf.flow(mf.USA(kernel), x0, mf.Marginal(np.zeros(3)), ts, **options)


def test_float64_tokens_without_x64_are_refused(as_user):
    with jax.enable_x64(False):
        with pytest.raises(ValueError, match="jax_enable_x64"):
            mf.flow(mf.USA(mf.Dot()), np.eye(3), mf.Marginal(np.zeros(3)), np.array([0.0, 1.0]))
        with pytest.raises(ValueError, match="rtol=1e-10 is below what float32"):
            mf.flow(mf.USA(mf.Dot()), jnp.eye(3), mf.Marginal(np.zeros(3)), np.array([0.0, 1.0]), rtol=1e-10)
