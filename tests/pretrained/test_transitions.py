"""Every predicted row against R_T … R_1 written out naively in NumPy (theory.md 3)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pretrained.checkpoints import CONFIGS, write

import meanfield as mf
from meanfield.pretrained.jacobian import mlp_growth
from meanfield.pretrained.layers import activation, context
from meanfield.pretrained.model import apply_block, enter

NAMES = tuple(mf.pretrained.TRANSITIONS)


@pytest.fixture(
    scope="module", params=["llama", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gpt2", "falcon-new"))]
)
def case(request, tmp_path_factory):
    """A float64 model, one sequence, and what each layer saw, as NumPy arrays."""
    folder = write(tmp_path_factory.mktemp(request.param), CONFIGS[request.param], seed=7)
    model = mf.pretrained.load(folder, dtype="float64")
    ids = np.array([[3, 9, 1, 22, 7]], np.int32)
    where = context(model.spec, jnp.ones(ids.shape, bool), model.dtype)
    x = enter(model.spec, model.weights.part("entrance"), model.weights.lookup(ids, model.dtype), where)
    layers = []
    step = jax.jit(lambda params, x, t: apply_block(model.spec, params, x, where, t))
    for t in range(model.spec.layers):
        params = model.weights.layer(t)
        following, trace = step(params, x, jnp.asarray(t))
        layers.append(jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), (params, x, trace)))
        x = following
    found = mf.pretrained.measure(model, ids, transitions=NAMES)
    rows = {name: found.dataset["prediction"].sel(transition=name).values[0] for name in NAMES}
    return model.spec, layers, rows


def last_row(matrices, root=False):
    row = np.eye(len(matrices[0]))[-1]
    for matrix in reversed(matrices):
        row = row @ matrix
    row = np.sqrt(row) if root else row
    return row / row.sum()


def normalised(matrix):
    return matrix / matrix.sum(1, keepdims=True)


def square(z):
    return (z[0] ** 2).sum(-1)


def test_attention_rollouts(case):
    spec, layers, rows = case
    mean = [trace.heads.probs[0].mean(0) for _, _, trace in layers]
    norms = [(np.sqrt(square(x)), np.sqrt(square(trace.a))) for _, x, trace in layers]
    shares = [(a / (x + a)).mean() for x, a in norms]
    identity = np.eye(5)
    np.testing.assert_allclose(rows["attention-only"], last_row(mean), rtol=1e-8)
    np.testing.assert_allclose(rows["half"], last_row([(identity + m) / 2 for m in mean]), rtol=1e-8)
    mixing = [(1 - s) * identity + s * m for s, m in zip(shares, mean, strict=True)]
    np.testing.assert_allclose(rows["mixing"], last_row(mixing), rtol=1e-8)


def test_energies(case):
    _, layers, rows = case
    first, second = [], []
    for _, x, trace in layers:
        nx, na, nm, probs = square(x), square(trace.a), square(trace.m), trace.heads.probs[0]
        epsilon, with_mlp = (na / (nx + na)).mean(), (na / (nx + na + nm)).mean()
        first.append((1 - epsilon) * np.eye(5) + epsilon * normalised(probs.mean(0) / nx))
        second.append((1 - with_mlp) * np.eye(5) + with_mlp * normalised((probs**2).sum(0) / nx))
    np.testing.assert_allclose(rows["energy"], last_row(first), rtol=1e-8)
    np.testing.assert_allclose(rows["energy2"], last_row(second, root=True), rtol=1e-8)


def test_alti(case):
    spec, layers, rows = case
    matrices = []
    for params, _, trace in layers:
        out = params["attention"]["out"]["weight"].reshape(spec.dim, spec.heads, spec.head_dim)
        u = np.einsum("jha,dha->hjd", trace.heads.v[0], out)
        matrix = np.zeros((5, 5))
        for i in range(5):
            y = trace.base[0, i] + trace.a[0, i]
            for j in range(i + 1):
                share = np.einsum("h,hd->d", trace.heads.probs[0, :, i, j], u[:, j]) + (i == j) * trace.base[0, i]
                matrix[i, j] = max(0, np.abs(y).sum() - np.abs(y - share).sum())
        matrices.append(normalised(matrix))
    np.testing.assert_allclose(rows["alti"], last_row(matrices), rtol=1e-7)


def scales(spec, x):
    x = x - x.mean(-1, keepdims=True) if spec.norm == "layer" else x
    return np.sqrt((x**2).mean(-1) + spec.eps), x


def head_maps(spec, params):
    attention, gain = params["attention"], params["norm1"]["scale"]
    out = attention["out"]["weight"].reshape(spec.dim, spec.heads, spec.head_dim).transpose(1, 0, 2)
    value, key = (
        np.repeat((attention[n]["weight"] * gain).reshape(-1, spec.head_dim, spec.dim), spec.group, axis=0)
        for n in ("value", "key")
    )
    query = (attention["query"]["weight"] * gain).reshape(spec.heads, spec.head_dim, spec.dim)
    return out, value, key, query


def attention_part(spec, params, x, trace, depth):
    """I-free E + K + diag Q of theory.md, with every matrix formed."""
    out, value, key, query = head_maps(spec, params)
    r, _ = scales(spec, x[0])
    a, d = trace.heads.probs[0], spec.dim
    maps = out @ value
    u = np.einsum("jha,hda->hjd", trace.heads.v[0], out)
    q, k = trace.heads.q[0].transpose(1, 0, 2), trace.heads.k[0].transpose(1, 0, 2)
    scale = (spec.scale / (depth + 1 if spec.scale_by_depth else 1)) ** 2 / spec.head_dim
    total = np.einsum("hij,kij,hde,kde->ij", a, a, maps, maps) / d / r**2
    for h in range(spec.heads):
        for i in range(5):
            total[i, i] += 2 * a[h, i, i] * np.trace(maps[h]) / (d * r[i])
            mean_u, mean_k = a[h, i] @ u[h], a[h, i] @ k[h]
            spread = ((u[h] - mean_u) ** 2).sum(-1)
            total[i] += a[h, i] ** 2 * spread * (q[h, i] ** 2).sum() * (key[h] ** 2).sum() * scale / (d * r**2)
            moment = np.einsum("j,jd,je->de", a[h, i], u[h] - mean_u, k[h] - mean_k)
            total[i, i] += (moment**2).sum() * (query[h] ** 2).sum() * scale / (d * r[i] ** 2)
    return total


def mlp_jacobians(spec, params, middle):
    """J_i of the MLP branch as matrices, gain and scale of its norm included."""
    norm, mlp = params["norm2"], params["mlp"]
    r, centred = scales(spec, middle[0])
    f = activation(spec.activation)

    def branch(h):
        z = mlp["up"]["weight"] @ h + (mlp["up"]["bias"] if spec.mlp_bias else 0)
        if spec.gated:
            gate = mlp["gate"]["weight"] @ h + (mlp["gate"]["bias"] if spec.mlp_bias else 0)
            return mlp["down"]["weight"] @ (f(gate) * z)
        return mlp["down"]["weight"] @ f(z)

    h = centred / r[:, None] * norm["scale"] + (norm["bias"] if spec.norm_bias else 0)
    jacobian = np.asarray(jax.jit(jax.vmap(jax.jacrev(branch)))(h))
    return jacobian * norm["scale"] / r[:, None, None]


def test_backprop(case):
    spec, layers, rows = case
    matrices = []
    for depth, (params, x, trace) in enumerate(layers):
        jacobian = mlp_jacobians(spec, params, trace.middle)
        growth = 1 + (2 * np.trace(jacobian, axis1=1, axis2=2) + (jacobian**2).sum((1, 2))) / spec.dim
        attention = attention_part(spec, params, x, trace, depth)
        if spec.wiring == "parallel":
            matrices.append(np.eye(5) + attention + np.diag(growth - 1))
        else:
            matrices.append(growth[:, None] * (np.eye(5) + attention))
    np.testing.assert_allclose(rows["backprop"], last_row(matrices, root=True), rtol=1e-7)


def test_probes_estimate_the_gram_form(case):
    spec, layers, _ = case
    params, middle = jax.tree.map(jnp.asarray, (layers[0][0], layers[0][2].middle))
    growth = jax.jit(mlp_growth, static_argnums=(0, 3))
    exact, probed = growth(spec, params, middle), growth(spec, params, middle, 2000)
    np.testing.assert_allclose(probed, exact, rtol=0.1)


@pytest.mark.parametrize("name", ["bloom", pytest.param("gpt_neox", marks=pytest.mark.slow)])
def test_attention_that_adds_nothing(tmp_path, name):
    """BLOOM's sub-layers return the stream with their contribution: with a zero output projection λ is 0, not ½."""

    def edit(tensors):
        for key in tensors:
            if "attention.dense" in key:
                tensors[key] *= 0

    model = mf.pretrained.load(write(tmp_path, CONFIGS[name], edit=edit))
    found = mf.pretrained.measure(model, np.array([[1, 2, 3]], np.int32), transitions=("mixing",))
    np.testing.assert_array_equal(found.mixing, 0)
    np.testing.assert_array_equal(found.rollout, np.eye(3))
    np.testing.assert_array_equal(found.dataset["prediction"].values[0, 0], [0, 0, 1])


@pytest.mark.parametrize(
    "name, last", [("bloom", [0.1015, 0.1674, 0.2760, 0.4551]), ("falcon-rw", [0.2271, 0.2417, 0.2573, 0.2739])]
)
def test_falcon_divides_its_slopes(tmp_path, name, last):
    """Q = K = 0, slope ½, n = 4, head_dim 64."""

    def edit(tensors):
        for key in tensors:
            if "query_key_value" in key:
                tensors[key] *= 0

    sizes = {"hidden_size": 512} | (
        {"n_head": 8, "n_layer": 1} if name == "bloom" else {"num_attention_heads": 8, "num_hidden_layers": 1}
    )
    model = mf.pretrained.load(write(tmp_path, CONFIGS[name] | sizes, edit=edit))
    where = context(model.spec, jnp.ones((1, 4), bool), model.dtype)
    x = model.weights.lookup(np.array([[1, 2, 3, 4]], np.int32), model.dtype)
    probs = jax.jit(lambda params, x: apply_block(model.spec, params, x, where, 0)[1].heads.probs)
    np.testing.assert_allclose(probs(model.weights.layer(0), x)[0, 0, -1], last, atol=5e-5)
