"""Test session: float64 by default, shapes checked by beartype, warnings are errors, compiled programs cached on disk."""

import os
import pathlib

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")

import jax
import pytest
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
if cache := os.environ.get("MEANFIELD_TEST_CACHE"):  # opt-in: a warm cache makes reruns while developing much faster
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)

install_import_hook("meanfield", "beartype.beartype").__enter__()

SHARED = pathlib.Path(__file__).resolve().parent.parent.parent / "shared"


@pytest.fixture(params=["float64", "float32"])
def precision(request):
    """Runs a test twice: with x64 enabled (float64) and with x64 disabled (float32). Yields the dtype."""
    with jax.enable_x64(request.param == "float64"):
        yield jax.numpy.dtype(request.param)


@pytest.fixture(scope="session")
def shared_data():
    """The folder ../shared/data of reference data; tests that need it are skipped where it is absent."""
    if not (SHARED / "data").is_dir():
        pytest.skip("reference data ../shared/data is not here")
    return SHARED / "data"


@pytest.fixture
def as_user():
    """Turns shape checking off, so that the library's own messages for wrong shapes are seen, as a user sees them."""
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
