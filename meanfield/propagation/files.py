"""Architectures and profiles in files: TOML or JSON descriptions, and CSV columns."""

import json
import pathlib
import tomllib
import zipfile

import numpy as np
from jaxtyping import Float

from .architecture import Architecture
from .biases import AbstractBias, RotaryDecay, T5Buckets, alibi_slopes
from .presets import preset
from .schedules import constant_mixing, power_mixing

_PRESET = ("preset", "content", "dataset", "convention")
_PLAIN = ("mask", "window", "prefix", "head_weights", "temperature")
_KEYS = (*_PRESET, *_PLAIN, "mixing", "slopes", "heads", "bias_max", "bias", "diagonal")


def load_architecture(path: str | pathlib.Path) -> Architecture:
    """The `Architecture` described by a TOML or JSON file.

    - mixing: a list, or {depth, value}, or {depth, scale, exponent} for scale/t^exponent;
    - one of slopes (a list), heads (ALiBi slopes of so many heads, with bias_max and convention) and bias ({kind = "rotary", base, dim}
      or {kind = "t5", table, max_distance}), or none of them for no position bias;
    - diagonal: a number, a list (T,), a table (T, H), or {file = "scores.npz", key = "…", scale = 1.0} beside the description;
    - mask, window, prefix, head_weights, temperature as in `Architecture`;
    - or preset (with content, dataset, convention), whose values the keys above replace.

    `ValueError` names the file, the key and the remedy.

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "arch.toml"
        >>> _ = path.write_text('preset = "bloom-7b1"')
        >>> arch = mf.propagation.load_architecture(path)
        >>> arch.depth, arch.num_heads
        (30, 32)
    """
    path = pathlib.Path(path)
    spec = _read(path)
    unknown = sorted(set(spec) - set(_KEYS))
    if unknown:
        raise ValueError(f"{path}: key {unknown[0]!r} is unknown: use {', '.join(_KEYS)}")
    try:
        return _build(spec, path.parent)
    except (ValueError, TypeError, KeyError) as error:
        reason = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path}: {reason}") from error


def load_profile(path: str | pathlib.Path, length: int) -> Float[np.ndarray, " n"]:
    """A profile of `length` positions: the last column of a CSV file, '#' comments and one header line skipped, or the array `influence`
    of an .npz file, as `meanfield measure` writes it.

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "profile.csv"
        >>> np.savetxt(path, [[1, 0.25], [2, 0.75]], delimiter=",")
        >>> print(mf.propagation.load_profile(path, length=2))
        [0.25 0.75]
    """
    path = pathlib.Path(path)
    values = _array(path, "influence") if path.suffix.lower() == ".npz" else _last_column(path)
    if values.shape != (length,):
        raise ValueError(f"{path} holds {values.size} positions, the profile has {length}: use --length {values.size}")
    if not (np.isfinite(values).all() and (values >= 0).all() and values.sum() > 0):
        raise ValueError(f"{path}: an influence is finite and ≥ 0, with a positive sum")
    return values


def _last_column(path: pathlib.Path) -> Float[np.ndarray, " n"]:
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip() and line[0] != "#"]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read ({error}): give a CSV file with one influence per line") from error
    cells = [line.split(",")[-1].strip() for line in lines]
    if cells and not _is_number(cells[0]):
        cells = cells[1:]
    for number, cell in enumerate(cells):
        if not _is_number(cell):
            raise ValueError(f"{path}: value {number} is {cell!r}, not a number: give one influence per line")
    return np.asarray([float(cell) for cell in cells])


def _array(path: pathlib.Path, key: str) -> Float[np.ndarray, "*shape"]:
    """One array of an .npz file."""
    try:
        arrays = dict(np.load(path, allow_pickle=False))
        if key not in arrays:
            raise ValueError(f"no array {key!r} among {', '.join(sorted(arrays)[:8])}")
        return np.asarray(arrays[key], float)
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read ({error}): give an .npz with the array {key!r}") from error


def _read(path: pathlib.Path) -> dict:
    if path.suffix.lower() not in (".toml", ".json"):
        raise ValueError(f"{path}: architectures are read from .toml or .json files")
    try:
        text = path.read_text(encoding="utf-8")
        spec = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not isinstance(spec, dict):
        raise ValueError(f"{path} holds a {type(spec).__name__}: give a table of keys at the top")
    return spec


def _build(spec: dict, folder: pathlib.Path) -> Architecture:
    base = None
    if "preset" in spec:
        base = preset(spec["preset"], **{key: spec[key] for key in _PRESET[1:] if key in spec})
    elif "content" in spec or "dataset" in spec:
        raise ValueError("content and dataset belong to a preset: add preset, or give diagonal")
    if base is None and "mixing" not in spec:
        raise ValueError("mixing is missing: give a list, or {depth, value}, or a preset")
    slopes, bias = _position(spec, base)
    diagonal = 0.0 if base is None else base.content.diagonal
    if "diagonal" in spec:
        diagonal = _diagonal(spec["diagonal"], folder)
    return Architecture(
        _mixing(spec["mixing"]) if "mixing" in spec else base.mixing,
        slopes,
        diagonal=diagonal,
        bias=bias,
        **{key: spec[key] for key in _PLAIN if key in spec},
    )


def _mixing(value: object):
    if not isinstance(value, dict):
        return _numbers("mixing", value)
    if "value" in value:
        return constant_mixing(value["depth"], value["value"])
    return power_mixing(value["depth"], value["scale"], value["exponent"])


def _position(spec: dict, base: Architecture | None):
    given = [key for key in ("slopes", "heads", "bias") if key in spec]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} are both given: a position bias comes from one of slopes, heads, bias")
    if "slopes" in spec:
        return _numbers("slopes", spec["slopes"]), None
    if "heads" in spec:
        return alibi_slopes(spec["heads"], spec.get("convention", "checkpoint"), spec.get("bias_max", 8.0)), None
    if "bias" in spec:
        return None, _bias(spec["bias"])
    return (None if base is None else base.bias.slopes), None


def _bias(value: object) -> AbstractBias:
    if isinstance(value, str):
        value = {"kind": value}
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "rotary":
        return RotaryDecay(float(value.get("base", 10000.0)), value.get("dim", 128))
    if kind == "t5":
        return T5Buckets(_numbers("bias table", value["table"]), value.get("max_distance", 128))
    raise ValueError(f"bias = {value!r}: kind must be 'rotary' or 't5'; ALiBi is given by slopes or heads")


def _diagonal(value: object, folder: pathlib.Path):
    if not isinstance(value, dict):
        return _numbers("diagonal", value)
    return _array(folder / value["file"], value["key"]) * value.get("scale", 1.0)


def _numbers(name: str, value: object) -> list | float:
    try:
        array = np.asarray(value, dtype=float)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} = {value!r} must hold numbers only, rows of equal length") from error
    return array.tolist()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
