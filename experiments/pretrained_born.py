"""Born with it: the influence profile of small transformers from initialisation through training, with its prediction.

Three byte-level models (a million parameters each: ALiBi, RoPE, no position encoding) are trained on the library's own
sources. At initialisation (of several seeds) and along training the influence of every position on the next byte is measured,
and predicted from the attention, norms and weights of the same moment. Is the U shape there at birth (arXiv 2603.10123)?

It is, with every encoding and seed, and mask, biases and λ alone predict it: attention is uniform there, so that all paths
between two positions share their matrices and amplitudes add. Training removes the start within 60 steps and sharpens the
end; paths then differ, energies add, and `backprop` ranks the positions. Without position encoding the share of the last
position is underestimated. One text, one run per encoding.
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
    """Trains and measures the three models; writes the profiles by step and by seed at birth, and one figure."""
    steps = (0, 2) if smoke else (0, 20, 60, 150, 300)
    length, sequences, births = (16, 4, 2) if smoke else (128, 16, 4)
    text = _text()
    results = []
    for encoding in ENCODINGS:
        spec = _spec(encoding, smoke)
        held_out = mf.pretrained.windows(text[-len(text) // 10 :], sequences, length)
        model, *others = (mf.pretrained.initialise(spec, jax.random.key(seed + birth)) for birth in range(births))
        followed = _follow(model, text[: -len(text) // 10], held_out, steps, seed)
        born = [followed.isel(step=0), *(_profile(_measured(other, held_out)) for other in others)]
        ends = {f"{name}_birth": ("birth", [float(at[name]) for at in born]) for name in ("start", "end")}
        results.append(followed.assign(ends))
    data = xr.concat(results, xr.DataArray(np.array(ENCODINGS, object), dims="encoding", name="encoding"))
    write_zarr(out / "born.zarr", data)
    mf.plot.save(_figure(data), out / "born.png", {name: data[name].values for name in ("influence", "loss")})
    return _claims(data)


def _follow(model, train: np.ndarray, held_out: np.ndarray, steps: tuple[int, ...], seed: int) -> xr.Dataset:
    """One model from its initialisation on: what is measured at each of `steps`."""
    length, batch = held_out.shape[1], 8
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-3, b2=0.99))
    weights, state = model.weights, optimizer.init(model.weights)
    update = _update(model, optimizer)
    random = np.random.default_rng(seed)
    rows = []
    for step in range(steps[-1] + 1):
        if step in steps:
            rows.append(_moment(_with(model, weights), held_out))
        starts = random.integers(0, len(train) - length - 1, batch)
        weights, state = update(weights, state, np.stack([train[start : start + length + 1] for start in starts]))
    return xr.concat(rows, xr.DataArray(list(steps), dims="step", name="step"))


def _measured(model, windows: np.ndarray) -> "mf.pretrained.Measurement":
    return mf.pretrained.measure(model, windows, transitions=TRANSITIONS, progress=False)


def _profile(found: "mf.pretrained.Measurement") -> xr.Dataset:
    """Influence, and its ends (first and last position) over the mean of the middle third."""
    profile = found.influence
    n = len(profile)
    middle = profile[n // 3 : n - n // 3].mean()
    return xr.Dataset({"influence": ("position", profile), "start": profile[0] / middle, "end": profile[-1] / middle})


def _moment(model, windows: np.ndarray) -> xr.Dataset:
    found = _measured(model, windows)
    table = mf.pretrained.compare(found, samples=2, reference=False).sel(average="published")
    predicted = {
        "backprop": ("position", found.dataset["prediction"].sel(transition="backprop").mean("sequence").values),
        "mixing": found.dataset["mixing"].mean("sequence"),
        "wasserstein": table["wasserstein"],
        "spearman_sequence": table["spearman_sequence"],
        "loss": float(_loss(model.weights, model, windows)),
    }
    return _profile(found).assign(predicted)


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
    layers, dim, heads = (2, 16, 2) if smoke else (5, 128, 4)
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
        fig = mf.plot.figure(9.0, 7.2)
        axes = fig.subplots(3, len(ENCODINGS), sharex="row", sharey="row")
        for column, encoding in enumerate(ENCODINGS):
            run = data.sel(encoding=encoding)
            _profiles(axes[0, column], run)
            _ends(axes[1, column], run)
            _distances(axes[2, column], run)
            axes[0, column].set(title=encoding, xlabel="position j", yscale="log")
            for ax in axes[1:, column]:
                ax.set_xticks(range(run.sizes["step"]), [str(step) for step in run["step"].values])
                ax.set(xlabel="training step", yscale="log")
        axes[0, 0].set_ylim(top=30)  # room for the legends
        labels = ("influence (dotted: backprop)", "end / middle third", "W1 to measured")
        for ax, label in zip(axes[:, 0], labels, strict=True):
            ax.set_ylabel(label)
        for ax in axes[1:, -1]:
            ax.legend(fontsize=6.5)
    return fig


def _profiles(ax, run: xr.Dataset) -> None:
    colours = ["#CCCCCC", "#56B4E9", "#009E73", "#E69F00", "#D55E00"][-run.sizes["step"] :]
    for colour, step in zip(colours, run["step"].values, strict=True):
        at = run.sel(step=step)
        ax.plot(at["influence"], color=colour, label=f"step {step}, loss {float(at['loss']):.2f}")
        ax.plot(at["backprop"], ":", color=colour, linewidth=1)
    ax.legend(fontsize=6.5, loc="upper center")


def _ends(ax, run: xr.Dataset) -> None:
    for i, (name, label) in enumerate((("start", "first position"), ("end", "last position"))):
        ax.plot(run[name], "o-", color=f"C{i}", label=label, markersize=3)
        births = run[f"{name}_birth"].values
        ax.plot(np.zeros(len(births)), births, "_", color=f"C{i}", markersize=9)
    ax.axhline(1, color="#000000", linewidth=0.8, linestyle="--")


def _distances(ax, run: xr.Dataset) -> None:
    for i, name in enumerate(("architecture", *TRANSITIONS, "uniform")):
        ax.plot(run["wasserstein"].sel(predictor=name), "o-", color=f"C{i}", label=name, markersize=3)


def _claims(data: xr.Dataset) -> list[Claim]:
    claims = []
    for encoding in ENCODINGS:
        run = data.sel(encoding=encoding)
        birth, end = run.isel(step=0), run.isel(step=-1)
        start, last = (run[f"{name}_birth"].min().item() for name in ("start", "end"))
        claims += [
            Claim(f"{encoding}: first position over the middle third at birth (least of the seeds)", start, 1.0, ">="),
            Claim(f"{encoding}: last position over the middle third at birth (least of the seeds)", last, 1.0, ">="),
            Claim(f"{encoding}: W1 of the architecture at birth", _w1(birth, "architecture"), 0.05),
            Claim(f"{encoding}: loss falls from birth by", float(birth["loss"] - end["loss"]), 1.0, ">="),
            Claim(
                f"{encoding}: first position over the middle third, trained over at birth",
                float(end["start"]) / start,
                0.5,
                "<",
            ),
            Claim(f"{encoding}: last position over the middle third, trained", float(end["end"]), 1.0, ">="),
            Claim(f"{encoding}: W1 of `backprop` over that of uniform, trained", _w1(end) / _w1(end, "uniform"), 0.8),
            Claim(f"{encoding}: mean Spearman per sequence of `backprop`, trained", _rank(end), 0.6, ">="),
        ]
        if encoding != "none":
            claims.append(Claim(f"{encoding}: W1 of `backprop`, trained", _w1(end), 0.05))
    return claims


def _w1(moment: xr.Dataset, predictor: str = "backprop") -> float:
    return float(moment["wasserstein"].sel(predictor=predictor))


def _rank(moment: xr.Dataset) -> float:
    return float(moment["spearman_sequence"].sel(predictor="backprop"))
