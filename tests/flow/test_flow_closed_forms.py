"""The exact checks of theory.md section 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import iv

import meanfield as mf

TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def equiangular(n, r):
    """n unit vectors with all inner products r."""
    gram = (1 - r) * np.eye(n) + r * np.ones((n, n))
    return np.linalg.cholesky(gram)


@pytest.mark.parametrize("make", [mf.USA, mf.SA])
def test_equiangular_start(make):
    """1.2: ṙ = 2 e^{βr}(1−r)(1+(n−1)r)/(e^β+(n−1)e^{βr}) for SA, (2/n)e^{βr}(1−r)(1+(n−1)r) for USA."""
    n, beta, r0, t1 = 6, 1.7, 0.15, 1.1
    speed = {
        mf.SA: lambda r: (
            2 * np.exp(beta * r) * (1 - r) * (1 + (n - 1) * r) / (np.exp(beta) + (n - 1) * np.exp(beta * r))
        ),
        mf.USA: lambda r: 2 / n * np.exp(beta * r) * (1 - r) * (1 + (n - 1) * r),
    }[make]
    traj = mf.flow(make(mf.ExpDot(beta)), equiangular(n, r0), mf.Marginal(np.zeros(n)), np.array([0.0, t1]), **TIGHT)
    r1 = float(traj.x[-1, 0] @ traj.x[-1, 4])
    np.testing.assert_allclose(quad(lambda r: 1 / speed(r), r0, r1, epsabs=1e-13)[0], t1, rtol=1e-8)


def test_cross_ratio_is_conserved():
    """1.3: β = 0, any d: ‖x1−x2‖‖x3−x4‖/(‖x1−x3‖‖x2−x4‖) is conserved."""
    x0 = mf.sphere.sample(jax.random.key(1), (6, 4))
    x = mf.flow(mf.USA(mf.Dot()), x0, mf.Marginal(np.zeros(6)), np.array([0.0, 0.6, 1.5]), **TIGHT).x
    side = lambda i, j: jnp.linalg.norm(x[:, i] - x[:, j], axis=-1)
    ratio = side(0, 1) * side(2, 3) / (side(0, 2) * side(1, 3))
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-8)


@pytest.mark.parametrize("beta, time", [(2.0, 5.5), (4.0, 40.0)])
def test_two_clusters_meet_in_the_time_of_the_quadrature(beta, time):
    """1.4: ∫ (1+e^{β(1−cosφ)})/(2 sinφ) dφ from 0.5 to 2."""
    exact = quad(lambda p: (1 + np.exp(beta * (1 - np.cos(p)))) / (2 * np.sin(p)), 0.5, 2.0)[0]
    assert abs(exact - time) < 0.03 * time
    x0 = np.array([[1.0, 0.0], [np.cos(2), np.sin(2)]])
    x = mf.flow(mf.SA(mf.ExpDot(beta)), x0, mf.Marginal(np.zeros(2)), np.array([0.0, exact]), **TIGHT).x
    np.testing.assert_allclose(mf.sphere.distance(x[-1, 0], x[-1, 1]), 0.5, rtol=1e-6)


def test_equispaced_clusters_grow_at_the_stated_rates():
    """1.5: k equispaced equal clusters, USA: eigenvalues of the linearised flow, with the sign of the Jacobian."""
    k, beta = 5, 2.3
    angles = 2 * np.pi * np.arange(k) / k
    rho = mf.Marginal(np.zeros(k))

    def turning(theta):
        x = jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=1)
        v = mf.velocity(mf.USA(mf.ExpDot(beta)), x, rho)
        return x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]

    found = np.sort(np.linalg.eigvals(jax.jacfwd(turning)(jnp.asarray(angles))).real)
    q = lambda t: (beta * np.sin(t) ** 2 - np.cos(t)) * np.exp(beta * np.cos(t))
    p = np.arange(k)[:, None]
    rates = (q(angles) * (1 - np.cos(p * angles))).mean(axis=1)
    np.testing.assert_allclose(found, np.sort(-rates if abs(found.sum() + rates.sum()) < 1e-9 else rates), atol=1e-12)


@pytest.mark.parametrize("softmax", [False, True])
def test_uniform_law_loses_stability_at_the_funk_hecke_rates(softmax):
    """1.6: on the circle, degree l of a perturbed uniform law grows at l² λ_l/β, divided by λ_0 for SA."""
    n, beta, degree = 64, 1.5, 3
    angles = 2 * np.pi * np.arange(n) / n
    rho = mf.Marginal(np.zeros(n))
    make = mf.SA if softmax else mf.USA

    def turning(theta):
        x = jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=1)
        v = mf.velocity(make(mf.ExpDot(beta)), x, rho)
        return x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]

    mode = jnp.sin(degree * angles)
    change = jax.jvp(turning, (jnp.asarray(angles),), (mode,))[1]
    rate = degree**2 * iv(degree, beta) / beta / (iv(0, beta) if softmax else 1)
    np.testing.assert_allclose(change, rate * mode, atol=1e-12)


def test_modes_of_the_initial_density():
    """1.8: √(Σ l⁴I_l²/Σ l²I_l²) ≈ √(3β/2) for large β."""
    beta, l = 400.0, np.arange(1, 200)
    from scipy.special import ive

    modes = np.sqrt((l**4 * ive(l, beta) ** 2).sum() / (l**2 * ive(l, beta) ** 2).sum())
    np.testing.assert_allclose(modes, np.sqrt(1.5 * beta), rtol=5e-3)
