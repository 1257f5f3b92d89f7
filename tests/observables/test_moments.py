"""Order parameter, effective dimension, energy rate and collapse time against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield import observables as ob


def test_order_parameter_of_weighted_poles(precision):
    x = jnp.asarray([[0.0, 1.0], [0.0, -1.0]], precision)
    weights = jnp.asarray([0.8, 0.2], precision)
    assert ob.order_parameter(x, weights).dtype == precision
    np.testing.assert_allclose(ob.order_parameter(x, weights), 0.6, rtol=1e-6)
    np.testing.assert_allclose(ob.order_parameter(jnp.stack([x, x[:1].repeat(2, 0)])), [0.0, 1.0], atol=1e-7)


def test_effective_dimension(precision):
    line = jnp.asarray([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 1.0, 0.0]], precision)
    frame = jnp.concatenate([jnp.eye(4, dtype=precision), -jnp.eye(4, dtype=precision)])
    np.testing.assert_allclose(ob.effective_dimension(line), 1.0, rtol=1e-5)
    np.testing.assert_allclose(ob.effective_dimension(frame), 4.0, rtol=1e-5)
    point = jnp.broadcast_to(line[:1], (5, 3))
    assert ob.effective_dimension(point) == 0
    tiny = 1e-20 if precision == jnp.float32 else 1e-200
    assert 1.9 < ob.effective_dimension(tiny * frame[:, :2]) <= 2.0 + 1e-5


@pytest.mark.parametrize("observable", [ob.order_parameter, ob.effective_dimension])
def test_gradients_are_finite_at_degenerate_clouds(observable):
    coincident = jnp.broadcast_to(jnp.array([0.6, 0.8]), (3, 2))
    balanced = jnp.array([[1.0, 0.0], [-1.0, 0.0]])
    for x in (coincident, balanced):
        assert bool(jnp.isfinite(jax.grad(observable)(x)).all())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_nan_token_and_bad_weights_are_errors(bad):
    x = np.array([[1.0, 0.0], [0.0, 1.0], [bad, 0.0]])
    for observable in (ob.order_parameter, ob.effective_dimension, ob.count_clusters, ob.angle_statistics):
        with pytest.raises(ValueError, match="NaN or infinite"):
            observable(x)
    with pytest.raises(ValueError, match="non-negative"):
        ob.order_parameter(x[:2], np.array([1.5, -0.5]))
    with pytest.raises(ValueError, match="sum to 2"):
        ob.order_parameter(x[:2], np.array([1.5, 0.5]))


def test_energy_rate_is_the_closed_form():
    """theory.md 1: Σ w‖ẋ‖² for USA, Σ w Z‖ẋ‖² for SA, and the slope of the energy for masks."""
    x = mf.sphere.sample(jax.random.key(1), (7, 3))
    w = jax.nn.softmax(jax.random.normal(jax.random.key(2), (7,)))
    rho = mf.Marginal(jnp.linspace(0.0, 2.0, 7), w)
    kernel = mf.ExpDot(1.7)
    v = mf.velocity(mf.USA(kernel), x, rho)
    np.testing.assert_allclose(ob.energy_rate(mf.USA(kernel), x, rho), jnp.dot(w, jnp.sum(v**2, 1)), rtol=1e-12)
    v = mf.velocity(mf.SA(kernel), x, rho)
    z = jnp.exp(1.7 * x @ x.T) @ w
    np.testing.assert_allclose(ob.energy_rate(mf.SA(kernel), x, rho), jnp.dot(w * z, jnp.sum(v**2, 1)), rtol=1e-12)
    masked = mf.USA(kernel, causal=True)
    v, h = mf.velocity(masked, x, rho), 1e-6
    slope = (mf.energy(kernel, x + h * v, rho) - mf.energy(kernel, x - h * v, rho)) / (2 * h)
    np.testing.assert_allclose(ob.energy_rate(masked, x, rho), slope, rtol=1e-7)


def trajectory(order, ts, status=mf.FlowStatus.FINISHED, t=None, final=None):
    ts, order = jnp.asarray(ts), jnp.asarray(order)
    final = jnp.array([[1.0, 0.0], [0.0, 1.0]]) if final is None else final
    t = ts[-1] if t is None else jnp.asarray(t)
    n = final.shape[0]
    return mf.Trajectory(
        ts, None, None, order, t, final, jnp.asarray(int(status)), {}, jnp.zeros(n), jnp.full(n, 1 / n), "dense"
    )


def test_collapse_time():
    ts = jnp.linspace(0.0, 10.0, 21)
    rate = 1.3
    found = ob.collapse_time(trajectory(1 - 0.5 * jnp.exp(-rate * ts), ts), tolerance=1e-3)
    np.testing.assert_allclose(found, np.log(500) / rate, rtol=1e-10)
    slope = jax.grad(lambda r: ob.collapse_time(trajectory(1 - 0.5 * jnp.exp(-r * ts), ts)))(rate)
    np.testing.assert_allclose(slope, -np.log(500) / rate**2, rtol=1e-9)
    assert ob.collapse_time(trajectory(jnp.full(21, 0.4), ts)) == jnp.inf
    assert ob.collapse_time(trajectory(jnp.ones(21), ts)) == 0
    failed = jnp.where(ts < 3, 0.4, jnp.nan)
    assert jnp.isnan(ob.collapse_time(trajectory(failed, ts, mf.FlowStatus.MAX_STEPS)))
    point = jnp.array([[1.0, 0.0], [1.0, 0.0]])
    assert ob.collapse_time(trajectory(failed, ts, mf.FlowStatus.STOPPED, 3.2, point)) == 3.2
