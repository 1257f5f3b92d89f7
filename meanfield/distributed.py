"""Several processes as one JAX program: started before any device is asked for, rank 0 writes, an absent peer is an error."""

import dataclasses
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ._types import PyTree

COMMANDS = ("flow",)  # what shares one run out over processes
HEARTBEAT = 20  # seconds of silence after which a peer counts as dead
LAUNCHERS = {"SLURM_NTASKS": "SLURM_PROCID", "OMPI_COMM_WORLD_SIZE": "OMPI_COMM_WORLD_RANK"}


@dataclass(frozen=True)
class Cluster:
    """Who takes part: `coordinator` (host:port of rank 0), number of `processes`, own `rank`; None where a launcher knows."""

    coordinator: str | None = None
    processes: int | None = None
    rank: int | None = None
    timeout: int = 60


def requested(arguments: Sequence[str], command: str) -> tuple[list[str], Cluster | None]:
    """`arguments` without `--distributed` and its options, and the cluster they ask for (None: a single process).

    `--coordinator HOST:PORT --processes N --rank K` where no launcher (Slurm, Open MPI) says so; `--timeout SECONDS`.
    Raises `ValueError` for an incomplete description, and for commands that do not share out one run.
    """
    rest, found = list(arguments), Cluster()
    if "--distributed" not in rest:
        return rest, None
    rest.remove("--distributed")
    for field in dataclasses.fields(Cluster):
        if (name := f"--{field.name}") in rest:
            at = rest.index(name)
            found = dataclasses.replace(found, **{field.name: _value(field.name, rest[at : at + 2])})
            del rest[at : at + 2]
    if command not in COMMANDS:
        raise ValueError(
            f"--distributed shares out one {' or '.join(COMMANDS)}: start {command!r} once per host instead"
        )
    missing = [name for name in ("coordinator", "processes", "rank") if getattr(found, name) is None]
    if missing and not any(size in os.environ and rank in os.environ for size, rank in LAUNCHERS.items()):
        raise ValueError(
            f"--distributed found no Slurm or Open MPI: pass --{' and --'.join(missing)} (host:port of rank 0, how many "
            "processes, and which of them this is)"
        )
    return rest, found


def start(cluster: Cluster) -> int:
    """Joins the cluster and returns this process's rank. Nothing may have asked JAX for a device before.

    Raises `RuntimeError` where a peer has not come within `timeout` seconds.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            cluster.coordinator,
            cluster.processes,
            cluster.rank,
            initialization_timeout=cluster.timeout,
            heartbeat_timeout_seconds=HEARTBEAT,
            shutdown_timeout_seconds=HEARTBEAT,
        )
        jax.devices()  # exchanges what every process has: an absent peer is noticed here at the latest
    except RuntimeError as error:
        if "must be called before" in str(error):
            raise
        raise RuntimeError(
            f"not every process of {cluster.coordinator or 'the launcher'} came within {cluster.timeout} s: start all of "
            f"{cluster.processes or 'them'} with the same coordinator, or raise --timeout ({_first_line(error)})"
        ) from error
    return jax.process_index()


def enter(arguments: Sequence[str], command: str) -> list[str]:
    """The arguments a command runs with: started where they ask for it; ranks above 0 write to a temporary folder only."""
    rest, cluster = requested(arguments, command)
    if cluster is not None and start(cluster) > 0:
        rest += ["--out", tempfile.mkdtemp(prefix="meanfield-rank-")]
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (for the rest of the process)
    return rest


def devices() -> list[jax.Device] | None:
    """All devices of all processes; None in a program of one process."""
    return jax.devices() if jax.process_count() > 1 else None


def local(tree: PyTree) -> PyTree:
    """`tree` with arrays that lie on devices of several processes as NumPy arrays, for what one process does alone."""

    def one(leaf: Any) -> Any:
        return np.asarray(leaf) if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable else leaf

    return jax.tree.map(one, tree)


def _value(name: str, words: list[str]) -> str | int:
    if len(words) < 2:
        raise ValueError(f"--{name} needs a value")
    if name == "coordinator":
        return words[1]
    if not words[1].isdecimal():
        raise ValueError(f"--{name} {words[1]}: pass a whole number")
    return int(words[1])


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
