"""Run by test_devices on four forced host devices: the same numbers on 1, 2 and 4 of them, n not divisible."""

import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import meanfield as mf  # noqa: E402

x = mf.sphere.sample(jax.random.key(0), (1001, 3))
rho = mf.Marginal(jnp.round(jax.random.uniform(jax.random.key(1), (1001,), maxval=2.0), 1))
rotated = mf.RoPE(mf.ExpDot(2.0), jnp.ones(1))
decaying = mf.Toeplitz(mf.ExponentialDecay(1.0), mf.ExpDot(2.0))
pair = mf.Pair(lambda x, xi, y, zeta: jnp.cos(xi - zeta) * jnp.exp(x @ y))
cases = {
    "blocked": (mf.USA(rotated), "blocked"),
    "dense": (mf.SA(decaying, causal=True), "dense"),
    "expansion": (mf.USA(rotated, prefix=mf.Prefix(np.eye(3), np.ones(3) / 9)), "expansion"),
    "ordered expansion": (mf.SA(decaying), "expansion"),
    "causal expansion": (mf.USA(decaying, causal=True), "expansion"),
    "pairs": (mf.USA(pair), "blocked"),
}


def check(name, dynamics, method):
    """Values, their placement, and a gradient."""

    def value(x, m):
        return mf.velocity(dynamics, x, rho, method=method, devices=m and jax.devices()[:m])

    def loss(x, m):
        return jnp.sum(jnp.cos(3 * value(x, m)))

    expected = value(x, None)
    for m in (1, 2, 4):
        found = value(x, m)
        assert found.sharding.is_fully_replicated and len(found.sharding.device_set) == m, found.sharding
        np.testing.assert_allclose(found, expected, atol=1e-13 * float(jnp.abs(expected).max()), err_msg=f"{name}, {m}")
    np.testing.assert_allclose(jax.grad(loss)(x, 4), jax.grad(loss)(x, None), atol=1e-11, err_msg=name)


for name, (dynamics, method) in cases.items():
    if name in sys.argv[1:]:
        check(name, dynamics, method)
if "flow" in sys.argv[1:]:
    ts = jnp.array([0.0, 0.2])
    alone = mf.flow(mf.USA(rotated), x, rho, ts, method="blocked")
    for m in (2, 4):
        devices = jax.sharding.Mesh(np.array(jax.devices()[:m]), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        traj = mf.flow(mf.USA(rotated), x, rho, ts, method="blocked", devices=devices)
        np.testing.assert_allclose(traj.x, alone.x, atol=1e-12)
        np.testing.assert_allclose(traj.energy, alone.energy, rtol=1e-12)
        e = mf.energy(rotated, x, rho, devices=devices, method="expansion")
        np.testing.assert_allclose(e, alone.energy[0], rtol=1e-12)
if "ascend" in sys.argv[1:]:
    few = mf.Marginal.circle(13)
    kernel = mf.Toeplitz(mf.Cosine(1.0, offset=0.4), mf.ExpDot(2.0))
    alone, many = (
        mf.ascend(kernel, few, 3, jax.random.key(2), restarts=4, certify=False, devices=devices)
        for devices in (None, jax.devices()[:4])
    )
    assert many.x.sharding.is_fully_replicated and len(many.x.sharding.device_set) == 4, many.x.sharding
    np.testing.assert_allclose(many.energy, alone.energy, rtol=1e-10)
print("same")
