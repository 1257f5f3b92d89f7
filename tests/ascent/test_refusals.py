"""Bad input is refused by name, with the remedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

from .cases import RHO, cosine, random_states

KEY = jax.random.key(0)
SKEW = mf.Pair(lambda x, xi, y, zeta: x[0] * y[1])
SHEAR = mf.Gauge(mf.ExpDot(1.0), lambda xi: jnp.array([[1.0, 0.5], [0.0, 1.0]]))


@pytest.mark.parametrize(
    "kernel, arguments, message",
    [
        (SKEW, {}, "Pair is asymmetric"),
        (mf.Toeplitz(jnp.sin, mf.Dot()), {}, "Toeplitz is asymmetric"),
        (SHEAR, {}, r"not orthogonal \(max \|Q Qᵀ − I\| = 0.5"),
        (cosine(), {"restarts": 0}, "restarts=0"),
        (cosine(), {"budget": -5}, "budget=-5"),
        (cosine(), {"x0": random_states(1, 7, 2)}, "x0 has shape"),
        (cosine(), {"x0": 2 * random_states(1, 24, 2)}, "not unit"),
        (cosine(), {"certify": "very"}, "certify='very'"),
        (mf.ExpDot(2000.0), {}, "shift=1"),
    ],
)
def test_refused(kernel, arguments, message):
    with pytest.raises(ValueError, match=message):
        mf.ascend(kernel, RHO, 2, KEY, **({"restarts": 2} | arguments))


def test_dimension_and_tracing():
    with pytest.raises(ValueError, match="dim=1"):
        mf.ascend(cosine(), RHO, 1, KEY)
    with pytest.raises(ValueError, match="certify=False when tracing"):
        jax.jit(lambda b: mf.ascend(cosine(b), RHO, 2, KEY).energy)(1.0)
    with pytest.raises(ValueError, match="float64"):
        with jax.enable_x64(False):
            mf.ascend(cosine(), RHO, 2, KEY, x0=np.zeros((1, 24, 2)))
