"""The result of `measure`: a labelled dataset, and the few arrays that most callers want."""

import dataclasses
import pathlib

import numpy as np
import xarray as xr

from ..files import write_zarr
from .model import Model

_DIMS = {
    "mixing_token": ("sequence", "layer", "position"),
    "mixing": ("sequence", "layer"),
    "mixing_norms": ("sequence", "layer"),
    "epsilon": ("sequence", "layer"),
    "epsilon_mlp": ("sequence", "layer"),
    "content": ("sequence", "layer", "head", "part"),
    "norms": ("sequence", "depth", "position"),
    "order": ("sequence", "depth"),
    "dimension": ("sequence", "depth"),
    "influence": ("sequence", "position"),
    "target": ("sequence",),
    "token": ("sequence",),
    "prediction": ("sequence", "transition", "position"),
}


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What a model does on a set of sequences (L layers, H heads, n positions).

    `dataset` holds everything per sequence (`mixing`, `mixing_token`, `mixing_norms`, `epsilon`, `epsilon_mlp`, `content`, stream
    `norms`, `order` and `dimension` by depth, raw `influence`, `prediction` by transition) and the mean `attention`.

    Source: arXiv 2602.16837.

    Examples:
        >>> spec = mf.pretrained.Spec(
        ...     family="example", vocab=16, layers=2, dim=8, heads=2, kv_heads=2, head_dim=4, hidden=16,
        ...     eps=1e-5, scale=0.5, alibi=mf.pretrained.Alibi(),
        ... )
        >>> model = mf.pretrained.initialise(spec, jax.random.key(0))
        >>> m = mf.pretrained.measure(model, np.arange(6)[None], progress=False)
        >>> m.attention.shape, m.content.shape, m.profile("sequences").shape
        ((2, 6, 6), (2, 2, 2), (6,))
    """

    dataset: xr.Dataset

    @property
    def mixing(self) -> np.ndarray:
        """λ (L,): mean over positions, then over sequences."""
        return self.dataset["mixing"].mean("sequence").values

    @property
    def attention(self) -> np.ndarray:
        """A^(t) (L, n, n): mean over heads, then over the sequences that have the row's token; rows of padding are 0."""
        return self.dataset["attention"].values

    @property
    def rollout(self) -> np.ndarray:
        """P = R_L … R_1 (n, n), R_t = (1 − λ_t) I + λ_t A^(t); rows and columns of padding are 0."""
        attention, mixing = self.attention.astype(np.float64), self.mixing.astype(np.float64)
        total = np.eye(attention.shape[1])
        for weight, kernel in zip(mixing, attention, strict=True):
            total = (1 - weight) * total + weight * (kernel @ total)
        real = self.dataset["mask"].values.any(axis=0)
        return total * real[:, None] * real[None, :]

    @property
    def rollout_row(self) -> np.ndarray:
        """The last row of `rollout` (n,), without forming it."""
        row = np.eye(1, self.attention.shape[1], self.attention.shape[1] - 1)[0]
        for weight, kernel in zip(self.mixing[::-1].astype(np.float64), self.attention[::-1], strict=True):
            row = (1 - weight) * row + weight * (row @ kernel)
        return row * self.dataset["mask"].values.any(axis=0)

    @property
    def influence(self) -> np.ndarray:
        """‖∂ target/∂e_j‖₂ (n,), averaged over sequences first, normalised to sum 1 last (published)."""
        return self.profile("published")

    @property
    def content(self) -> np.ndarray:
        """Mean scaled logits without additive position bias (L, H, 2): on the diagonal, strictly below it (NaN where n is 1)."""
        return self.dataset["content"].mean("sequence").values

    def profile(self, average: str = "published") -> np.ndarray:
        """The influence profile (n,): "published" averages, then normalises; "sequences" normalises each sequence, then averages."""
        return average_profile(self.dataset["influence"].values, self.dataset["mask"].values, average)

    def save(self, path: str | pathlib.Path) -> None:
        """Writes the dataset as a Zarr store, whole or not at all."""
        write_zarr(pathlib.Path(path), self.dataset)

    @classmethod
    def open(cls, path: str | pathlib.Path) -> "Measurement":
        """Reads a Measurement that `save` wrote."""
        return cls(xr.open_zarr(path, consolidated=False).load())


def average_profile(rows: np.ndarray, mask: np.ndarray, average: str = "published") -> np.ndarray:
    """One profile (n,) of rows (S, n) that vanish on padding, in either order of averaging and normalising; sums to 1."""
    rows = rows.astype(np.float64)
    if average == "sequences":
        rows = rows / np.maximum(rows.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    elif average != "published":
        raise ValueError(f"average={average!r} is neither 'published' nor 'sequences'")
    mean = rows.sum(axis=0) / np.maximum(mask.sum(axis=0), 1)
    total = mean.sum()
    return mean / total if total > 0 else mean


def assemble(
    model: Model,
    batches: list[dict[str, np.ndarray]],
    ids: np.ndarray,
    mask: np.ndarray,
    target: str,
    transitions: tuple[str, ...],
) -> Measurement:
    """Joins batches along the sequences and labels them."""
    spec = model.spec
    variables = {name: (dims, np.concatenate([b[name] for b in batches])) for name, dims in _DIMS.items()}
    count = np.maximum(mask.sum(axis=0), 1)
    attention = batches[0]["attention"]  # the largest array by far: summed in its place, one layer at a time in float64
    for layer in range(spec.layers):
        attention[layer] = sum(b["attention"][layer].astype(np.float64) for b in batches) / count[:, None]
    variables["attention"] = (("layer", "query", "key"), attention)
    variables["mask"] = (("sequence", "position"), mask)
    variables["ids"] = (("sequence", "position"), ids)
    coordinates = {
        "layer": np.arange(spec.layers),
        "depth": np.arange(spec.layers + 1),
        "head": np.arange(spec.heads),
        "part": np.array(["diagonal", "below"], object),  # as variable-length strings, which Zarr specifies
        "transition": np.array(transitions, object),
    }
    if not transitions:
        del variables["prediction"], coordinates["transition"]
    attributes = {
        "family": spec.family,
        "target": target,
        "dtype": str(model.dtype),
        "slopes": [] if spec.alibi_slopes is None else [float(s) for s in spec.alibi_slopes],
        "window": spec.window or 0,
    }
    return Measurement(xr.Dataset(variables, coordinates, attributes))
