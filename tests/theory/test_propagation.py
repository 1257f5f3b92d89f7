"""Exact checks of theory.md section 3: the library's propagation against closed forms."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import meanfield as mf

pp, theory = mf.propagation, mf.theory
RNG = np.random.default_rng(8)


def test_rows_triangles_and_diagonal():
    """Rows of every R and P sum to 1, strict upper triangles are exactly 0, P_ii = Π(1 − λ_t(1 − A_ii))."""
    mixing = RNG.uniform(0, 1, 5)
    arch = pp.Architecture(mixing, [0.05, 0.9], diagonal=RNG.normal(size=(5, 2)))
    product = np.asarray(pp.propagate(arch, 24))
    np.testing.assert_allclose(product.sum(1), 1, atol=1e-13)
    assert (np.triu(product, 1) == 0).all()
    layers = np.stack([pp.attention(arch, t, 24) for t in range(5)])
    residual = (1 - mixing[:, None, None]) * np.eye(24) + mixing[:, None, None] * layers
    np.testing.assert_allclose(residual.sum(2), 1, atol=1e-14)
    assert (np.triu(residual, 1) == 0).all()
    own = np.diagonal(layers, axis1=1, axis2=2)
    np.testing.assert_allclose(np.diag(product), np.prod(1 - mixing[:, None] * (1 - own), axis=0), rtol=1e-12)


def test_equal_layers_only_know_the_multiset_of_mixing():
    mixing = RNG.uniform(0, 1, 6)
    orders = (mixing, mixing[[3, 0, 5, 1, 4, 2]])
    one, other = (pp.profile(pp.Architecture(m, [0.1, 0.6], diagonal=0.4), 24) for m in orders)
    np.testing.assert_allclose(one, other, atol=1e-15)


def test_hausdorff_form_in_rational_arithmetic():
    """P_nk by matrix products of fractions, by the alternating sum in fractions, and by the library in floating point."""
    mixing, n = [Fraction(1, 3), Fraction(2, 5), Fraction(1, 7), Fraction(1)], 9
    row = [Fraction(0)] * (n - 1) + [Fraction(1)]
    for x in mixing:
        tail = [sum((row[i] / (i + 1) for i in range(j, n)), start=Fraction(0)) for j in range(n)]
        row = [(1 - x) * p + x * t for p, t in zip(row, tail, strict=True)]
    exact = theory.uniform_causal_exact(mixing, n)
    assert exact == row and sum(exact) == 1
    found = pp.profile(pp.Architecture(np.array([float(x) for x in mixing]), [0.0]), n)
    np.testing.assert_allclose(found, np.array([float(x) for x in exact]), atol=1e-15)


def test_factorial_moments():
    mixing, n, orders = RNG.uniform(0, 1, 12), 40, np.array([1, 2, 5])
    p = np.asarray(pp.profile(pp.Architecture(mixing, [0.0]), n))
    j = np.arange(1, n + 1.0)
    moments = [p @ np.prod([j - k for k in range(1, m + 1)], axis=0) for m in orders]
    np.testing.assert_allclose(theory.uniform_causal_moments(mixing, n, orders), moments, rtol=1e-11)
    with pytest.raises(ValueError, match="orders"):
        theory.uniform_causal_moments(mixing, n, np.array([-1]))


@pytest.mark.parametrize("decay", [0.0, 4.0])
def test_continuum_profile(decay):
    """n p_j at s = (j + ½)/n tends to the density with error O(1/n); the density integrates to 1 − Π(1 − λ)."""
    mixing = np.array([0.5, 0.3, 0.9, 0.2])
    errors = []
    for n in (500, 2000):
        s = (np.arange(n) + 0.5) / n
        p = np.asarray(pp.profile(pp.Architecture(mixing, [decay / n]), n)) * n
        density = np.asarray(theory.continuum_profile(mixing, s, decay))
        inside = (s > 0.1) & (s < 0.99)
        errors.append(np.abs(p[inside] / density[inside] - 1).max())
    assert errors[1] < errors[0] / 3 and errors[1] < 4e-3
    nodes, weights = np.polynomial.legendre.leggauss(200)
    s = ((nodes + 1) / 2) ** 4  # the density has a logarithmic end at 0
    integral = (weights / 2 * 4 * ((nodes + 1) / 2) ** 3) @ np.asarray(theory.continuum_profile(mixing, s, decay))
    np.testing.assert_allclose(integral, 1 - np.prod(1 - mixing), rtol=1e-6)


def test_attention_only_densities():
    """Attention only, T steps: (−log s)^{T−1}/(T−1)!."""
    s = np.array([0.1, 0.5, 1.0])
    np.testing.assert_allclose(theory.continuum_profile(np.ones(3), s), np.log(s) ** 2 / 2, atol=1e-15)
    weights = theory.attention_step_weights(np.array([0.2, 0.5]))
    np.testing.assert_allclose(weights, [0.4, 0.5, 0.1], atol=1e-15)


def test_attention_only_collapse():
    for slope, expected in ((0.0, (0.512, 0.956, 0.99994)), (0.1, (0.053, 0.512, 0.992))):
        mass = pp.first_token_mass_by_depth(pp.Architecture(np.ones(20), [slope]), 64)
        np.testing.assert_allclose(np.asarray(mass)[[4, 9, 19]], expected, atol=5e-4)
    uniform = pp.profile(pp.Architecture(np.ones(20), [0.0]), 64)
    assert 1 - float(uniform[0]) < theory.attention_only_tail(64, 20)
    np.testing.assert_allclose(np.asarray(uniform) @ np.arange(64), theory.attention_only_tail(64, 20), rtol=1e-11)


def test_dichotomy():
    own, n = 1 / 16, 16
    for depth in (1, 7, 200):
        arch = pp.Architecture(pp.power_mixing(depth, 0.5, 1), [0.0])
        closed = theory.diagonal_product(0.5, own, depth, 1)
        np.testing.assert_allclose(pp.diagonal_mass(arch, n)[-1], closed, rtol=1e-11)
    summable = pp.diagonal_mass(pp.Architecture(pp.power_mixing(4000, 0.5, 2), [0.0]), n)[-1]
    limit = float(theory.diagonal_product(0.5, own, None, 2))
    np.testing.assert_allclose(summable, limit * (1 + 0.5 * (1 - own) / 4000), rtol=1e-6)
    assert float(theory.diagonal_product(0.5, own, None, 1)) == 0.0
    with pytest.raises(ValueError, match="exponent = 3"):
        theory.diagonal_product(0.5, own, None, 3)


def test_dichotomy_at_depth_5000():
    """n = 64, uniform, λ_0 = ½, T = 5000: last diagonal .3658 | .0087 and mass on token 0 .0218 | .4281 for 1/t² | 1/t."""
    found = []
    for exponent in (2, 1):
        arch = pp.Architecture(pp.power_mixing(5000, 0.5, exponent), [0.0])
        found += [float(pp.diagonal_mass(arch, 64)[-1]), float(pp.profile(arch, 64)[0])]
    np.testing.assert_allclose(found, [0.3658, 0.0218, 0.0087, 0.4281], atol=5e-5)


def test_lags_are_negative_binomial():
    n, depth, slope = 400, 3, 0.4
    p = np.asarray(pp.profile(pp.Architecture(np.ones(depth), [slope]), n))
    lags = np.arange(60.0)
    np.testing.assert_allclose(p[::-1][:60], theory.lag_distribution(slope, depth, lags), atol=1e-13)


def test_one_slope_boundary():
    """c_1 dA − c_2 A² at s = 1 changes sign where Σλ = 2(1 − e^{−κ}) for small λ_t."""
    np.testing.assert_allclose(theory.recency_boundary(np.array([3.0])), 2 * (1 - np.exp(-3.0)), rtol=1e-12)
    mixed = theory.recency_boundary(np.array([0.0, 5.0]), np.array([0.25, 0.75]))
    density, slope = 0.25 + 0.75 * 5 / (1 - np.exp(-5)), 0.75 * 25 / (1 - np.exp(-5))
    np.testing.assert_allclose(mixed, 2 * slope / density**2, rtol=1e-12)
    found = pp.phase_map(np.array([1.7, 1.95]), np.array([3.0]), depth=100, length=256)
    assert (np.asarray(found.rise[:, 0]) > 0).tolist() == [True, False]  # 2(1 − e⁻³) = 1.90


def test_boundary_of_few_layers():
    """T equal λ: c_2/c_1 from the step weights, and the sign of the smooth part's slope on either side."""
    depth, decay = 6, 3.0
    boundary = float(theory.recency_boundary(np.array([decay]), depth=depth))
    weights = np.asarray(theory.attention_step_weights(np.full(depth, boundary / depth)))
    np.testing.assert_allclose(weights[2] / weights[1], 1 - np.exp(-decay), rtol=1e-12)
    found = pp.phase_map(boundary * np.array([0.97, 1.03]), np.array([decay]), depth=depth, length=256)
    assert (np.asarray(found.rise[:, 0]) > 0).tolist() == [True, False]


def test_uniform_profile_of_depth_twelve():
    p = np.asarray(pp.profile(pp.Architecture(np.full(12, 0.1), [0.0]), 16))
    assert int(p.argmin()) == 14
    np.testing.assert_allclose([p[0], p[14], p[15]], [0.1228, 0.0255, 0.3069], atol=5e-5)
    first = [pp.profile(pp.Architecture(np.full(12, mixing), [0.0]), 16)[0] for mixing in (0.5, 1.0)]
    np.testing.assert_allclose(first, [0.7957, 0.9965], atol=5e-5)


def test_base_cancels():
    one, other = (pp.Architecture(np.full(12, 0.3), [0.2], content=pp.Diagonal(0.7, base)) for base in (0.0, -3.0))
    np.testing.assert_allclose(pp.profile(one, 16), pp.profile(other, 16), atol=1e-16)
    np.testing.assert_allclose(pp.attention(one, 0, 16), pp.attention(other, 0, 16), atol=1e-15)


def test_alibi_kernels_are_monotone():
    """F_i(k) = E_k/(E_{i−1} + e^{d + m i}), E_k = Σ_{j≤k} e^{mj}, falls with i for every slope m and diagonal d, negative ones too."""
    for slope in (0.0, 0.02, 0.7, 5.0):
        for diagonal in (-8.0, 0.0, 0.5, 8.0):
            assert pp.is_monotone(pp.attention(pp.Architecture([0.3], [slope], diagonal=diagonal), 0, 16))
    waves = pp.Architecture([0.3], bias=lambda distance: 3 * jnp.cos(distance))
    assert not pp.is_monotone(pp.attention(waves, 0, 16))


def test_harmonic_response_is_a_rollout_with_gain():
    """Its continuum limit at rate 1/n; that limit as the Bessel form, and as e^Λ times the profile of many layers with Σλ = Λ."""
    total, decay = 1.3, 2.5
    errors = []
    for n in (100, 400):
        s = (np.arange(n) + 0.5) / n
        found = n * np.asarray(theory.harmonic_response(total, n, decay / n))
        inside = (s > 0.1) & (s < 0.99)
        errors.append(np.abs(found / np.asarray(theory.harmonic_density(total, s, decay)) - 1)[inside].max())
    assert errors[1] < errors[0] / 3 and errors[1] < 0.02
    s = np.linspace(0.05, 0.95, 7)
    bessel = np.sqrt(total / -np.log(s)) * scipy.special.iv(1, 2 * np.sqrt(-total * np.log(s)))
    np.testing.assert_allclose(theory.harmonic_density(total, s), bessel, rtol=1e-12)
    layers = theory.continuum_profile(np.full(4000, total / 4000), s, decay)
    np.testing.assert_allclose(theory.harmonic_density(total, s, decay), np.exp(total) * layers, rtol=1e-3)


@pytest.mark.parametrize("beta,mode", [(1.0, 1), (2.0, 3)])
def test_gain_of_a_harmonic_is_its_growth_rate(beta, mode):
    """The mean over φ of cos(pφ) d/dφ(e^{β cos φ} sin φ): what the velocity of a uniform token gains from a displaced one."""
    phi = 2 * np.pi * np.arange(64) / 64
    gain = np.mean(np.cos(mode * phi) * np.exp(beta * np.cos(phi)) * (np.cos(phi) - beta * np.sin(phi) ** 2))
    np.testing.assert_allclose(theory.growth_rates(beta, 2, [mode])[0], gain, rtol=1e-12)
