"""Benchmarks: `python -m benchmarks [name …] [--out DIR]`; each module has `run(out: pathlib.Path)` and writes its tables."""

from .measure import Timing as Timing
from .measure import machine as machine
from .measure import table as table
from .measure import timed as timed
