"""One table: every prediction against the measured influence, in both orders of averaging, with bootstrap errors."""

from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from .._types import Float
from ..propagation import Architecture, measured_influence, preset, profile, spearman, wasserstein
from .measurement import Measurement

AVERAGES = ("published", "sequences")


class Predictor(NamedTuple):
    """Predicted rows: one per sequence (S, n), or one profile (n,) for all."""

    name: str
    rows: Float[np.ndarray, "... n"]


def compare(measurement: Measurement, *, samples: int = 200, seed: int = 0, reference: bool = True) -> xr.Dataset:
    """Compares all predictors with the measured influence.

    Predictors: the transitions that were carried along in `measure`; "mixing of averages", the last row of
    `Measurement.rollout` ([PB]); "architecture", masks, position biases and measured λ only; "uniform"; "1/√(distance+1)".

    Args:
        measurement: from `measure`, with `transitions` for the predictions per sequence.
        samples: bootstrap samples of the sequences, for the standard errors.
        seed: of the bootstrap.
        reference: adds "bloom-176b: architecture", predicted against the published measurement of BLOOM-176B.

    Returns:
        A dataset by predictor and average ("published": average, then normalise; "sequences": the reverse): `wasserstein`,
        `spearman` and their `_error`; and by predictor the means over single sequences, `spearman_sequence` and
        `wasserstein_sequence`. `.to_dataframe()` prints it.

    Source: arXiv 2602.16837.

    Examples:
        >>> spec = mf.pretrained.Spec(
        ...     family="example", vocab=16, layers=2, dim=8, heads=2, kv_heads=2, head_dim=4, hidden=16,
        ...     eps=1e-5, scale=0.5, alibi=mf.pretrained.Alibi(),
        ... )
        >>> model = mf.pretrained.initialise(spec, jax.random.key(0))
        >>> m = mf.pretrained.measure(model, np.arange(6)[None], progress=False)
        >>> table = mf.pretrained.compare(m, samples=10, reference=False)
        >>> list(table.predictor.values)
        ['mixing of averages', 'architecture', 'uniform', '1/√(distance+1)']
    """
    rows = measurement.dataset["influence"].values.astype(np.float64)
    mask = measurement.dataset["mask"].values
    weights = np.random.default_rng(seed).multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=samples)
    weights = np.concatenate([np.ones((1, len(rows)), int), weights])  # the sample itself first
    found = predictors(measurement)
    names = [p.name for p in found]
    table = {}
    for average in AVERAGES:
        measured = _resampled(rows, mask, average, weights)
        for quantity, distance in (("wasserstein", _wasserstein), ("spearman", _spearman)):
            values = []
            for predictor in found:
                predicted = np.broadcast_to(_aggregate(predictor.rows, mask, average, weights), measured.shape)
                values.append(np.asarray(distance(*_real(predicted, measured))))
            table[quantity, average] = np.stack(values)
    data: dict[str, Any] = {}
    for quantity in ("wasserstein", "spearman"):
        stacked = np.stack([table[quantity, average] for average in AVERAGES], axis=1)
        data[quantity] = (("predictor", "average"), stacked[..., 0])
        data[f"{quantity}_error"] = (("predictor", "average"), stacked[..., 1:].std(axis=-1, ddof=1))
    single = [_by_sequence(p.rows, rows, mask) for p in found]
    data["wasserstein_sequence"] = ("predictor", np.array([s[0] for s in single]))
    data["spearman_sequence"] = ("predictor", np.array([s[1] for s in single]))
    result = xr.Dataset(data, _coordinates(names))
    return xr.concat([result, bloom_reference()], dim="predictor") if reference else result


def predictors(measurement: Measurement) -> list[Predictor]:
    """All predictions that a measurement allows."""
    data = measurement.dataset
    n = data.sizes["position"]
    real = data["mask"].values.any(axis=0)
    names = [str(name) for name in data["transition"].values] if "transition" in data.coords else []
    distance = np.arange(n)[::-1]
    return [
        *(Predictor(name, data["prediction"].sel(transition=name).values) for name in names),
        Predictor("mixing of averages", measurement.rollout_row),
        Predictor("architecture", np.asarray(profile(architecture(measurement), n), np.float64) * real),
        Predictor("uniform", real / real.sum()),
        Predictor("1/√(distance+1)", real / np.sqrt(distance + 1)),
    ]


def architecture(measurement: Measurement) -> Architecture:
    """The content-free transformer with the measured λ: mask, window and ALiBi slopes of the model (RoPE and learned positions
    have no additive bias: uniform attention over what the mask allows).

    Source: arXiv 2602.16837.

    Examples:
        >>> spec = mf.pretrained.Spec(
        ...     family="example", vocab=16, layers=2, dim=8, heads=2, kv_heads=2, head_dim=4, hidden=16,
        ...     eps=1e-5, scale=0.5, alibi=mf.pretrained.Alibi(),
        ... )
        >>> model = mf.pretrained.initialise(spec, jax.random.key(0))
        >>> m = mf.pretrained.measure(model, np.arange(6)[None], progress=False)
        >>> mf.pretrained.architecture(m).num_heads
        2
    """
    attributes = measurement.dataset.attrs
    mixing, window = measurement.mixing, int(attributes["window"])
    slopes = np.asarray(attributes["slopes"], mixing.dtype)
    mask = {"mask": "window", "window": window} if window else {"mask": "causal"}
    return Architecture(mixing, slopes if slopes.size else None, **mask)


def bloom_reference() -> xr.Dataset:
    """The paper's model of BLOOM-176B (checkpoint slopes, no content) against its published measurement, as a row of `compare`."""
    measured = measured_influence("bloom")
    predicted = profile(preset("bloom", content="none"), len(measured))
    values = {"wasserstein": float(wasserstein(predicted, measured)), "spearman": float(spearman(predicted, measured))}
    data: dict[str, Any] = {}
    for name, value in values.items():
        data[name] = (("predictor", "average"), np.array([[value, np.nan]]))
        data[f"{name}_error"] = (("predictor", "average"), np.full((1, 2), np.nan))
        data[f"{name}_sequence"] = ("predictor", np.array([np.nan]))
    return xr.Dataset(data, _coordinates(["bloom-176b: architecture"]))


def _coordinates(names: list[str]) -> dict[str, np.ndarray]:
    # Objects are stored as variable-length strings, which Zarr specifies.
    return {"predictor": np.array(names, object), "average": np.array(AVERAGES, object)}


def _resampled(rows: np.ndarray, mask: np.ndarray, average: str, weights: np.ndarray) -> np.ndarray:
    # average_profile of every bootstrap sample (row of weights) at once.
    if average == "sequences":
        rows = rows / np.maximum(rows.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    mean = (weights @ rows) / np.maximum(weights @ mask.astype(np.float64), 1)
    return mean / mean.sum(axis=1, keepdims=True)


def _aggregate(rows: np.ndarray, mask: np.ndarray, average: str, weights: np.ndarray) -> np.ndarray:
    return rows / rows.sum() if rows.ndim == 1 else _resampled(rows, mask, average, weights)


def _by_sequence(predicted: np.ndarray, rows: np.ndarray, mask: np.ndarray) -> tuple[float, float]:
    predicted = np.broadcast_to(predicted, rows.shape)
    if mask.all():
        pairs = [_real(predicted, rows)]
    else:  # lengths differ
        pairs = [_real(predicted[s][mask[s]][None], rows[s][mask[s]][None]) for s in range(len(rows))]
    distances = [np.asarray(distance(p, q)) for distance in (_wasserstein, _spearman) for p, q in pairs]
    return float(np.concatenate(distances[: len(pairs)]).mean()), float(np.concatenate(distances[len(pairs) :]).mean())


_wasserstein, _spearman = jax.jit(jax.vmap(wasserstein)), jax.jit(jax.vmap(spearman))


def _real(*arrays: np.ndarray) -> list[np.ndarray]:
    # The front doors of propagation take float64 only where x64 is on.
    dtype = np.float64 if jax.config.jax_enable_x64 else np.float32
    return [array.astype(dtype) for array in arrays]


def format_table(table: xr.Dataset) -> str:
    """The comparison as lines of text, best first: Wasserstein distances with bootstrap errors in both averages, and Spearman.

    Examples:
        >>> spec = mf.pretrained.Spec(
        ...     family="example", vocab=16, layers=2, dim=8, heads=2, kv_heads=2, head_dim=4, hidden=16,
        ...     eps=1e-5, scale=0.5, alibi=mf.pretrained.Alibi(),
        ... )
        >>> model = mf.pretrained.initialise(spec, jax.random.key(0))
        >>> m = mf.pretrained.measure(model, np.arange(6)[None], progress=False)
        >>> text = mf.pretrained.format_table(mf.pretrained.compare(m, samples=10, reference=False))
        >>> len(text.splitlines()) > 3
        True
    """
    order = np.argsort(table["wasserstein"].sel(average="published").values)
    lines = [f"{'predictor':<26}{'W1 published':>18}{'W1 sequences':>18}{'Spearman':>10}{'per sequence':>14}"]
    for row in (table.isel(predictor=i) for i in order):
        cells = [
            f"{float(row['wasserstein'].sel(average=a)):.4f} ± {float(row['wasserstein_error'].sel(average=a)):.4f}"
            for a in AVERAGES
        ]
        rank, single = float(row["spearman"].sel(average="published")), float(row["spearman_sequence"])
        lines.append(
            f"{row['predictor'].item():<26}{cells[0]:>18}{cells[1]:>18}{rank:>10.3f}{single:>14.3f}".replace(
                "nan", "  –"
            )
        )
    return "\n".join(lines)
