"""Ops that keep tables small, in every mode."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import _ops
from ops.calls import lookup_one


KEYS = np.array([5, -3, 2**62, 7, 7, 7, 5])


def run_restrict(tables, max_records, order):
    def body(handles, limit):
        bound = tf.reshape(limit, [])
        return _ops.table_restrict(handles[0], bound, order=order)

    return tables.run(body, np.array([max_records]))


def keys_of(tables):
    export = tables.run(
        lambda t: _ops.table_export(
            t[0], tf.constant(0, tf.int64), 100, dtype="float32", dim=2
        )
    )
    return sorted(export.keys.tolist())


@pytest.fixture
def filled(make_tables):
    tables = make_tables([2])
    tables.run(lambda t, k: lookup_one(t[0], k, 2), KEYS)
    tables.run(lambda t, k: _ops.table_count_uses(t[0], k), np.array([-3, 99]))
    return tables


@pytest.mark.parametrize(
    ("order", "kept"),
    [("recency", [[-3], [-3, 7]]), ("frequency", [[7], [-3, 7]])],
)
def test_restrict_keeps_the_highest(filled, order, kept):
    assert run_restrict(filled, 4, order).tolist() == []
    # -3 and 5 were used twice each, and -3 later.
    assert sorted(run_restrict(filled, 2, order)) == [5, 2**62]
    assert keys_of(filled) == kept[1]
    run_restrict(filled, 1, order)
    assert keys_of(filled) == kept[0]
    run_restrict(filled, 0, order)
    assert keys_of(filled) == []


def test_uses_are_read_by_key_in_the_shape_of_the_keys(filled):
    frequencies, last_steps, found = filled.run(
        lambda t, k: _ops.table_uses(t[0], k), np.array([[-3, 7], [5, 99]])
    )
    assert frequencies.tolist() == [[2, 3], [2, 0]]
    assert last_steps.tolist() == [[1, 0], [0, 0]]
    assert found.tolist() == [[True, True], [True, False]]


def test_a_bounded_table_keeps_the_batch_and_counts_evictions(make_tables):
    tables = make_tables([2], max_capacity=4, eviction="frequency")
    tables.run(lambda t, k: lookup_one(t[0], k, 2), np.array([1, 2, 3, 4, 4]))
    rows, positions, found, _ = tables.run(
        lambda t, k: lookup_one(t[0], k, 2), np.array([1, 9, 1])
    )
    assert found.tolist() == [True, False, True]
    assert len(set(positions.tolist())) == 2
    assert keys_of(tables) == [1, 3, 4, 9]
    counters, _ = tables.run(lambda t: _ops.table_statistics(t[0]))
    assert counters[9] == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_capacity 4"):
        tables.run(lambda t, k: lookup_one(t[0], k, 2), np.arange(5) + 20)
    assert keys_of(tables) == [1, 3, 4, 9]


def test_bad_bounds_are_named(eager_tables):
    tables = eager_tables([2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_records"):
        run_restrict(tables, -1, "recency")
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_records"):
        _ops.table_restrict(tables.handles[0], tf.constant([1], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_capacity"):
        _ops.anonymous_table(name="user", dim=2, max_capacity=-1)


def test_static_shapes():
    with tf.Graph().as_default():
        table = _ops.table(shared_name="a", name="a", dim=2)
        keys = tf.compat.v1.placeholder(tf.int64, [None, 3])
        removed = _ops.table_restrict(table, tf.constant(3, tf.int64))
        assert removed.shape.as_list() == [None]
        for output in _ops.table_uses(table, keys):
            assert output.shape.as_list() == [None, 3]
