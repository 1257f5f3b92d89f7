"""Exponentially long times: merge times against the quadrature, plateaus, joining, statuses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import meanfield as mf
from meanfield.longtime import CoarseningStatus, exponential_fit

N, D = 12, 2
NO_LABELS = mf.Marginal(jnp.zeros(N))


def two_clusters(angle):
    """Six tokens at angle 0 and six at `angle`."""
    points = jnp.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    return jnp.repeat(points, N // 2, axis=0)


def merge_time(beta, start, end):
    """∫ (1 + e^{β(1−cosφ)})/(2 sinφ) dφ (theory.md 1.4)."""
    return quad(lambda p: (1 + np.exp(beta * (1 - np.cos(p)))) / (2 * np.sin(p)), end, start, epsabs=0, limit=200)[0]


@eqx.filter_jit
def batch(betas, x0, t1=1e14):
    """One compiled program for every test of SA."""
    return jax.vmap(lambda beta, x: mf.coarsen(mf.SA(mf.ExpDot(beta)), x, NO_LABELS, t1, throw=False, max_steps=512))(
        betas, x0
    )


def take(runs, i):
    return jax.tree.map(lambda a: a[i], runs)


def scattered(seed):
    return mf.sphere.sample(jax.random.key(seed), (N, D))


BETAS = np.array([2.0, 4.0, 8.0, 14.0])


@pytest.fixture(scope="module")
def pairs():
    return batch(BETAS, jnp.stack([two_clusters(2.0)] * 4))


@pytest.fixture(scope="module")
def crowds():
    return batch(np.array([9.0, 9.0, 16.0, 1e-6]), jnp.stack([scattered(0), scattered(3), scattered(0), scattered(1)]))


def test_merge_times_are_the_quadrature(pairs):
    """φ = 2 → 0.5 takes 5.5, 40, 5801, … in far fewer steps than time units; the fit reads the exponent off."""
    times = []
    for i, beta in enumerate(BETAS):
        run = take(pairs, i)
        (merge,) = run.merges(0.5)
        times.append(merge.t)
        np.testing.assert_allclose(merge.t, merge_time(beta, 2.0, 0.5), rtol=2e-3)
        np.testing.assert_allclose(run.merges(0.02)[0].t, merge_time(beta, 2.0, 0.02), rtol=1e-4)
        np.testing.assert_allclose(merge.weights, 0.5, rtol=1e-14)
        assert merge.left == 1
        assert run.status == CoarseningStatus.ONE_CLUSTER and int(run.steps["accepted"]) < 100
    fit = exponential_fit(BETAS, np.array([merge_time(b, 2.0, 0.5) for b in BETAS]))
    measured = exponential_fit(BETAS, np.array(times))
    assert abs(measured.rate - fit.rate) < 1e-3 and 1.2 < measured.rate < 1.42 and measured.r_squared > 0.99


def test_staircase(crowds):
    """Every plateau longer than a factor 10 has 2βe^{−β}E = Σ W_c² within 1 %; the last merge leaves one cluster."""
    for i, beta in ((0, 9.0), (1, 9.0), (2, 16.0)):
        run = take(crowds, i)
        assert bool(run.ok)
        plateaus = [p for p in run.plateaus() if p.end > 10 * p.start]
        assert len(plateaus) >= 2
        for p in plateaus:
            np.testing.assert_allclose(2 * beta * np.exp(-beta) * p.energy, sum(w * w for w in p.weights), rtol=0.01)
            np.testing.assert_allclose(p.predicted, p.energy, rtol=0.01)
            np.testing.assert_allclose(sum(p.weights), 1, rtol=1e-12)
        counts = run.clusters()
        energy = np.asarray(run.energy)[np.isfinite(run.ts)]
        assert len(run.merges()) >= len(plateaus) - 1 and counts[counts > 0][0] > counts[counts > 0][-1]
        np.testing.assert_allclose(np.linalg.norm(run.x[np.isfinite(run.ts)], axis=-1), 1, atol=1e-14)
        assert np.diff(np.asarray(run.ts)[np.isfinite(run.ts)]).min() > 0 and np.nanmin(energy) == energy[0]


def test_agrees_with_flow(crowds):
    """Order parameter and energy along the way are those of `flow` at the same times."""
    run = take(crowds, 0)
    ts = jnp.array([0.0, 0.5, 2.0, 8.0, 60.0])
    traj = mf.flow(mf.SA(mf.ExpDot(9.0)), scattered(0), NO_LABELS, ts, rtol=1e-9, atol=1e-11)
    t = np.asarray(run.ts)
    k = int(np.nanargmin(np.abs(t - 30.0)))
    exact = mf.flow(
        mf.SA(mf.ExpDot(9.0)), scattered(0), NO_LABELS, jnp.array([0.0, 0.1, 0.2, 0.3, t[k]]), rtol=1e-9, atol=1e-11
    )
    np.testing.assert_allclose(run.x[k], exact.x[-1], atol=2e-4)
    np.testing.assert_allclose(run.at(ts[1:], "order"), traj.order[1:], atol=5e-3)


def test_uniform_attention_collapses_at_once(crowds):
    """Without metastability there is one plateau, the initial condition's cloud, and one exponential collapse."""
    run = take(crowds, 3)
    assert run.status == CoarseningStatus.ONE_CLUSTER and run.ts[np.isfinite(run.ts)].max() < 40
    np.testing.assert_allclose(run.order[np.isfinite(run.ts)][-1], 1, atol=1e-12)


def test_a_batch_is_its_solo_runs(crowds):
    """Points of a batch do not influence each other."""
    alone = batch(np.array([9.0] * 4), jnp.stack([scattered(0)] * 4))
    np.testing.assert_allclose(take(alone, 2).ts, take(crowds, 0).ts, rtol=1e-9)


@pytest.mark.slow
def test_gives_up_visibly():
    """Too few steps: a status with the time reached, or an error that says so."""
    with pytest.raises(mf.FlowError, match="max_steps"):
        mf.coarsen(mf.SA(mf.ExpDot(9.0)), scattered(0), NO_LABELS, 1e9, max_steps=16)


@pytest.mark.slow
def test_labels_keep_tokens_apart():
    """Tokens with different labels may part again, so they are never joined; equal labels are."""
    x0 = jnp.repeat(scattered(5)[:6], 2, axis=0)
    kernel = mf.Toeplitz(mf.Cosine(1.0, 0.2), mf.ExpDot(2.0))
    apart = mf.coarsen(mf.USA(kernel), x0, mf.Marginal.circle(N), 1e3)
    assert len(np.unique(np.round(np.asarray(apart.x)[np.isfinite(apart.ts)][-1], 6), axis=0)) > 1
    paired = mf.Marginal(jnp.repeat(jnp.arange(6.0), 2))
    joined = mf.coarsen(mf.USA(kernel), x0, paired, 1e3)
    last = np.asarray(joined.x)[np.isfinite(joined.ts)][-1]
    np.testing.assert_array_equal(last[::2], last[1::2])


def test_refusals():
    noisy = mf.Noisy(mf.SA(mf.Dot()), 0.1, jax.random.key(0))
    with pytest.raises(ValueError, match="Noisy"):
        mf.coarsen(noisy, scattered(0), NO_LABELS, 1.0)
    with pytest.raises(ValueError, match="t1"):
        mf.coarsen(mf.SA(mf.Dot()), scattered(0), NO_LABELS, 0.0)
    with pytest.raises(ValueError, match="at least 3"):
        exponential_fit(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
