"""Which tensor of a checkpoint holds which parameter, and the account: nothing missing, nothing unused, every shape right."""

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..block import shapes
from ..spec import Spec
from .tensors import Tensors

Take = Callable[[np.ndarray], np.ndarray]


def whole(tensor: np.ndarray) -> np.ndarray:
    """All of a tensor, as it is."""
    return tensor


@dataclasses.dataclass(frozen=True)
class Source:
    """A parameter: the tensor's `name` ("{t}" is the layer) and how it is taken out of it; the file's `shape` where the
    parameter does not fix it."""

    name: str
    take: Take = whole


@dataclasses.dataclass(frozen=True)
class Layout:
    """A family's names. Keys are parameters: "embedding", "head", "entrance/…", "exit/…", "block/…" (once per layer).

    `prefix` may be absent from all names of a file; tensors that match `ignored` (buffers) carry no parameter.
    """

    sources: dict[str, Source]
    prefix: str = ""
    ignored: str | None = None


def sources(names: dict[str, str], takes: dict[str, Take] | None = None) -> dict[str, Source]:
    """The sources of a table of modules, ours → theirs: the weight of each (the scale of a norm) and its bias, of which a
    model uses what its spec asks for. `takes`: how a parameter ("…/weight", "…/bias") comes out of its tensor.
    """
    takes, found = takes or {}, {}
    for ours, theirs in names.items():
        if ours in ("embedding", "head", "entrance/positions"):
            found[ours] = Source(f"{theirs}.weight")
            continue
        for kind in ("weight", "bias"):
            key = f"{ours}/{'scale' if kind == 'weight' and 'norm' in ours else kind}"
            found[key] = Source(f"{theirs}.{kind}", takes.get(key, whole))
    return found


def fused(name: str, part: Callable[[int], Take]) -> tuple[dict[str, str], dict[str, Take]]:
    """Names and takes of query, key and value that share one tensor; see `unfuse`."""
    ours = [f"block/attention/{which}" for which in ("query", "key", "value")]
    takes = {f"{key}/{kind}": part(k) for k, key in enumerate(ours) for kind in ("weight", "bias")}
    return dict.fromkeys(ours, name), takes


def unfuse(first: int, *blocks: int) -> Callable[[int], Take]:
    """Takes apart a fused projection: its leading axis is (first, sum(blocks), rest); part k is block k of every group."""

    def part(k: int) -> Take:
        start, stop = sum(blocks[:k]), sum(blocks[: k + 1])

        def take(tensor: np.ndarray) -> np.ndarray:
            split = tensor.reshape(first, sum(blocks), tensor.shape[0] // (first * sum(blocks)), *tensor.shape[1:])
            return split[:, start:stop].reshape(-1, *tensor.shape[1:])

        return take

    return part


class Checkpoint:
    """A spec, the tensors of its files, and where each parameter is; made only if the account is right."""

    def __init__(self, spec: Spec, layout: Layout, tensors: Tensors):
        self.spec, self.tensors = spec, tensors
        self.layout = _without_prefix(layout, tensors)
        _plausible(spec, tensors)
        self.expected = flatten(shapes(spec))
        self._account()

    def read(self, key: str, layer: int | None = None) -> np.ndarray:
        """One parameter, checked to be finite."""
        source = self.layout.sources[key]
        name = source.name.format(t=layer)
        value = source.take(self.tensors.read(name))
        if not np.isfinite(value).all():
            raise ValueError(f"{self.tensors.path}: tensor {name} has NaN or infinite entries; the file is damaged")
        return value

    def keys(self, part: str) -> list[str]:
        """The parameters of one part ("block", "entrance", "exit"), as keys of `read`."""
        return [key for key in self.expected if key.startswith(part + "/")]

    def _names(self) -> Iterator[tuple[str, Source, str]]:
        for key in self.expected:
            source = self.layout.sources.get(key)
            if source is None:
                raise ValueError(f"{self.spec.family} has no tensor for {key}: this combination is not supported")
            layers = range(self.spec.layers) if key.startswith("block/") else [None]
            yield from ((source.name.format(t=t), source, key) for t in layers)

    def _account(self) -> None:
        present, used = self.tensors.shapes, set()
        missing, wrong = [], []
        for name, source, key in self._names():
            used.add(name)
            if name not in present:
                missing.append(name)
            elif (shape := _taken(source, present[name])) != self.expected[key]:
                wrong.append(f"{name} {present[name]} (gives {shape} for {key}, expected {self.expected[key]})")
        if "head" in self.layout.sources and self.spec.tied:
            used.add(self.layout.sources["head"].name)  # a tied model may carry its head a second time
        ignored = self.layout.ignored
        unused = [n for n in present if n not in used and not (ignored and re.fullmatch(ignored, n))]
        problems = [("missing", sorted(set(missing))), ("unused", unused), ("of the wrong shape", sorted(set(wrong)))]
        if any(names for _, names in problems):
            said = "; ".join(f"{what}: {_some(names)}" for what, names in problems if names)
            raise ValueError(
                f"{self.tensors.path}: the tensors do not fit a {self.spec.family} model of this config: {said}"
            )


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": x}} → {"a/b": x}."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= flatten(value, f"{prefix}{name}/") if isinstance(value, dict) else {prefix + name: value}
    return flat


def unflatten(flat: dict[str, Any]) -> dict[str, Any]:
    """{"a/b": x} → {"a": {"b": x}}."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *parents, last = key.split("/")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = value
    return tree


def _without_prefix(layout: Layout, tensors: Tensors) -> Layout:
    if not layout.prefix or any(name.startswith(layout.prefix) for name in tensors.shapes):
        return layout
    bare = {k: dataclasses.replace(s, name=s.name.removeprefix(layout.prefix)) for k, s in layout.sources.items()}
    return dataclasses.replace(layout, sources=bare, prefix="")


def _plausible(spec: Spec, tensors: Tensors) -> None:
    # Before anything of the config's sizes is enumerated or laid out: a hostile config costs nothing.
    largest = max((max(shape, default=0) for shape in tensors.shapes.values()), default=0)
    sizes = {
        "number of layers": (spec.layers, len(tensors.shapes)),
        "model width": (spec.dim, largest),
        "MLP width": (spec.hidden, largest),
        "vocabulary": (spec.vocab, largest),
        "heads times head_dim": (spec.heads * spec.head_dim, largest),
        "position table": (spec.positions or 1, largest),
    }
    for what, (asked, possible) in sizes.items():
        if asked > possible:
            raise ValueError(
                f"{tensors.path}: the config asks for a {what} of {asked}, but the {len(tensors.shapes)} tensors there "
                f"allow at most {possible}; config and weights do not belong together"
            )


def _taken(source: Source, shape: tuple[int, ...]) -> tuple[int, ...]:
    # Shapes are checked on an array without memory (all strides 0).
    try:
        return source.take(np.broadcast_to(np.int8(0), shape)).shape
    except ValueError:
        return ()


def _some(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f", … ({len(names)} in all)" if len(names) > 6 else "")
