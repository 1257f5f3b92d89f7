"""What the experiments on maximisers share: kernels, the symmetry of a state, tables and figures."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import meanfield as mf


def cosine(beta: float, offset: float = 0.0, frequency: float = 1.0) -> mf.Toeplitz:
    """g = offset + cos(frequency τ), φ = e^{β(t−1)}/β (shift 1, so that energies of all β compare)."""
    return mf.Toeplitz(mf.Cosine(frequency, offset), mf.ExpDot(beta, 1.0))


def great_circle(n: int, dim: int, winding: int = 1) -> jnp.ndarray:
    """x = (cos kξ, sin kξ, 0, …) on n uniform labels."""
    angle = 2 * np.pi * winding * np.arange(n) / n
    return jnp.asarray(np.concatenate([np.cos(angle)[:, None], np.sin(angle)[:, None], np.zeros((n, dim - 2))], axis=1))


@jax.jit
def curvature(beta: float, x: jnp.ndarray) -> jnp.ndarray:
    """Largest eigenvalue of the Riemannian Hessian of `cosine(beta)` at x, uniform labels on the circle."""
    landscape = mf.ascent.bind(cosine(beta), mf.Marginal.circle(x.shape[0]), None, x.shape[1], x.dtype)
    return mf.ascent.largest_curvature(landscape, x)[0]


def symmetry(x: np.ndarray, tolerance: float = 1e-3) -> int:
    """How many cyclic shifts of the labels leave the state unchanged up to an orthogonal map (n: none breaks it).

    A state has n/symmetry different translates: its multiplicity.
    """
    gram = np.asarray(x) @ np.asarray(x).T
    return sum(np.abs(np.roll(gram, (s, s), (0, 1)) - gram).max() < tolerance for s in range(len(gram)))


def thickness(x: np.ndarray) -> float:
    """Smallest eigenvalue of mean x xᵀ beyond the plane: 0 for states in a plane through the origin."""
    values = np.linalg.eigvalsh(np.asarray(x).T @ np.asarray(x) / len(x))
    return float(values[-3]) if len(values) > 2 else 0.0


def atoms(x: np.ndarray, tolerance: float = 0.05) -> int:
    """Number of clusters of tokens closer than `tolerance` radians."""
    return int(mf.observables.count_clusters(jnp.asarray(x), jnp.asarray([tolerance]))[0])


def write(out: pathlib.Path, name: str, variables: dict, coordinates: dict) -> xr.Dataset:
    """Saves a table of numbers as `out`/`name`.zarr."""
    # names as objects: strings of variable length are part of the Zarr format, those of fixed length are not
    named = {k: np.asarray(v, object) if isinstance(v[0], str) else v for k, v in coordinates.items()}
    data = xr.Dataset(variables, named)
    mf.files.write_zarr(out / f"{name}.zarr", data)
    return data
