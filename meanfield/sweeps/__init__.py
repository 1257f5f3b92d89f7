"""Parameter sweeps: one compiled program over a grid, failures visible, results labelled, long runs resumable."""

from .status import FLAGS as FLAGS
from .sweep import sweep as sweep
