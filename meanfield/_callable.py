"""User callables as pytrees: their arrays are leaves, never frozen into the compiled program as static data."""

import sys
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._check import describe
from ._types import AnyArray, Array, Float, Real


def as_callable(fn: Callable) -> Callable:
    """`fn` as a callable pytree.

    A pytree with a `__call__` (an `equinox.Module`, a `jax.tree_util.Partial`, a flax `nnx` module) is kept as it is. A
    bound flax `linen` module is split into its definition and its variables, so that these stay differentiable leaves.
    A plain function has no leaves (arrays it closes over are constants).
    """
    if not callable(fn):
        raise ValueError(f"expected a callable, got {fn!r}: pass a function, an equinox.Module or a bound flax module")
    linen = sys.modules.get("flax.linen")
    if linen is not None and isinstance(fn, linen.Module):
        if fn.scope is None:
            raise ValueError(f"the flax module {type(fn).__name__} has no parameters: pass module.bind(variables)")
        module, variables = fn.unbind()
        return jax.tree_util.Partial(module.apply, variables)
    if jax.tree_util.all_leaves([fn]):
        return jax.tree_util.Partial(fn)
    return fn


def as_parameter(value: float | int | Real[AnyArray, "..."], name: str = "the parameter") -> Float[Array, "..."]:
    """A Python or NumPy number as a floating JAX array: a differentiable leaf that does not recompile when it changes.

    A number stays a value where a kernel is built under `jax.jit`: the length of expansions is chosen from it. Raises
    `ValueError` for what is no number.
    """
    if not isinstance(value, (jax.Array, np.ndarray, np.number, float, int, list, tuple)):
        raise ValueError(f"{name} is {describe(value)}: pass a number or an array of numbers")
    if isinstance(value, (jax.Array, np.ndarray)) and jnp.issubdtype(value.dtype, jnp.floating):
        return _now(lambda: jnp.asarray(value), value)
    return _now(lambda: jnp.asarray(value, dtype=jnp.result_type(float)), value)


def cast(tree, dtype):
    """`tree` with its floating arrays in `dtype`; integer and boolean arrays, and all else, unchanged."""

    def one(leaf):
        if isinstance(leaf, (jax.Array, np.ndarray)) and jnp.issubdtype(leaf.dtype, jnp.floating):
            return _now(lambda: jnp.asarray(leaf, dtype), leaf)
        return leaf

    return jax.tree.map(one, tree)


@eqx.filter_jit
def evaluate(fn: Callable, *args):
    """fn(*args) as one compiled program; arrays inside `fn` are its inputs, so that changing them does not recompile."""
    return fn(*args)


def _now(build: Callable[[], Array], value) -> Array:
    """`build()`, evaluated while tracing where `value` is not itself traced."""
    if isinstance(value, jax.core.Tracer):
        return build()
    with jax.ensure_compile_time_eval():
        return build()
