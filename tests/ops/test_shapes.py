"""Shapes that are known before anything runs."""

import pytest
import tensorflow as tf

from embedra import _ops


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def tables(graph):  # noqa: ARG001 - ops go to the graph
    return [
        _ops.table(shared_name=str(dim), name=str(dim), dim=dim)
        for dim in (4, 8)
    ]


def hole(shape, dtype=tf.int64):
    return tf.compat.v1.placeholder(dtype, shape)


def shapes(tensors):
    return [
        None if t.shape.rank is None else t.shape.as_list() for t in tensors
    ]


def test_handles_are_scalars(tables):
    assert shapes(tables) == [[], []]


def test_lookup_appends_the_static_width(tables):
    keys = [hole([None, 3]), hole([5])]
    found = _ops.table_lookup(
        tables,
        tables,
        keys,
        [hole([0], tf.float32)] * 2,
        dims=[4, 8],
        dtype="float32",
        insert=True,
    )
    assert shapes(found.rows) == [[None, 3, 4], [5, 8]]
    assert shapes(found.positions) == shapes(found.found) == [[None, 3], [5]]
    assert shapes(found.bounds) == [[], []]


def test_lookup_of_keys_of_unknown_rank(tables):
    found = _ops.table_lookup(
        tables[:1],
        tables[:1],
        [hole(None)],
        [hole([0], tf.float32)],
        dims=[4],
        dtype="float32",
        insert=False,
    )
    assert shapes(found.rows) == [None]


def test_pooled_lookup_has_one_row_for_each_bag(tables):
    outputs = _ops.table_pooled_lookup(
        tables,
        tables,
        [hole([None]), hole([9])],
        [hole([None]), hole([4])],
        [hole([None], tf.float32)] * 2,
        [hole([0], tf.float32)] * 2,
        dims=[4, 8],
        dtype="float32",
        insert=True,
        combiner="mean",
    )
    assert shapes(outputs.pooled) == [[None, 4], [3, 8]]
    assert shapes(outputs.positions) == [[None], [9]]
    assert shapes(outputs.bounds) == [[], []]


def test_summed_gradients_have_the_static_width(tables):
    positions, grads = [hole([None])] * 2, [hole(None, tf.float32)] * 2
    unique, sums = _ops.table_deduplicate(tables, positions, grads, dims=[4, 8])
    assert shapes(unique) == [[None], [None]]
    assert shapes(sums) == [[None, 4], [None, 8]]
    unique, values = _ops.table_pooled_gradient(
        tables, positions, positions, grads, grads, dims=[4, 8], combiner="sum"
    )
    assert shapes(unique) == [[None], [None]]
    assert shapes(values) == [[None, 4], [None, 8]]
    taken = _ops.table_take_gradients(tables[0], dim=4)
    assert shapes(taken) == [[None], [None, 4]]


def test_records_have_the_static_widths(tables):
    rows, slots = _ops.table_read_records(
        tables[0], hole([None]), ["m", "a"], dim=4, slot_widths=[4, 1]
    )
    assert shapes([rows, *slots]) == [[None, 4], [None, 4], [None, 1]]


def test_export_has_the_static_width(tables):
    exported = _ops.table_export(
        tables[1], hole([]), hole([]), dtype="float32", dim=8
    )
    assert shapes(exported) == [
        [None],
        [None, 8],
        [None, None],
        [None],
        [None],
        [],
    ]


def test_small_outputs(tables):
    assert shapes(_ops.table_size(tables)) == [[], []]
    assert shapes(_ops.table_remove(tables, [hole(None)] * 2)) == [[], []]
    assert shapes([_ops.table_missing(tables[0], hole(None))]) == [[None]]
    assert shapes(_ops.table_statistics(tables[0])) == [[10], []]
    assert shapes([_ops.table_step(tables[0])]) == [[]]
    assert shapes(_ops.table_slots(tables[0])) == [[None]] * 3
    assert shapes(_ops.table_keys(tables[0], hole([None, 2]))) == [
        [None, 2],
        [None, 2],
    ]


@pytest.mark.parametrize("rows", [[3, 5], [4, 4], [3]])
def test_wrong_row_shapes_fail_while_the_graph_is_built(tables, rows):
    with pytest.raises(ValueError, match="must be equal|rank"):
        _ops.table_assign(
            tables[:1], [hole([3])], [hole(rows, tf.float32)], dims=[4]
        )


def test_scalars_are_checked_while_the_graph_is_built(tables):
    with pytest.raises(ValueError, match="rank 0"):
        _ops.table_update(
            tables[:1],
            [hole([3])],
            [hole([3, 4], tf.float32)],
            hole([2], tf.float32),
            1,
            optimizer="sgd",
        )
    with pytest.raises(ValueError, match="rank 0"):
        _ops.table_reserve(tables[0], hole([1]))


def test_every_table_needs_a_width(tables):
    with pytest.raises(ValueError, match="1 entries for 2 tables"):
        _ops.table_assign(
            tables, [hole([3])] * 2, [hole(None, tf.float32)] * 2, dims=[4]
        )
