"""Born with it: the influence profile of small transformers from initialisation through training, with its prediction.

Three byte-level models (about 0.8 million parameters: ALiBi, RoPE, no position encoding) are trained on the library's own
sources. At initialisation and along training the influence of every position on the next byte is measured, and predicted
from the attention, norms and weights of the same moment. Is the U shape there at birth (arXiv 2603.10123)?
"""

import importlib.resources
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

import meanfield as mf
from meanfield.files import write_zarr

from ._claims import Claim

ENCODINGS = ("ALiBi", "RoPE", "none")
TRANSITIONS = ("mixing", "energy", "energy2", "backprop")


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Trains and measures the three models; writes the profiles by step, and one figure."""
    steps = (0, 2) if smoke else (0, 20, 60, 150, 400)
    length, sequences = (16, 4) if smoke else (128, 16)
    text = _text()
    results = []
    for number, encoding in enumerate(ENCODINGS):
        model = mf.pretrained.initialise(_spec(encoding, smoke), jax.random.key(seed + number))
        results.append(_follow(model, text, steps, length, sequences, seed))
    data = xr.concat(results, xr.DataArray(list(ENCODINGS), dims="encoding", name="encoding"))
    write_zarr(out / "born.zarr", data)
    mf.plot.save(_figure(data), out / "born.png", {name: data[name].values for name in ("influence", "loss")})
    return _claims(data)


def _follow(model, text: np.ndarray, steps: tuple[int, ...], length: int, sequences: int, seed: int) -> xr.Dataset:
    """One model from its initialisation on: what is measured at each of `steps`."""
    train, held_out = text[: -len(text) // 10], text[-len(text) // 10 :]
    windows = mf.pretrained.windows(held_out, sequences, length)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-3, b2=0.99))
    weights, state = model.weights, optimizer.init(model.weights)
    update = _update(model, optimizer)
    random = np.random.default_rng(seed)
    rows = []
    for step in range(steps[-1] + 1):
        if step in steps:
            rows.append(_measure(_with(model, weights), windows))
        starts = random.integers(0, len(train) - length - 1, 16)
        batch = np.stack([train[start : start + length + 1] for start in starts])
        weights, state = update(weights, state, batch)
    return xr.concat(rows, xr.DataArray(list(steps), dims="step", name="step"))


def _measure(model, windows: np.ndarray) -> xr.Dataset:
    found = mf.pretrained.measure(model, windows, transitions=TRANSITIONS, progress=False)
    table = mf.pretrained.compare(found, samples=2, reference=False).sel(average="published")
    shape = mf.propagation.u_shape(jnp.asarray(found.influence, jnp.float32))
    architecture = mf.propagation.profile(mf.pretrained.architecture(found), windows.shape[1])
    return xr.Dataset(
        {
            "influence": ("position", found.influence),
            "architecture": ("position", np.asarray(architecture)),
            "backprop": ("position", found.dataset["prediction"].sel(transition="backprop").mean("sequence").values),
            "mixing": found.dataset["mixing"].mean("sequence"),
            "wasserstein": table["wasserstein"],
            "spearman_sequence": table["spearman_sequence"],
            "u_shaped": bool(shape.holds),
            "loss": float(_loss(model.weights, model, windows)),
        }
    )


def _loss(weights, model, batch):
    logits = _with(model, weights).logits(batch[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.asarray(batch[:, 1:])).mean()


def _update(model, optimizer):
    @jax.jit
    def update(weights, state, batch):
        gradient = jax.grad(_loss)(weights, model, batch)
        change, state = optimizer.update(gradient, state, weights)
        return optax.apply_updates(weights, change), state

    return update


def _with(model, weights):
    return mf.pretrained.Model(model.spec, weights, model.dtype)


def _spec(encoding: str, smoke: bool) -> "mf.pretrained.Spec":
    layers, dim, heads = (2, 16, 2) if smoke else (4, 128, 4)
    return mf.pretrained.Spec(
        family=f"byte-level, {encoding}",
        vocab=256,
        layers=layers,
        dim=dim,
        heads=heads,
        kv_heads=heads,
        head_dim=dim // heads,
        hidden=4 * dim,
        eps=1e-5,
        scale=(dim // heads) ** -0.5,
        alibi=mf.pretrained.Alibi() if encoding == "ALiBi" else None,
        rotary=mf.pretrained.Rotary(dim // heads) if encoding == "RoPE" else None,
    )


def _text() -> np.ndarray:
    root = importlib.resources.files("meanfield")
    sources = sorted(pathlib.Path(str(root)).rglob("*.py"))
    data = b"\n".join(path.read_bytes() for path in sources)
    return np.frombuffer(data, np.uint8).astype(np.int32)


def _figure(data: xr.Dataset):
    with mf.plot.style():
        fig = mf.plot.figure(9.0, 5.2)
        axes = fig.subplots(2, len(ENCODINGS), sharex="row", sharey="row")
        colours = ["#CCCCCC", "#56B4E9", "#009E73", "#E69F00", "#D55E00"]
        for column, encoding in enumerate(ENCODINGS):
            run = data.sel(encoding=encoding)
            top, bottom = axes[:, column]
            for colour, step in zip(colours[-run.sizes["step"] :], run["step"].values, strict=False):
                at = run.sel(step=step)
                top.plot(at["influence"], color=colour, label=f"step {step}, loss {float(at['loss']):.2f}")
                top.plot(at["backprop"], ":", color=colour, linewidth=1)
            top.set(title=encoding, xlabel="position j", yscale="log")
            top.legend(fontsize=6.5, loc="upper center")
            for i, name in enumerate(("mixing", "energy", "energy2", "backprop", "uniform")):
                values = run["wasserstein"].sel(predictor=name)
                bottom.plot(range(run.sizes["step"]), values, "o-", color=f"C{i}", label=name, markersize=3)
            bottom.set_xticks(range(run.sizes["step"]), [str(step) for step in run["step"].values])
            bottom.set(xlabel="training step")
        axes[0, 0].set_ylabel("influence (dotted: backprop)")
        axes[1, 0].set_ylabel("Wasserstein to measured")
        axes[1, -1].legend(fontsize=6.5)
    return fig


def _claims(data: xr.Dataset) -> list[Claim]:
    claims = []
    for encoding in ENCODINGS:
        run = data.sel(encoding=encoding)
        birth, end = run.isel(step=0), run.isel(step=-1)
        claims += [
            Claim(f"{encoding}: loss falls from birth by", float(birth["loss"] - end["loss"]), 1.0, ">="),
            Claim(
                f"{encoding}: W1 of `backprop` at birth", float(birth["wasserstein"].sel(predictor="backprop")), 0.05
            ),
            Claim(
                f"{encoding}: W1 of `backprop` after training", float(end["wasserstein"].sel(predictor="backprop")), 0.1
            ),
        ]
    return claims
