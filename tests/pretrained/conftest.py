"""Tiny loaded models."""

import jax
import numpy as np
import pytest
from pretrained.checkpoints import CONFIGS, write

import meanfield as mf


@pytest.fixture(scope="session", params=sorted(CONFIGS))
def family(request, tmp_path_factory):
    """A loaded tiny model of every family."""
    return mf.pretrained.load(write(tmp_path_factory.mktemp(request.param), CONFIGS[request.param], seed=3))


@pytest.fixture(scope="session")
def llama(tmp_path_factory):
    """One tiny model, for tests that need no other."""
    return mf.pretrained.load(write(tmp_path_factory.mktemp("llama"), CONFIGS["llama"], seed=5))


@pytest.fixture(scope="session")
def ids():
    """Two sequences of seven tokens."""
    return np.asarray(jax.random.randint(jax.random.key(1), (2, 7), 0, 24), np.int32)
