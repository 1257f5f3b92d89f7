"""fn traced once and compiled once, as one program that takes many points: a loop of counted length or a batch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from .._check import describe
from ..trajectory import Trajectory
from .grid import Grid, traced_dtype

Batch = str  # "auto", "loop" or "vmap"
_UNTRACEABLE = (
    jax.errors.ConcretizationTypeError,  # its kinds: a bool, an int or a shape that depends on a traced value
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


@dataclass(frozen=True)
class Traced:
    """fn for one point as a closed program without Python: `call(*values)` in the grid's order of axes."""

    call: Callable
    outputs: dict[str, jax.ShapeDtypeStruct]

    @property
    def bytes_per_point(self) -> int:
        return sum(s.size * s.dtype.itemsize for s in self.outputs.values())


def trace(fn: Callable, grid: Grid) -> Traced:
    """Traces fn once, with one abstract number for each axis.

    The numbers are weakly typed, as Python's are, so that a point of the sweep computes in the dtype of its solo run.
    """
    specs = [jax.ShapeDtypeStruct((), traced_dtype(v), weak_type=True) for v in grid.axes.values()]

    def positional(*values):
        return flatten_outputs(fn(**dict(zip(grid.axes, values, strict=True))))

    try:
        traced = jax.jit(positional).trace(*specs)
    except _UNTRACEABLE as error:
        remedy = "use jnp.where or lax.cond for branches, and shapes that do not depend on a parameter"
        raise ValueError(f"fn cannot be traced over the axes {list(grid.axes)}: {remedy}") from error
    if not traced.out_info:
        raise ValueError("fn returns no output: return a dict of arrays, such as {'order': traj.order}")
    if clash := set(traced.out_info) & ({*grid.axes, *grid.dims}):
        raise ValueError(f"output {min(clash)!r} of fn has the name of an axis of the grid: rename one of them")
    run = jaxpr_as_fun(traced.jaxpr)
    names = sorted(traced.out_info)  # the order in which JAX flattens a dict
    return Traced(lambda *values: dict(zip(names, run(*values), strict=True)), dict(traced.out_info))


def flatten_outputs(result: object) -> dict[str, jax.Array]:
    """What fn returned as one flat dict of arrays: nested names join by `_`, the statistics of a flow keep their own."""
    if isinstance(result, Trajectory):
        names = ("order", "energy", "x", "t", "ok", "status", "stats")
        result = {name: getattr(result, name) for name in names}
    if not isinstance(result, Mapping):
        raise ValueError(f"fn returned {describe(result)}: return a dict of arrays, such as {{'order': traj.order}}")
    flat: dict[str, jax.Array] = {}
    for key, value in result.items():
        if not isinstance(key, str) or not key or "/" in key:
            raise ValueError(f"output name {key!r} of fn: names are non-empty strings without '/'")
        if isinstance(value, Mapping):
            prefix = "" if key in ("stats", "steps") else f"{key}_"
            flat |= {prefix + inner: leaf for inner, leaf in flatten_outputs(value).items()}
        elif value is not None and not (
            isinstance(value, str) and key == "method"
        ):  # what a flow did not save, its method
            flat[key] = _array(key, value)
    return flat


def _array(key: str, value: object) -> jax.Array:
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError) as error:
        remedy = "pad what is ragged to one shape and leave out what is no number"
        raise ValueError(f"output {key!r} of fn is no array ({type(value).__name__}): {remedy}") from error
    if array.dtype.kind not in "biufcV" or jnp.issubdtype(array.dtype, jax.dtypes.extended):
        raise ValueError(f"output {key!r} of fn has dtype {array.dtype}: return numbers (jax.random.key_data of a key)")
    return array


@dataclass(frozen=True)
class Program:
    """A compiled program for up to `capacity` points: `prepare` on the calling thread, `run` on any."""

    compiled: Callable
    capacity: int
    axes: tuple[str, ...]
    sharding: jax.sharding.Sharding
    counted: bool  # the loop stops after the points it was given; a batch computes its padding too

    def prepare(self, parameters: Mapping[str, np.ndarray]) -> tuple:
        """Pads (k,) parameters by their last point and puts them on the devices.

        Here and not in `run`, because JAX's precision context is that of the thread.
        """
        count = len(parameters[self.axes[0]])
        padded = [np.pad(parameters[name], (0, self.capacity - count), mode="edge") for name in self.axes]
        arrays = jax.device_put(padded, self.sharding)
        return (*arrays, jax.device_put(np.int32(count), self.sharding)) if self.counted else tuple(arrays)

    def run(self, arguments: tuple, count: int) -> dict[str, np.ndarray]:
        return {name: np.asarray(value)[:count] for name, value in self.compiled(*arguments).items()}


def build(traced: Traced, grid: Grid, capacity: int, batch: Batch, devices: Sequence[jax.Device]) -> Program:
    """Compiles the one program of a sweep.

    On one device, "loop" is a `while` over the number of points it is given, so that a short unit wastes nothing, and
    "vmap" a batch. On several, each takes an equal share of the points under `shard_map`, so that no device waits for
    another's adaptive steps before the end of the batch.
    """
    capacity = -(-capacity // len(devices)) * len(devices)
    dtypes = [traced_dtype(v) for v in grid.axes.values()]
    structs = [jax.ShapeDtypeStruct((capacity,), d) for d in dtypes]
    counted = batch == "loop" and len(devices) == 1
    if counted:
        function = _counted_loop(traced, capacity)
        structs.append(jax.ShapeDtypeStruct((), np.int32))
    elif batch == "loop":
        function = lambda *values: jax.lax.map(lambda point: traced.call(*point), values)  # noqa: E731
    else:
        function = jax.vmap(traced.call)
    sharding: jax.sharding.Sharding = SingleDeviceSharding(devices[0])
    if len(devices) > 1:
        mesh = Mesh(np.asarray(devices), ("point",), axis_types=(AxisType.Auto,))
        spec = PartitionSpec("point")
        sharding = NamedSharding(mesh, spec)
        # check_vma fails inside a solver's loop, whose carry begins unvarying
        function = jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    lowered = jax.jit(function, in_shardings=sharding).trace(*structs).lower()
    return Program(lowered.compile(), capacity, tuple(grid.axes), sharding, counted)


def _counted_loop(traced: Traced, capacity: int) -> Callable:
    def function(*arguments):
        *values, count = arguments
        empty = {k: jnp.zeros((capacity, *s.shape), s.dtype) for k, s in traced.outputs.items()}

        def body(i, results):
            point = traced.call(*(v[i] for v in values))
            return {k: r.at[i].set(point[k]) for k, r in results.items()}

        return jax.lax.fori_loop(0, count, body, empty)

    return function


def choose_devices(devices: Sequence[jax.Device] | None) -> list[jax.Device]:
    """The devices of a sweep: those given, all of them this process's own, or JAX's default one."""
    if devices is None:
        return list(jnp.zeros(()).devices())
    chosen = list(devices)
    if not chosen:
        raise ValueError("devices is empty: leave it out for the default device, or give jax.local_devices()")
    for device in chosen:
        if device.process_index != jax.process_index():
            remedy = "give jax.local_devices() and let each process sweep its own part of the grid into its own store"
            raise ValueError(f"devices holds {device}, which belongs to process {device.process_index}: {remedy}")
    return chosen


def choose_batch(batch: Batch, devices: Sequence[jax.Device]) -> str:
    """ "loop" on CPUs, where the stragglers of an adaptive solver make a batch slower than one point after another."""
    if batch not in ("auto", "loop", "vmap"):
        raise ValueError(f"batch={batch!r}: one of 'auto', 'loop', 'vmap'")
    if batch == "auto":
        return "loop" if devices[0].platform == "cpu" else "vmap"
    return batch
