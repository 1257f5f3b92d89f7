"""What a run leaves behind besides its results: run.json says how it was made, claims.json what it measured."""

import contextlib
import datetime
import importlib.metadata
import pathlib
import platform
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping

import jax

from .files import write_json

PACKAGES = (
    "meanfield",
    "jax",
    "jaxlib",
    "diffrax",
    "equinox",
    "optax",
    "numpy",
    "scipy",
    "xarray",
    "zarr",
    "matplotlib",
)


def environment() -> dict:
    """Versions, devices, default dtype and machine, as `run.json` keeps them."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "dtype": "float64" if jax.config.jax_enable_x64 else "float32",
        "devices": [f"{device.platform}:{device.id} {device.device_kind}" for device in jax.devices()],
        "machine": platform.platform(),
        "versions": versions,
    }


@contextlib.contextmanager
def recorded(out: pathlib.Path, command: str, arguments: Mapping, seed: int | None = None) -> Iterator[dict]:
    """Writes `out`/run.json when the run starts and again when it ends, with wall time and how it ended.

    Yields a dict; what is put into it is kept under "results". A run that is killed leaves status "running".
    """
    results: dict = {}
    record = {
        "command": command,
        "arguments": dict(arguments),
        "seed": seed,
        "status": "running",
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **environment(),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "run.json", record)
    start = time.perf_counter()
    status = "failed"
    try:
        yield results
        status = "finished"
    except BaseException as error:
        status = f"failed: {type(error).__name__}: {error}"
        record["traceback"] = traceback.format_exc()
        raise
    finally:
        record |= {"status": status, "wall_seconds": round(time.perf_counter() - start, 3), "results": results}
        write_json(out / "run.json", record)


def write_claims(out: pathlib.Path, claims: Iterable) -> pathlib.Path:
    """Writes `out`/claims.json: for every claim its text, measured value, relation, threshold and whether it holds."""
    rows = [
        {
            "claim": claim.claim,
            "value": float(claim.value),
            "relation": claim.relation,
            "threshold": float(claim.threshold),
            "holds": claim.holds,
        }
        for claim in claims
    ]
    return write_json(out / "claims.json", rows)


def report_claims(claims: Iterable) -> int:
    """Prints one line per claim; the exit code: 0 where all hold, else 1."""
    code = 0
    for claim in claims:
        mark = "ok  " if claim.holds else "FAIL"
        sys.stdout.write(f"{mark} {claim.claim}: {claim.value:.6g} {claim.relation} {claim.threshold:.6g}\n")
        code = code if claim.holds else 1
    return code
