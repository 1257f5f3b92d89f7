"""What this machine lends to this process."""

import os


def cores() -> int:
    """Cores that this process may use, fewer than the machine has in containers and under `taskset`."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
