"""devices=: the same numbers, replicated, on 1, 2 and 4 forced host devices; lists and meshes checked."""

import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest

import meanfield as mf

CHILD = pathlib.Path(__file__).with_name("_devices_child.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", ["expansion", "blocked", "causal expansion", "ordered expansion", "pairs", "flow", "ascend"]
)
def test_same_numbers_on_several_devices(case):
    # the flags of conftest.py, which halve compilation, are kept
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    env = dict(os.environ, XLA_FLAGS=flags, JAX_PLATFORMS="cpu")
    out = subprocess.run([sys.executable, str(CHILD), case], env=env, capture_output=True, text=True, timeout=600)
    assert out.stdout.strip() == "same", out.stderr[-2000:]


def test_devices_are_checked():
    x, rho = mf.sphere.sample(jax.random.key(0), (10, 3)), mf.Marginal.circle(10)
    device = jax.devices()[0]
    go = mf.USA(mf.ExpDot(1.0))
    with pytest.raises(ValueError, match="each once"):
        mf.velocity(go, x, rho, devices=[device, device])
    with pytest.raises(ValueError, match="one automatic axis"):
        mf.velocity(go, x, rho, devices=jax.sharding.Mesh(np.array([[device]]), ("a", "b")))
    one = mf.velocity(go, x, rho, devices=[device])
    np.testing.assert_allclose(one, mf.velocity(go, x, rho), atol=1e-15)
    assert one.sharding.is_fully_replicated
