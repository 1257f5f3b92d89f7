"""Test session: float64 by default, shapes checked by beartype, warnings are errors, compiled programs cached on disk."""

import atexit
import os
import pathlib
import runpy
import shutil
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")

# Compiling is most of the time: workers, and processes that tests start, share one cache. A kept one makes reruns while developing faster.
if "MEANFIELD_TEST_CACHE" not in os.environ:
    os.environ["MEANFIELD_TEST_CACHE"] = tempfile.mkdtemp(prefix="meanfield-tests-")
    atexit.register(shutil.rmtree, os.environ["MEANFIELD_TEST_CACHE"], ignore_errors=True)
compiling = runpy.run_path(str(pathlib.Path(__file__).parents[1] / "meanfield" / "_compiling.py"))
os.environ.update(compiling["quick_to_compile"](os.environ["MEANFIELD_TEST_CACHE"]))

import jax  # noqa: E402 (reads the environment)
import pytest  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")

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


# Measured at 10 CPU-seconds and more without a compile cache (they compile many programs): run by `make test-all`.
HEAVY = {
    "tests/observables/test_transport.py::test_sinkhorn_divergence",
    "tests/interaction/test_expansion.py::test_gradients_and_mixed_second_derivatives",
    "tests/interaction/test_expansion.py::test_single_precision",
    "tests/experiments/test_dynamics_experiments.py::test_smoke[dynamics_prefix_gauges]",
    "tests/experiments/test_dynamics_experiments.py::test_smoke[dynamics_rope]",
    "tests/experiments/test_dynamics_experiments.py::test_smoke[dynamics_causal]",
    "tests/experiments/test_dynamics_experiments.py::test_smoke[dynamics_rotate_values]",
    "tests/experiments/test_dynamics_experiments.py::test_smoke[dynamics_distance_bias]",
    "tests/experiments/test_dynamics_experiments.py::test_smoke[dynamics_generalised_rope]",
    "tests/experiments/test_dynamics_experiments.py::test_smoke[dynamics_cosine]",
    "tests/pretrained/test_model.py::test_initialise_makes_a_trainable_model",
    "tests/pretrained/test_compare.py::test_measure_command",
    "tests/propagation/test_engines.py::test_engines_agree_in_value_and_gradient",
    "tests/propagation/test_transforms.py::test_gradients_are_those_of_finite_differences",
    "tests/propagation/test_transforms.py::test_second_derivatives",
    "tests/law/test_law.py::test_velocity_is_that_of_many_tokens",
    "tests/law/test_law.py::test_mass_is_conserved_and_energy_grows",
    "tests/dynamics/test_velocity.py::test_tiles_that_do_not_fill_up[float32-sum]",
    "tests/dynamics/test_velocity.py::test_tiles_that_do_not_fill_up[float64-sum]",
    "tests/design/test_learnables.py::test_gauges_are_special_orthogonal_with_finite_gradients",
    "tests/design/test_losses.py::test_losses_are_distances_with_finite_gradients",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid in HEAVY or item.nodeid.split("[")[0] in HEAVY:
            item.add_marker(pytest.mark.slow)
