"""Boxes cover a grid once, whatever its shape and chunk."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.sweeps.grid import as_grid, cut, default_chunk


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=3), st.integers(1, 40))
def test_boxes_cover_every_point_once(shape, chunk):
    boxes = cut(tuple(shape), chunk)
    index = np.concatenate([boxes.index(i) for i in range(len(boxes))])
    assert sorted(index) == list(range(int(np.prod(shape)))) and boxes.points <= chunk


def test_boxes_are_as_equal_as_they_can_be():
    assert cut((10, 300), 64).edge == (1, 60) and cut((3, 2), 4).edge == (2, 2) and cut((5,), 4).edge == (3,)


def test_parameters_of_a_product_run_through_the_last_axis_first():
    grid = as_grid({"beta": [1.0, 2.0], "seed": [5, 6, 7]})
    values = grid.parameters(np.array([0, 2, 3]))
    assert values["beta"].tolist() == [1.0, 1.0, 2.0] and values["seed"].tolist() == [5, 7, 5]


@pytest.mark.parametrize(("size", "chunk"), [(6, 1), (400, 25), (1000, 63), (100_000, 391)])
def test_a_default_chunk_is_a_small_part_of_the_run(size, chunk):
    assert default_chunk(size, 100, False) == chunk
    assert default_chunk(size, 64 << 20, False) == 1
