"""The front door: best states, certificates, saddles, symmetry, precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

from .cases import DIM, RESTARTS, RHO, N, cosine, solved


@pytest.mark.parametrize("beta", [2.0, 8.0])
def test_cosine_exponential(beta):
    best = solved(beta)
    np.testing.assert_allclose(best.energy, mf.energy(cosine(beta), best.x, RHO), rtol=1e-13)
    assert best.status == "converged" and best.gradient_norm < 1e-9 * best.energy
    assert best.curvature < 1e-9 * best.energy
    assert best.energy <= best.upper_bound <= 1.15 * best.energy and best.gap == best.upper_bound - best.energy
    assert best.energies.shape == (RESTARTS,) and np.all(np.diff(best.energies) <= 0)
    np.testing.assert_allclose(best.energies[0], best.energy, rtol=1e-13)
    planar = np.linalg.svd(best.x)[1][-1]
    assert planar < 1e-5  # the best states known lie in a plane


def test_another_key_finds_the_same_energy():
    np.testing.assert_allclose(solved(2.0, seed=9).energy, solved(2.0).energy, rtol=1e-8)


def test_a_maximiser_takes_no_iteration_and_stays():
    best = solved(2.0)
    x0 = jnp.tile(best.x, (RESTARTS, 1, 1))
    again = mf.ascend(cosine(2.0), RHO, DIM, jax.random.key(0), x0=x0, certify=False)
    assert int(again.iterations) == 0 and again.upper_bound == np.inf and "certify=False" in again.bound.reason
    np.testing.assert_array_equal(again.x, best.x)


def test_a_saddle_is_named_and_left():
    """The great circle above its thresholds: its growth rates are the eigenvalues of the Hessian."""
    beta, angle = 4.0, RHO.labels
    circle = jnp.stack([jnp.cos(angle), jnp.sin(angle), 0 * angle], axis=1)
    x0 = jnp.tile(circle, (RESTARTS, 1, 1))
    saddle = mf.ascend(cosine(beta), RHO, DIM, jax.random.key(4), x0=x0, certify=False)
    assert saddle.status == "saddle" and int(saddle.iterations) == 0
    rates = [f(m, beta) for f in (mf.theory.in_plane_rate, mf.theory.out_of_plane_rate) for m in range(N // 2)]
    np.testing.assert_allclose(saddle.curvature, max(rates), rtol=1e-6)
    x0 = jnp.tile(saddle.escape(), (RESTARTS // 2, 1, 1))
    left = mf.ascend(cosine(beta), RHO, DIM, jax.random.key(4), x0=x0, certify=False)
    assert left.energy > 1.05 * saddle.energy


@pytest.mark.slow
def test_antipodes_are_a_saddle_of_known_curvature():
    x0 = jnp.array([[[1.0, 0, 0], [-1.0, 0, 0]]])
    rho = mf.Marginal(jnp.zeros(2))
    saddle = mf.ascend(mf.ExpDot(1.0), rho, 3, jax.random.key(4), x0=x0)
    assert saddle.status == "saddle" and int(saddle.iterations) == 0
    np.testing.assert_allclose([saddle.energy, saddle.curvature], [(np.e + 1 / np.e) / 4, 1 / np.e], rtol=1e-12)
    left = mf.ascend(mf.ExpDot(1.0), rho, 3, jax.random.key(4), x0=saddle.escape()[:1])
    assert left.status == "converged"
    np.testing.assert_allclose([left.energy, left.upper_bound], np.e / 2, rtol=1e-10)


@pytest.mark.slow
def test_a_search_that_ends_in_a_saddle_goes_on(monkeypatch):
    """With the collapsed start alone (exactly), cos τ ends in the Dirac, where E = 0 and the gradient vanishes."""
    from meanfield.ascent import search

    def dirac(landscape, key, restarts, dim, dtype):
        return jnp.tile(jnp.eye(dim, dtype=dtype)[0], (restarts, landscape.rho.n, 1))

    monkeypatch.setattr(search, "start_mixture", dirac)
    rho = mf.Marginal.circle(10)  # a shape of its own: not compiled before
    best = mf.ascend(cosine(1.0), rho, 2, jax.random.key(0), restarts=2, certify=False)
    assert (
        best.status == "converged" and best.energy > 0.25
    )  # a local maximum without winding; the great circle has .2826


@pytest.mark.slow
def test_prefix_token_attracts_everything():
    prefix = mf.Prefix(jnp.array([[0.0, 0.6, 0.8]]), jnp.array([0.5]))
    best = mf.ascend(mf.ExpDot(1.0), mf.Marginal(jnp.zeros(6)), 3, jax.random.key(0), restarts=4, prefix=prefix)
    np.testing.assert_allclose(best.x, jnp.broadcast_to(prefix.tokens, (6, 3)), atol=1e-6)
    np.testing.assert_allclose([best.energy, best.upper_bound], np.e, rtol=1e-8)


@pytest.fixture
def reference():
    """The energy in float64, computed before `precision` turns x64 off."""
    return float(solved(2.0).energy)


@pytest.mark.slow
def test_single_precision_agrees(reference, precision):
    rho = mf.Marginal.circle(N)
    best = mf.ascend(cosine(2.0), rho, DIM, jax.random.key(0), restarts=RESTARTS)
    assert best.x.dtype == precision and best.status == "converged"
    np.testing.assert_allclose(best.energy, reference, rtol=1e-13 if precision == np.float64 else 2e-6)
    assert float(best.energy) <= best.upper_bound <= 1.15 * float(best.energy)


@pytest.mark.slow
def test_structure_is_recovered_through_a_gauge():
    """cos τ seen through a gauge: y_i = Q_i x_i is a maximiser of the plain problem."""
    from .cases import KERNELS

    kernel, rho = KERNELS["gauge"]
    best = mf.ascend(kernel, rho, DIM, jax.random.key(0), restarts=RESTARTS)
    frames = jax.vmap(kernel.inner.map)(rho.labels)
    y = jnp.einsum("nij,nj->ni", frames, best.x)
    plain = mf.Toeplitz(mf.Cosine(), mf.ExpDot(1.5))
    np.testing.assert_allclose(best.energy, mf.energy(plain, y, rho), rtol=1e-12)
    assert best.energy <= best.upper_bound <= 1.15 * best.energy
