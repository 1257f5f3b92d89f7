"""Bad input is refused before any compute, by a message that names the argument, its value and the remedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

pp = mf.propagation
MIXING = np.array([0.2, 0.4, 0.1])


class Empty(pp.AbstractMask):
    """Row 3 sees nothing."""

    def __call__(self, i, j):
        return (j <= i) & (i != 3)


@pytest.mark.parametrize(
    "arguments,words",
    [
        (dict(mixing=np.array([0.2, 1.4])), ("mixing[1] = 1.4", "[0, 1]")),
        (dict(mixing=np.array([-0.1])), ("mixing[0] = -0.1",)),
        (dict(mixing=np.array([np.nan, 0.2])), ("mixing[0] = nan",)),
        (dict(mixing=np.array([])), ("mixing", "(0,)")),
        (dict(slopes=np.array([0.1, -0.2])), ("slopes[1] = -0.2",)),
        (dict(diagonal=np.zeros(4)), ("4 layers", "mixing has 3")),
        (dict(diagonal=np.zeros((3, 5)), slopes=np.zeros(4)), ("4 heads", "5")),
        (dict(diagonal=np.inf), ("diagonal = inf",)),
        (dict(head_weights=np.ones(3)), ("head_weights", "(3,)", "(2,)")),
        (dict(head_weights=np.array([1.0, -1.0])), ("head_weights[1] = -1",)),
        (dict(head_weights=np.zeros(2)), ("head_weights", "sum to 0")),
        (dict(temperature=0.0), ("temperature = 0 ",)),
        (dict(mask="diagonal"), ("mask = 'diagonal'", "causal")),
        (dict(mask="window"), ("window = None",)),
        (dict(mask="window", window=0), ("window = 0",)),
        (dict(window=4), ("window = 4", "mask='window'")),
        (dict(prefix=4), ("prefix = 4", "mask='prefix'")),
        (dict(mask="prefix", prefix=-1), ("prefix = -1",)),
        (dict(bias=pp.NoBias()), ("slopes", "bias")),
        (dict(content=pp.Logits(np.zeros((5, 5))), diagonal=1.0), ("diagonal and content",)),
    ],
)
def test_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError) as error:
        pp.Architecture(**({"mixing": MIXING, "slopes": np.array([0.1, 0.3])} | arguments))
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize(
    "call,words",
    [
        (lambda a: pp.profile(a, 0), ("length = 0",)),
        (lambda a: pp.profile(a, 8, row=8), ("row = 8", "-8")),
        (lambda a: pp.attention(a, 3, 8), ("layer = 3", "3")),
        (lambda a: pp.propagate(pp.Architecture(MIXING, content=pp.Logits(np.zeros((5, 5)))), 8), ("length = 8", "5")),
        (lambda a: pp.profile(pp.Architecture(MIXING, mask=Empty()), 8), ("row 3 of 8", "mask")),
        (lambda a: pp.profile(pp.Architecture(MIXING, bias=lambda x: x[0]), 8), ("bias", "(3,)")),
        (lambda a: pp.alibi_slopes(0), ("num_heads = 0",)),
        (lambda a: pp.alibi_slopes(8, "paper"), ("convention = 'paper'", "published")),
        (lambda a: pp.preset("bloom-3b"), ("name = 'bloom-3b'", "mpt-30b")),
        (lambda a: pp.preset("bloom", content="half"), ("content = 'half'", "mean")),
        (lambda a: pp.preset("bloom", dataset="c4"), ("dataset = 'c4'", "dclm")),
        (lambda a: pp.rollout(np.ones((3, 4, 5)), MIXING), ("attention", "(3, 4, 5)")),
        (lambda a: pp.rollout(np.ones((3, 4, 4)), MIXING), ("attention[0] row 0 sums to 4", "normalize")),
        (lambda a: pp.rollout(np.ones((2, 4, 4)) / 4, MIXING), ("mixing", "(3,)")),
        (lambda a: pp.wasserstein(np.ones(3), np.ones(4)), ("(3,)", "(4,)")),
        (lambda a: pp.wasserstein(np.zeros(3), np.ones(3)), ("p has no mass",)),
        (lambda a: pp.primacy_mass(np.ones(9), 0.0), ("share = 0.0",)),
        (lambda a: pp.exclude_first(np.eye(9)[0]), ("p without its first positions has no mass",)),
        (lambda a: pp.column(a, 8, 9), ("column = 9", "7")),
        (lambda a: pp.phase_map([40.0], [1.0], depth=32), ("total_mixing", "depth = 32")),
        (lambda a: pp.fuse_heads(np.ones((2, 2))), ("attention", "(2, 2)")),
        (lambda a: pp.fuse_heads(np.ones((2, 2, 2)), "median"), ("how = 'median'", "max")),
        (lambda a: pp.measured_influence("mpt-7b"), ("mpt-7b", "meanfield measure")),
        (lambda a: pp.power_mixing(3, 2.0, 1.0), ("mixing[0] = 2",)),
        (lambda a: pp.T5Buckets(np.zeros((2, 31))), ("table", "(2, 31)")),
        (lambda a: pp.RotaryDecay(10000.0, 7), ("dim = 7",)),
    ],
)
def test_calls_are_refused(call, words, as_user):
    with pytest.raises(ValueError) as error:
        call(pp.Architecture(MIXING, np.array([0.1])))
    assert all(word in str(error.value) for word in words), str(error.value)


def test_shapes_and_shared_scores():
    """One head score goes to every head; scalars and single columns serve all layers and heads."""
    slopes = np.array([0.1, 0.3, 0.7])
    for score in (2.0, np.array([5.0])):
        arch = pp.Architecture(MIXING, slopes, head_weights=score)
        np.testing.assert_allclose(arch.head_weights, np.full(3, 1 / 3), rtol=1e-12)
    assert pp.Architecture(MIXING, diagonal=np.zeros((3, 4))).num_heads == 4
    assert pp.Architecture(MIXING, 0.3).num_heads == 1
    assert pp.Architecture(MIXING, slopes).depth == 3


def test_parameters_follow_the_dtype_of_mixing(precision):
    arch = pp.Architecture(jnp.asarray(MIXING, precision), [0.1, 0.3], diagonal=[1, 2, 3], temperature=2)
    assert {leaf.dtype for leaf in jax.tree.leaves(arch)} == {precision}
    assert pp.profile(arch, 9).dtype == precision


def test_float64_is_not_rounded_in_silence():
    with jax.enable_x64(False), pytest.raises(ValueError, match="x64"):
        pp.Architecture(MIXING, [0.1])


def test_slopes_of_checkpoints():
    np.testing.assert_allclose(pp.alibi_slopes(12, bias_max=16.0)[:2], [0.25, 0.0625], rtol=1e-12)
    np.testing.assert_allclose(pp.alibi_slopes(12, bias_max=16.0)[8:10], [0.5, 0.125], rtol=1e-12)
    np.testing.assert_allclose(pp.alibi_slopes(12, "published")[0], 2 ** (-8 / 12), rtol=1e-12)
    np.testing.assert_allclose(pp.alibi_slopes(1), [2.0**-8], rtol=1e-12)


def test_schedules():
    np.testing.assert_allclose(pp.constant_mixing(3, 0.2), [0.2] * 3)
    np.testing.assert_allclose(pp.power_mixing(3, 0.5, 2), [0.5, 0.125, 0.5 / 9], rtol=1e-12)
    a, x = np.array([[[1.0, 3.0], [0.0, 0.0]]]), np.array([[[3.0, 1.0], [1.0, 0.0]]])
    np.testing.assert_allclose(pp.measured_mixing(a, x), [0.5, 0.0], rtol=1e-12)
