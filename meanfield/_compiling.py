"""Many short processes, which compile longer than they compute: XLA flags, and one cache of compiled programs."""

import importlib.metadata
import os


def quick_to_compile(cache: str | os.PathLike) -> dict[str, str]:
    """Environment variables under which programs for the CPU compile in half the time, run somewhat slower, and are shared through the folder
    `cache`. The flags are given only to versions of JAX that were tried: XLA ends a process at a flag that it does not know.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if importlib.metadata.version("jax").split(".")[:2] == ["0", "10"]:
        flags = f"{flags} --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false".strip()
    return {
        "XLA_FLAGS": flags,
        "JAX_COMPILATION_CACHE_DIR": os.fspath(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
