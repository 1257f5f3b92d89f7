"""The likeliest mistakes of a newcomer: each is refused before compute, by a message that says what, why and what to do."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import meanfield as mf
from meanfield.cli import main

pp = mf.propagation
N, D = 4, 3
KEY = jax.random.key(0)
X = np.asarray([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0.6, 0.8]], np.float32)
KERNEL = mf.ExpDot(1.0)
USA = mf.USA(KERNEL)
RHO = mf.Marginal.circle(N)
TS = jnp.asarray([0.0, 1.0])

SPEC = mf.pretrained.Spec("example", 8, 1, 4, 2, 2, 2, 4, 1e-5, 0.5, alibi=mf.pretrained.Alibi())
TINY = mf.pretrained.initialise(SPEC, KEY)

# name: (the call, what the message must name, what it must propose)
MISTAKES = {
    # tokens
    "one token in place of a row of tokens": (lambda: mf.flow(USA, X[0], RHO, TS), "x0 has shape (3,)", "(n, d)"),
    "a batch of token sets": (lambda: mf.flow(USA, X[None], RHO, TS), "x0 has shape (1, 4, 3)", "(n, d)"),
    "integer tokens": (lambda: mf.energy(KERNEL, np.eye(4, dtype=int), RHO), "x has dtype int", "astype(float)"),
    "a zero row": (
        lambda: mf.flow(USA, np.diag(np.float32([1, 0, 1, 1])), RHO, TS),
        "x0 has zero rows 1",
        "non-zero vector",
    ),
    "NaN in a token": (
        lambda: mf.velocity(USA, X * np.float32([[1], [1], [np.nan], [1]]), RHO),
        "rows 2",
        "remove or replace",
    ),
    "tokens off the sphere": (lambda: mf.flow(USA, 2 * X, RHO, TS), "row 0 has norm 2", "mf.sphere.normalize(x0)"),
    "a number as shape": (lambda: mf.sphere.sample(KEY, 8), "shape=8", "(n, d)"),
    "a number as random key": (lambda: mf.sphere.sample(0, (8, 3)), "key is 0", "jax.random.key(0)"),
    "a number as random key of ascend": (lambda: mf.ascend(KERNEL, RHO, D, 0), "key is 0", "jax.random.key(0)"),
    # labels and weights
    "labels of another length": (lambda: mf.flow(USA, X, mf.Marginal.circle(5), TS), "has 5 labels", "one label"),
    "labels in place of a marginal": (
        lambda: mf.flow(USA, X, jnp.zeros(N), TS),
        "rho is an array of shape (4,)",
        "mf.Marginal(labels)",
    ),
    "a count in place of labels": (lambda: mf.Marginal(8), "labels must share", "mf.Marginal.positions(n)"),
    "weights of another sum": (lambda: mf.Marginal(np.arange(4), np.ones(4)), "sum to 4", "weights / weights.sum()"),
    "weights of another length": (lambda: mf.Marginal(np.arange(4), np.ones(2) / 2), "shape (2,)", "pass 4 weights"),
    # times and tolerances
    "times that fall": (lambda: mf.flow(USA, X, RHO, jnp.asarray([1.0, 0.0])), "strictly increasing", "sort it"),
    "a last time in place of times": (lambda: mf.flow(USA, X, RHO, 20.0), "ts has shape ()", "linspace(0, 20, 50)"),
    "a tolerance below float32": (lambda: mf.flow(USA, X, RHO, TS, rtol=1e-10), "rtol=1e-10", "float64"),
    # kernels and dynamics
    "a kernel where a dynamics is expected": (
        lambda: mf.flow(KERNEL, X, RHO, TS),
        "the kernel ExpDot",
        "mf.USA(kernel)",
    ),
    "a dynamics where a kernel is expected": (
        lambda: mf.energy(USA, X, RHO),
        "kernel is of type USA",
        "mf.ExpDot(2.0)",
    ),
    "a dynamics to ascend": (lambda: mf.ascend(USA, RHO, D, KEY), "kernel is of type USA", "mf.ExpDot(2.0)"),
    "a class in place of an object": (lambda: mf.USA(mf.ExpDot), "the class ExpDot", "mf.ExpDot(2.0)"),
    "a bare function as kernel": (lambda: mf.USA(lambda x, xi, y, zeta: x @ y), "is a function", "mf.Pair(fn)"),
    "profile and kernel exchanged": (lambda: mf.Toeplitz(KERNEL, mf.Gaussian(1.0)), "inner", "not a kernel"),
    "frequencies and kernel exchanged": (
        lambda: mf.RoPE(jnp.ones(1), KERNEL),
        "frequencies is of type ExpDot",
        "array of numbers",
    ),
    "more frequencies than planes": (
        lambda: mf.velocity(mf.USA(mf.RoPE(KERNEL, jnp.ones(2))), X, RHO),
        "2 frequencies",
        "at most d//2",
    ),
    "beta as text": (lambda: mf.ExpDot("2"), "beta is '2'", "pass a number"),
    "negative beta": (lambda: mf.ExpDot(-1.0), "beta=-1", "beta > 0"),
    "beta that overflows": (lambda: mf.flow(mf.USA(mf.ExpDot(100.0)), X, RHO, TS), "beta=100", "shift=1.0"),
    "an unknown method": (lambda: mf.velocity(USA, X, RHO, method="fast"), "method='fast'", "blocked"),
    "softmax of a repulsion": (lambda: mf.flow(mf.SA(-1.0 * KERNEL), X, RHO, TS), "positive kernel", "mf.USA"),
    "a pair function that returns a vector": (
        lambda: mf.energy(mf.Pair(lambda x, xi, y, zeta: x * y), X, RHO),
        "shape (3,)",
        "return a scalar",
    ),
    "an asymmetric pair to ascend": (
        lambda: mf.ascend(mf.Pair(lambda x, xi, y, zeta: x[0] * y[1]), RHO, D, KEY),
        "asymmetric",
        "symmetrise it",
    ),
    "a gauge that is not orthogonal": (
        lambda: mf.ascend(mf.Gauge(KERNEL, lambda xi: 2 * jnp.eye(D)), RHO, D, KEY),
        "not orthogonal",
        "jax.numpy.linalg.qr",
    ),
    # propagation and checkpoints
    "a mixing coefficient above 1": (lambda: pp.Architecture([0.3, 1.2], [0.5]), "mixing[1] = 1.2", "[0, 1]"),
    "one mixing number for all layers": (lambda: pp.Architecture(0.3, [0.5]), "mixing has shape ()", "(T,)"),
    "a path where a model is expected": (
        lambda: mf.pretrained.measure("no/such", np.zeros((1, 4), int)),
        "model is a str",
        "mf.pretrained.load(path)",
    ),
    "a method of ascent by its name": (
        lambda: mf.ascend(KERNEL, RHO, D, KEY, method="newton"),
        "method is 'newton'",
        "mf.ascent.LBFGS()",
    ),
    "token ids that are no integers": (
        lambda: mf.pretrained.measure(TINY, np.zeros((1, 4), np.float32)),
        "ids has dtype float32",
        "integers",
    ),
    "one transition in place of a tuple": (
        lambda: mf.pretrained.measure(TINY, np.zeros((1, 4), np.int32), transitions="mixing"),
        "transitions='mixing' is a string",
        "('mixing',)",
    ),
    "an unknown preset": (lambda: pp.preset("bloom-7b"), "'bloom-7b' is unknown", "bloom-7b1"),
    "a name in place of an architecture": (lambda: pp.profile("bloom", 256), "arch is 'bloom'", "pp.preset(name)"),
    "a model that is not on disk": (lambda: mf.pretrained.load("no/such"), "no/such is neither", "hf download"),
    # sweeps and design
    "an argument that is no axis": (lambda: mf.sweep(lambda b: {"x": b}, {"beta": [1.0]}), "'beta'", "takes ['b']"),
    "a sweep that returns no dict": (
        lambda: mf.sweep(lambda beta: beta, {"beta": [1.0]}),
        "fn returned an array",
        "'order'",
    ),
    "grid and function exchanged": (
        lambda: mf.sweep({"beta": [1.0]}, lambda beta: beta),
        "grid is a function",
        "sweep(fn, grid)",
    ),
    "a branch on a swept parameter": (
        lambda: mf.sweep(lambda beta: {"x": 1.0 if beta > 0 else 0.0}, {"beta": [1.0]}),
        "cannot be traced",
        "jnp.where",
    ),
    "a number in place of an array to fit": (
        lambda: mf.design.fit(lambda p: p**2, 1.0, 3, optax.sgd(0.1)),
        "no floating JAX array",
        "jnp.asarray",
    ),
    "a learning rate as optimizer": (lambda: mf.design.fit(jnp.sum, X, 3, 0.1), "optimizer is 0.1", "optax.adam"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_message_says_what_and_what_to_do(name, as_user):
    call, what, remedy = MISTAKES[name]
    with jax.enable_x64(False), jax.numpy_dtype_promotion("standard"), pytest.raises((ValueError, OSError)) as error:
        call()
    message = str(error.value)
    assert what in message and remedy in message, message
    assert len(message) < 400, "a message is read in one look"


def test_float64_without_x64(as_user):
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"x0 is float64 but x64 is off.*jax_enable_x64"):
        mf.flow(USA, X.astype(np.float64), RHO, TS)


SWEEPS = {
    "[model\n": ("sweep.toml", "line 1"),
    "[model]\nkernel = 'ExpDot(1.0)'\n": ("[grid]", "--example"),
    "[model]\nkernel = 'ExpDot(beta)'\ntoken = 4\n[grid]\nbeta = [1.0]\n": ("'token'", "'tokens'"),
    "[model]\nkernel = 'Exp(beta)'\n[grid]\nbeta = [1.0]\n": ("Exp", "ExpDot"),
    "[model]\nkernel = 'ExpDot(b)'\n[grid]\nbeta = [1.0]\n": ("'b'", "beta"),
}
COMMANDS = {
    "profil": ("'profil'", "profile"),
    "experiment run dynamics_colapse": ("'dynamics_colapse' is unknown", "did you mean 'dynamics_collapse'"),
    "profile blom": ("'blom'", "bloom-7b1"),
    "flow --beta -1": ("beta", "pass beta > 0"),
    "flow --betta 2": ("--betta", "--beta"),
    "measure no/such --text a.txt": ("no/such", "config.json"),
    "profile bloom-7b1 --length 2": ("--length 2", "at least 3"),
    "view no/such": ("no/such does not exist", "meanfield flow --out"),
    "sweep none.toml": ("none.toml", "--example"),
}


def _refusal(arguments, capsys) -> str:
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("text", SWEEPS)
def test_a_wrong_sweep_file_is_explained(text, as_user, capsys, tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    said = _refusal(["sweep", str(file), "--out", str(tmp_path / "run")], capsys)
    assert all(word in said for word in SWEEPS[text]), said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_command_is_explained(command, as_user, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = _refusal(command.split(), capsys)
    assert all(word in said for word in COMMANDS[command]), said
