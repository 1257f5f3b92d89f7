"""Experiments run as users run them: with JAX's own promotion of dtypes."""

import jax
import pytest


@pytest.fixture(autouse=True)
def _promotion():
    with jax.numpy_dtype_promotion("standard"):
        yield
