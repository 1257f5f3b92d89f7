"""Sharing tokens out over devices: each sums the pairs of its own targets; sources, and results, are on all of them."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .._types import Array, Devices, PyTree

AXIS = "tokens"


class Plan(eqx.Module):
    """A method by name, the mesh its sums run on, and whether only reverse mode is asked of them."""

    name: str = eqx.field(static=True)
    mesh: Mesh | None = eqx.field(static=True, default=None)
    reverse: bool = eqx.field(static=True, default=False)


def plan(method: str | Plan, devices: Devices = None) -> str | Plan:
    """`method` on `devices`: a list of devices or a one-dimensional mesh; None leaves placement to JAX.

    Raises `ValueError` for an empty or repeated list, and for a mesh that is not one-dimensional with automatic axes.
    """
    if devices is None or isinstance(method, Plan):
        return method
    if isinstance(devices, Mesh):
        if len(devices.axis_names) != 1 or any(kind != jax.sharding.AxisType.Auto for kind in devices.axis_types):
            raise ValueError(
                f"devices={devices}: pass a mesh with one automatic axis, e.g. jax.make_mesh((4,), ('tokens',), "
                "axis_types=(jax.sharding.AxisType.Auto,)), or a list of devices"
            )
        devices = devices.devices.ravel()
    devices = list(devices)
    if not devices or len(set(devices)) != len(devices):
        raise ValueError(f"devices={devices}: pass at least one device, each once")
    return Plan(method, Mesh(np.array(devices), (AXIS,), axis_types=(jax.sharding.AxisType.Auto,)))


def reverse_only(method: str | Plan) -> Plan:
    """`method` with sums that may use derivative rules without forward mode."""
    return Plan(method, reverse=True) if isinstance(method, str) else Plan(method.name, method.mesh, True)


def place(tree: PyTree, method: str | Plan) -> PyTree:
    """Every array of `tree` on all devices of the plan, where it names some."""
    if not isinstance(method, Plan) or method.mesh is None:
        return tree
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, NamedSharding(method.mesh, PartitionSpec())), rest)


def shared_out(fn: Callable, mesh: Mesh, shared: PyTree[Array], whole: PyTree[Array] = ()) -> PyTree[Array]:
    """fn(shared, whole) with the leading axis of `shared` split over the mesh; the result is on all devices.

    The leading axis need not divide: it is padded by copies of the last row, whose results are dropped.
    """
    n = jax.tree.leaves(shared)[0].shape[0]
    extra = -n % mesh.size
    split, everywhere = PartitionSpec(AXIS), PartitionSpec()
    run = jax.shard_map(fn, mesh=mesh, in_specs=(split, everywhere), out_specs=split, check_vma=False)
    out = run(jax.tree.map(lambda a: pad(a, extra), shared), whole)
    return pin(jax.tree.map(lambda a: a[:n], out), mesh)


def pin(tree: PyTree[Array], mesh: Mesh) -> PyTree[Array]:
    """On all devices of the mesh, whatever the compiler would prefer."""
    return jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, PartitionSpec()))


def pad(a: Array, extra: int, fill: float | None = None) -> Array:
    """`extra` more rows: copies of the last, or `fill`."""
    if not extra:
        return a
    rows = (extra, *a.shape[1:])
    more = jnp.broadcast_to(a[-1:], rows) if fill is None else jnp.full(rows, fill, a.dtype)
    return jnp.concatenate([a, more])
