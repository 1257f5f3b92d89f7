"""The unit sphere S^{d-1} ⊂ R^d: rows of an array (…, d). Every function is smooth wherever its gradient exists."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from . import _check
from ._types import Array, DType, Float, Points, PRNGKey


def safe_norm(v: Points) -> Float[Array, "*batch 1"]:
    """‖v‖ with gradient 0 at v = 0 (double where).

    Examples:
        >>> print(jax.grad(lambda v: mf.sphere.safe_norm(v)[0])(jnp.zeros(2)))
        [0. 0.]
    """
    square = jnp.sum(v * v, axis=-1, keepdims=True)
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)


def sample(key: PRNGKey, shape: tuple[int, ...], dtype: DType | None = None) -> Float[Array, "..."]:
    """Independent uniform points on S^{d-1}, `shape` = (…, d) with d ≥ 2; `dtype` defaults to JAX's default float.

    Examples:
        >>> mf.sphere.sample(jax.random.key(0), (5, 3)).shape
        (5, 3)
    """
    _check.random_key(key)
    if not isinstance(shape, (tuple, list)):
        raise ValueError(f"shape={shape!r}: pass a tuple, (n, d) for n tokens in R^d")
    if len(shape) < 1 or shape[-1] < 2:
        raise ValueError(f"shape={shape}: the last entry is the dimension d of R^d and must be at least 2")
    return _normalize(jax.random.normal(key, shape, _check.float_dtype(dtype)))


def normalize(x: Points) -> Float[Array, "*batch d"]:
    """x/‖x‖ row by row. A zero row is refused by index where x is concrete, and is NaN where it is traced.

    Scaled by the largest entry first, so that neither huge nor tiny rows overflow.

    Examples:
        >>> print(mf.sphere.normalize(np.float32([[3, 4]])))
        [[0.6 0.8]]
    """
    x = _check.as_array(x, "x")
    if _check.is_concrete(x):
        zero = ~jnp.any(x != 0, axis=-1)
        if bool(zero.any()):
            raise ValueError(f"x has zero rows {_check.rows(zero)}: a zero vector has no direction")
    return _normalize(x)


@jax.jit
def _normalize(x):
    scale = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis=-1, keepdims=True))
    x = x / scale
    return x / jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))


@jax.jit
def project(x: Points, v: Points) -> Float[Array, "*batch d"]:
    """P_x v = v − ⟨x, v⟩x, the projection to the tangent space at unit x.

    Examples:
        >>> x, v = jnp.asarray([1.0, 0.0]), jnp.asarray([5.0, 2.0])
        >>> print(mf.sphere.project(x, v))
        [0. 2.]
    """
    x, v = jnp.asarray(x), jnp.asarray(v)
    return v - jnp.sum(x * v, axis=-1, keepdims=True) * x


@jax.jit
def exp(x: Points, v: Points) -> Float[Array, "*batch d"]:
    """exp_x(v) = cos‖v‖ x + (sin‖v‖/‖v‖) v for tangent v at unit x: the point reached by the geodesic at time 1.

    Examples:
        >>> print(np.round(mf.sphere.exp(jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, np.pi / 2])), 3))
        [-0.  1.]
    """
    x, v = jnp.asarray(x), jnp.asarray(v)
    r = safe_norm(v)
    small = r * r < jnp.finfo(r.dtype).eps
    ratio = jnp.where(small, 1 - r * r / 6, jnp.sin(r) / jnp.where(small, 1, r))
    return normalize(jnp.cos(r) * x + ratio * v)


def log(x: Points, y: Points) -> Float[Array, "*batch d"]:
    """log_x(y): the tangent vector at x of length distance(x, y) towards y. Antipodal points are an error.

    Examples:
        >>> print(np.round(mf.sphere.log(jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])), 3))
        [0.        1.5710001]
    """
    v, antipodal = _log(x, y)
    message = "log(x, y) of antipodal points is not unique: move y off −x"
    if not _check.is_concrete(antipodal):
        return eqx.error_if(v, antipodal, message)
    if np.asarray(antipodal).any():
        raise ValueError(message)
    return v


@jax.jit
def _log(x, y):
    v = project(x, y - x)
    s = safe_norm(v)
    c = jnp.sum(x * y, axis=-1, keepdims=True)
    antipodal = (c < 0) & (s < 8 * jnp.finfo(s.dtype).eps)
    small = s * s < jnp.finfo(s.dtype).eps
    ratio = jnp.where(small, 1 + s * s / 6, jnp.arctan2(s, c) / jnp.where(small, 1, s))
    return ratio * v, antipodal


@jax.jit
def distance(x: Points, y: Points) -> Float[Array, "*batch"]:
    """Geodesic distance 2·atan2(‖x − y‖, ‖x + y‖) of unit vectors, accurate at 0 and π, gradient 0 at coincidence.

    Examples:
        >>> print(f"{mf.sphere.distance(jnp.asarray([1.0, 0.0]), jnp.asarray([-1.0, 0.0])):.4f}")
        3.1416
    """
    x, y = jnp.asarray(x), jnp.asarray(y)
    return 2 * jnp.arctan2(safe_norm(x - y), safe_norm(x + y))[..., 0]
