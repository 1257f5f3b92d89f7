"""What is known before tracing is checked here; every message names the argument, its value and the remedy."""

import jax
import jax.numpy as jnp
import numpy as np


def is_concrete(*trees) -> bool:
    """Whether every array of `trees` has a value now (none is being traced)."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


def is_tracing() -> bool:
    """Whether operations are being traced now, even those on concrete values (inside `jax.jit`)."""
    return not is_concrete(jnp.zeros(()))


def describe(value: object) -> str:
    """What `value` is, for a message: "is {describe(value)}"."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, (jax.Array, np.ndarray)):
        return f"an array of shape {value.shape}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return f"of type {type(value).__name__}"


def as_array(x, name: str):
    """`x` as a JAX array; float64 input while x64 is off is refused instead of silently rounded.

    A list of Python numbers has no dtype of its own and takes JAX's default one.
    """
    if isinstance(x, jax.Array):
        return x
    if not isinstance(x, (np.ndarray, np.generic)):
        x = np.asarray(x)
        x = x.astype(jnp.result_type(float)) if x.dtype == np.float64 else x
    if x.dtype == np.float64 and not jax.config.jax_enable_x64:
        raise ValueError(
            f"{name} is float64 but x64 is off, so it would be rounded to float32: call "
            f'jax.config.update("jax_enable_x64", True) first, or pass {name}.astype(numpy.float32)'
        )
    if not np.issubdtype(x.dtype, np.number):
        raise ValueError(f"{name} has dtype {x.dtype}: pass an array of real numbers")
    return jnp.asarray(x)


def float_dtype(dtype, name: str = "dtype"):
    """The floating dtype asked for (default: JAX's default float); float64 while x64 is off is refused."""
    if dtype is None:
        return jnp.result_type(float)
    dtype = np.dtype(dtype)
    if dtype == np.float64 and not jax.config.jax_enable_x64:
        raise ValueError(
            f'{name}=float64 was asked but x64 is off: call jax.config.update("jax_enable_x64", True) first, '
            f"or use {name}=jax.numpy.float32"
        )
    return dtype


def tokens(x, name: str = "x", unit: bool = False):
    """Tokens (n, d) with d ≥ 2: a floating array without NaN and zero rows, of unit rows where `unit`."""
    x = as_array(x, name)
    if x.ndim != 2 or x.shape[1] < 2 or x.shape[0] < 1:
        raise ValueError(f"{name} has shape {x.shape}: tokens are the rows of an (n, d) array with n ≥ 1 and d ≥ 2")
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(f"{name} has dtype {x.dtype}: pass floating tokens, e.g. {name}.astype(float)")
    if not is_concrete(x):
        return x
    values = np.asarray(x)
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise ValueError(f"{name} has NaN or infinite entries in rows {rows(bad)}: remove or replace these tokens")
    norms = np.linalg.norm(values, axis=1)
    if (norms == 0).any():
        raise ValueError(f"{name} has zero rows {rows(norms == 0)}: every token must be a non-zero vector")
    off = np.abs(norms - 1) > 16 * np.sqrt(np.finfo(values.dtype).eps)
    if unit and off.any():
        worst = int(np.argmax(np.abs(norms - 1)))
        raise ValueError(
            f"{name} has rows that are not unit vectors (row {worst} has norm {norms[worst]:.6g}): "
            f"pass mf.sphere.normalize({name})"
        )
    return x


def marginal(rho) -> None:
    """A `Marginal`, by what it has: this file knows no types of the library."""
    if not isinstance(getattr(rho, "n", None), int):
        raise ValueError(f"rho is {describe(rho)}: wrap the labels, rho = mf.Marginal(labels)")


def random_key(key) -> None:
    """A key of `jax.random`, of either kind."""
    if not isinstance(key, (jax.Array, np.ndarray)):
        raise ValueError(f"key is {describe(key)}: pass a random key, such as jax.random.key(0)")


def same_length(x, rho, name: str = "x") -> None:
    """One label per token."""
    marginal(rho)
    if x.shape[0] != rho.n:
        raise ValueError(
            f"{name} has {x.shape[0]} tokens but rho has {rho.n} labels: give every token one label "
            f"(no labels: mf.Marginal(jax.numpy.zeros({x.shape[0]})))"
        )


def simplex(weights, name: str = "weights") -> None:
    """Non-negative weights that sum to 1 (to the rounding of their dtype)."""
    values = np.asarray(weights, np.float64)
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"{name} must be finite and non-negative, the least is {values.min():.6g}: pass weights ≥ 0")
    tolerance = 32 * np.finfo(np.asarray(weights).dtype).eps * max(1.0, np.sqrt(len(values)))
    if abs(values.sum() - 1) > max(tolerance, 1e-6):
        raise ValueError(f"{name} sum to {values.sum():.9g}, not to 1: pass {name} / {name}.sum()")


def times(ts, start=None):
    """Increasing finite save times (T,)."""
    if ts.ndim != 1 or ts.shape[0] < 1:
        raise ValueError(
            f"ts has shape {ts.shape}: pass a one-dimensional array of times, e.g. jax.numpy.linspace(0, 20, 50)"
        )
    if not is_concrete(ts):
        return
    values = np.asarray(ts, np.float64)
    if not np.isfinite(values).all() or (np.diff(values) <= 0).any():
        raise ValueError(f"ts must be finite and strictly increasing, got {values}: sort it and remove repeated times")
    if start is not None and values[0] < start - 1e-12 * max(1.0, abs(start)):
        raise ValueError(
            f"ts starts at {values[0]:g}, before the state's time {start:g}: begin ts at {start:g} or later"
        )


def tolerance(value, dtype, name: str) -> None:
    """A relative tolerance that the dtype can resolve."""
    if not is_concrete(value):
        return
    eps = float(jnp.finfo(dtype).eps)
    if not (np.isfinite(float(value)) and float(value) >= 4 * eps):
        remedy = "use float64 (x64 on, float64 x0)" if np.dtype(dtype) == np.float32 else "raise it"
        raise ValueError(f"{name}={float(value):g} is below what {np.dtype(dtype)} resolves ({4 * eps:.1e}): {remedy}")


def rows(mask) -> str:
    """The first indices where `mask` holds, for a message."""
    mask = np.asarray(mask).reshape(-1)
    index = np.flatnonzero(mask)
    return str(index[:8].tolist())[1:-1] + (f", … ({len(index)} in all)" if len(index) > 8 else "")
