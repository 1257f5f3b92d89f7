"""A fingerprint of a function's code, by which a resumed sweep notices that it was edited."""

import contextlib
import dataclasses
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterator

import jax
import numpy as np

_DEPTH = 8


def fingerprint(fn: Callable) -> str:
    """A digest of fn's bytecode, constants and closure, and of the functions of its own module that it calls.

    A callable dataclass counts with its fields.

    It does not see what other modules changed. The version of Python is part of it, as bytecode differs by version.
    """
    digest = hashlib.blake2b(digest_size=8)
    for piece in _pieces(fn, getattr(fn, "__module__", None), set(), _DEPTH):
        digest.update(piece.encode() + b"\0")
    return f"py{sys.version_info.major}.{sys.version_info.minor}-{digest.hexdigest()}"


def _pieces(value, module: str | None, seen: set[int], depth: int) -> Iterator[str]:
    if id(value) in seen or depth == 0:
        return
    if isinstance(value, functools.partial):
        for part in (value.func, *value.args, *value.keywords.values()):
            yield from _pieces(part, module, seen, depth - 1)
    elif isinstance(value, types.MethodType):
        yield from _pieces(value.__func__, module, seen, depth)
    elif isinstance(value, types.FunctionType):
        seen.add(id(value))
        yield from _code(value.__code__)
        used = [value.__globals__.get(name) for name in value.__code__.co_names]
        for part in (*_closure(value), *(value.__defaults__ or ()), *used):
            if getattr(part, "__module__", module) == module or not isinstance(part, types.FunctionType):
                yield from _pieces(part, module, seen, depth - 1)
    elif isinstance(value, (bool, int, float, complex, str, bytes)):
        yield repr(value)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _pieces(part, module, seen, depth - 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):  # an equinox.Module too
        for field in dataclasses.fields(value):
            yield from _pieces(getattr(value, field.name), module, seen, depth - 1)
        yield from _pieces(type(value).__dict__.get("__call__"), module, seen, depth - 1)
    elif isinstance(value, np.ndarray | np.generic | jax.Array) and not isinstance(value, jax.core.Tracer):
        value = np.asarray(value)
        yield f"{value.dtype}{value.shape}{np.ascontiguousarray(value).tobytes().hex()}"
    elif inner := getattr(value, "__wrapped__", None):  # jax.jit(f), functools.wraps
        yield from _pieces(inner, module, seen, depth - 1)


def _closure(fn: types.FunctionType) -> Iterator:
    for cell in fn.__closure__ or ():
        with contextlib.suppress(ValueError):  # a cell not filled yet
            yield cell.cell_contents


def _code(code: types.CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code(constant)
        else:
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)
