"""Measures, forces, depth and presets by hand-made examples and by published numbers."""

import numpy as np
import pytest
import scipy.stats

import meanfield as mf

pp = mf.propagation
RNG = np.random.default_rng(1)


def test_discarded_entries_and_row_sums():
    """Entries ≤ .1 dropped, λ = ½: rows, not columns, are divided by their sum."""
    a = np.array([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.6, 0.3, 0.1]])
    product = pp.rollout(pp.discard_small(a, 0.1)[None], np.array([0.5]), normalize=True)
    np.testing.assert_allclose(product[1], [0.4737, 0.5263, 0.0], atol=5e-5)
    np.testing.assert_allclose(product.sum(1), 1, atol=1e-15)


def test_fused_heads():
    heads = np.array([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    mean = pp.rollout(pp.fuse_heads(heads)[None], np.array([0.5]))
    np.testing.assert_allclose(mean[1], [0.25, 0.75], atol=1e-15)
    np.testing.assert_allclose(pp.fuse_heads(heads, "max")[1], [0.5, 0.5], atol=1e-15)
    np.testing.assert_array_equal(pp.fuse_heads(heads, "min")[1], [0.0, 0.0])  # the heads share no key


def test_padding_rows_stay():
    a = np.zeros((1, 3, 3))
    a[0, 1:, 1:] = [[1.0, 0.0], [0.5, 0.5]]
    np.testing.assert_allclose(pp.rollout(a, np.array([0.5]))[2], [0.0, 0.25, 0.75], atol=1e-15)


def test_spearman_is_scipys():
    p, q = RNG.integers(0, 9, 40).astype(float), RNG.uniform(size=40)
    np.testing.assert_allclose(pp.spearman(p, q), scipy.stats.spearmanr(p, q).statistic, rtol=1e-12)


def test_measures_by_hand():
    p = np.array([4.0, 1.0, 1.0, 1.0, 1.0, 2.0])
    np.testing.assert_allclose(pp.mean_position(p), (1 + 2 + 3 + 4 + 10) / 10 / 5, rtol=1e-12)
    np.testing.assert_allclose([pp.primacy_mass(p, 0.3), pp.recency_mass(p, 0.3)], [0.5, 0.3], rtol=1e-12)
    np.testing.assert_allclose(pp.exclude_first(p), [1 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 3], rtol=1e-12)
    weights = p / np.array([6, 5, 4, 3, 2, 1])
    np.testing.assert_allclose(pp.per_receptive_field(p), weights / weights.sum(), rtol=1e-12)
    shape = pp.u_shape(p)
    assert shape.holds and shape.strict
    lopsided = pp.u_shape(np.array([1.2, 1.0, 1.0, 1.0, 1.0, 4.0]))
    assert lopsided.holds and not lopsided.strict
    np.testing.assert_allclose(pp.wasserstein(np.eye(5)[0], np.eye(5)[4]), 1.0, rtol=1e-12)


def test_published_distances_of_bloom():
    measured = pp.measured_influence()
    np.testing.assert_allclose(measured.sum(), 1, rtol=1e-6)
    for convention, content, value in (
        ("published", "none", 0.079),
        ("published", "mean", 0.091),
        ("checkpoint", "none", 0.035),
        ("checkpoint", "mean", 0.036),
    ):
        p = pp.profile(pp.preset("bloom", content=content, convention=convention), 256)
        assert abs(float(pp.wasserstein(p, measured)) - value) < 5.1e-4, (convention, content)
    np.testing.assert_allclose(pp.wasserstein(np.ones(256), measured), 0.152, atol=5.1e-4)


def test_falcon_scales_its_bias():
    """Q = K = 0, slope ½, n = 4, head_dim 64: the last row with and without 1/√head_dim."""
    plain, scaled = (pp.attention(pp.Architecture([1.0], [m]), 0, 4)[3] for m in (0.5, 0.5 / 8))
    np.testing.assert_allclose(plain, [0.1015, 0.1674, 0.2760, 0.4551], atol=5e-5)
    np.testing.assert_allclose(scaled, [0.2271, 0.2417, 0.2573, 0.2739], atol=5e-5)
    both = [pp.preset("falcon-rw-7b", convention=c).bias.slopes for c in ("checkpoint", "published")]
    np.testing.assert_allclose(both[0] * 8, both[1], rtol=1e-12)


def test_forces():
    arch = pp.Architecture(RNG.uniform(0.1, 0.5, 6), [0.05, 0.4], diagonal=1.0)
    found = pp.forces(arch, 48)
    assert found.predicted == (-1, 1, 1, 1) and all(found.agrees) and all(found.monotone)
    np.testing.assert_allclose(found.profiles[-1], pp.profile(arch, 48), atol=1e-15)
    uniform = pp.profile(pp.Architecture(arch.mixing, [0.0, 0.0]), 48)
    np.testing.assert_allclose(found.profiles[1], uniform, atol=1e-15)
    np.testing.assert_allclose(found.total_drift[:, 0].sum(), pp.mean_position(found.profiles[-1]) - 1, atol=1e-12)
    assert found.drift.shape == (4, 7, 3) and (found.drift[:, 0] == 0).all()
    middle = pp.recency_mass(pp.profile_by_depth(arch, 48)[2]) - pp.recency_mass(
        pp.profile_by_depth(pp.Architecture(arch.mixing, [0.05, 0.4]), 48)[2]
    )
    np.testing.assert_allclose(found.drift[3, 3, 2], middle, atol=1e-14)
    assert pp.forces(pp.Architecture([0.5, 0.5], [0.3], diagonal=[-1.0, 1.0]), 12).predicted[3] == 0


def test_mass_and_time_of_collapse():
    diagonal = np.linspace(-1, 1, 9)
    arch = pp.Architecture(np.full(9, 0.6), [0.0, 0.2], diagonal=diagonal)
    mass = np.asarray(pp.first_token_mass_by_depth(arch, 20))
    for depth in (1, 4):
        short = pp.Architecture(np.full(depth, 0.6), [0.0, 0.2], diagonal=diagonal[:depth])
        np.testing.assert_allclose(mass[depth - 1], pp.profile(short, 20)[0], atol=1e-14)
    assert int(pp.collapse_depth(arch, 20, 0.3)) == int(np.argmax(mass >= 0.3)) + 1
    assert int(pp.collapse_depth(arch, 20, 1.0)) == 10


@pytest.mark.parametrize("name", ["bloom-7b1", "mpt-7b"])
def test_per_head_content_moves_mass_to_recent_tokens(name, shared_data):
    scores = np.load(shared_data / "content_per_head.npz")[f"{name}/fineweb-edu/diagonal"]
    none = pp.preset(name, convention="published")
    moved = pp.Architecture(none.mixing, none.bias.slopes, diagonal=scores.astype(float))
    assert pp.mean_position(pp.profile(moved, 256)) > pp.mean_position(pp.profile(none, 256)) + 0.1
