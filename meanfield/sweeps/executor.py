"""Runs the points of a sweep box by box on a few threads and hands on each box as soon as its last point is done."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import jax
import numpy as np

from .grid import Boxes, Grid
from .program import Program

_CALL_SECONDS = 0.05  # cheap points are grouped until a call takes this long, against the cost of dispatch


@dataclass
class _Box:
    """A box in work: its points and what has come back of them."""

    number: int
    index: np.ndarray
    parts: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)
    done: int = 0

    def add(self, start: int, results: dict[str, np.ndarray], count: int) -> None:
        self.parts[start] = results
        self.done += count

    def outputs(self) -> dict[str, np.ndarray]:
        parts = [self.parts[start] for start in sorted(self.parts)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@dataclass
class _Pace:
    """How many points to give to one call, from the mean time of those done."""

    program: Program
    seconds: float = 0.0
    points: int = 0

    def count(self) -> int:
        if not self.program.counted:
            return self.program.capacity
        if not self.points:
            return 1
        return int(np.clip(_CALL_SECONDS * self.points / max(self.seconds, 1e-9), 1, self.program.capacity))


def execute(
    program: Program, grid: Grid, boxes: Boxes, numbers: Sequence[int], workers: int, advance: Callable[[int], object]
) -> Generator[tuple[int, dict[str, np.ndarray]], None, None]:
    """Yields (number, outputs) of the boxes asked for, in the order in which they finish.

    At most `boxes.points + workers - 1` points are taken up and not yet handed on, so that a killed run loses at most
    about one box. `advance(k)` is told of every k finished points. While the caller writes a box the threads go on.
    """
    pace, taken_up = _Pace(program), 0
    running: dict[Future, tuple[_Box, int, int]] = {}
    finished: list[_Box] = []
    pool = ThreadPoolExecutor(workers, thread_name_prefix="meanfield-sweep")
    units = _units(boxes, numbers, pace)
    try:
        unit = next(units, None)
        while unit or running or finished:
            while unit and len(running) < workers and (not taken_up or taken_up + unit[2] < boxes.points + workers):
                box, start, count = unit
                arguments = program.prepare(grid.parameters(box.index[start : start + count]))
                running[pool.submit(_timed, program, arguments, count)] = unit
                taken_up += count
                unit = next(units, None)
            if finished:
                box = finished.pop(0)
                yield box.number, box.outputs()
                taken_up -= box.done
                continue
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                box, start, count = running.pop(future)
                results, seconds = _result(future, grid, box.index[start : start + count])
                pace.seconds, pace.points = pace.seconds + seconds, pace.points + count
                box.add(start, results, count)
                advance(count)
                if box.done == len(box.index):
                    finished.append(box)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _units(boxes: Boxes, numbers: Sequence[int], pace: _Pace) -> Iterator[tuple[_Box, int, int]]:
    for number in numbers:
        box, start = _Box(number, boxes.index(number)), 0
        while start < len(box.index):
            count = min(pace.count(), len(box.index) - start)
            yield box, start, count
            start += count


def _timed(program: Program, arguments: tuple, count: int) -> tuple[dict[str, np.ndarray], float]:
    begin = time.perf_counter()
    return program.run(arguments, count), time.perf_counter() - begin


def _result(future: Future, grid: Grid, index: np.ndarray):
    try:
        return future.result()
    except jax.errors.JaxRuntimeError as error:
        points = {name: values.tolist() for name, values in grid.parameters(index).items()}
        error.add_note(f"raised in the sweep at {points}; mf.flow(…, throw=False) keeps such a point as a failed one")
        raise
