"""Tables that are kept small: restriction and bounds."""

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra import Table
from embedra.layers import Embedding


def keys_of(table):
    keys = [chunk.keys for chunk in table.export_chunks()]
    return sorted(np.concatenate(keys).tolist()) if keys else []


def trained(**options):
    """Keys 0 to 999: key k was used k % 10 + 1 times, 999 - k steps ago."""
    table = Table(2, name="user", initializer=0.5, seed=1, **options)
    records = Table(2, name="user", seed=1)
    records.assign(np.arange(1000), np.ones((1000, 2)))
    chunk = next(records.export_chunks())
    table.import_records(
        chunk._replace(frequencies=chunk.keys % 10 + 1, last_steps=chunk.keys)
    )
    return table


@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize(
    ("by", "kept"),
    [("recency", range(900, 1000)), ("frequency", range(9, 1000, 10))],
)
def test_e02_exactly_the_right_hundred_are_left(by, kept, in_function):
    table = trained()

    def restrict(limit):
        return table.restrict(limit, by=by)

    if in_function:
        restrict = tf.function(restrict)
    removed = restrict(tf.constant(100)).numpy()
    assert keys_of(table) == list(kept)
    # Each that left, once.
    assert sorted(removed) == sorted(set(range(1000)) - set(kept))
    assert table.size() == 100
    np.testing.assert_array_equal(table.lookup([0], insert=True), [[0.5, 0.5]])
    assert restrict(tf.constant(200)).numpy().tolist() == []


def test_e03_dropped_keys_come_back_with_initial_rows_and_slots():
    layer = Embedding(2, embeddings_initializer="zeros")
    model = keras.Sequential([layer, keras.layers.Flatten()])
    model.compile(keras.optimizers.Adagrad(0.5), "mse")
    ids, ones = np.array([[1], [2]]), np.ones((2, 2))
    model.fit(ids, ones, verbose=0)
    first = next(layer.table.export_chunks())
    model.fit(ids, ones, verbose=0)
    layer.table.restrict(0)
    assert layer.table.size() == 0
    model.fit(ids, ones, verbose=0)
    again = next(layer.table.export_chunks())
    np.testing.assert_array_equal(again.rows, first.rows)
    np.testing.assert_array_equal(again.slots, first.slots)
    np.testing.assert_array_equal(again.frequencies, [1, 1])


def test_restriction_in_a_tf1_graph():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        table = Table(2, name="user")
        filled = table.lookup([1, 2, 3, 3], insert=True)
        counted = table.count_uses([1, 1])
        limit = tf.compat.v1.placeholder(tf.int32, [])
        removed = table.restrict(limit, by="frequency")
        size = table.size()
        session.run(filled)
        session.run(counted)
        assert session.run(removed, {limit: 2}).tolist() == [2]
        assert session.run(size) == 2


def test_an_unknown_order_is_named():
    table = Table(2, name="user")
    with pytest.raises(ValueError, match="`by` of table 'user'.*'age'"):
        table.restrict(1, by="age")
    with pytest.raises(ValueError, match="`eviction` of table 'user'.*'lru'"):
        Table(2, name="user", max_capacity=4, eviction="lru")
    for bad in (-1, 1.5, True, None):
        with pytest.raises(ValueError, match="`max_capacity` of table 'user'"):
            Table(2, name="user", max_capacity=bad)


# Bounded tables.


def test_a_bounded_table_never_holds_more():
    table = Table(2, name="user", max_capacity=50)
    for step in range(40):
        batch = np.arange(step * 7, step * 7 + 20)
        table.lookup(batch, insert=True)
        assert set(batch) <= set(keys_of(table))
        table.assign([-step - 1], [[1.0, 1.0]])
        assert table.size() <= 50
    assert table.statistics().evictions == 293 + 40 - table.size()


def test_a_batch_that_cannot_fit_is_refused_whole():
    table = Table(2, name="user", max_capacity=4)
    table.lookup([1, 2], insert=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="'user'.*5 dist"):
        table.lookup([1, 3, 4, 5, 6, 6], insert=True)
    assert keys_of(table) == [1, 2]


def test_python_initializers_in_a_full_table_make_every_row_of_a_batch():
    def sevens(shape, dtype=None):
        return tf.fill(shape, tf.constant(7.0, dtype or tf.float32))

    table = Table(2, name="user", initializer=sevens, max_capacity=6)
    for step in range(10):
        keys = [step, step + 1, step + 2, 100 + step, step + 1]
        rows = table.lookup(keys, insert=True)
        np.testing.assert_array_equal(rows, np.full((5, 2), 7.0))
        assert table.size() <= 6


@pytest.mark.parametrize(
    ("eviction", "kept"),
    [("recency", range(900, 1000)), ("frequency", range(9, 1000, 10))],
)
def test_c04_loading_more_than_fits_keeps_by_policy_and_says_so(
    tmp_path, caplog, eviction, kept
):
    path = tf.train.Checkpoint(table=trained()).write(str(tmp_path / "state"))
    small = Table(
        2,
        name="user",
        initial_capacity=16,
        max_capacity=100,
        eviction=eviction,
    )
    with caplog.at_level(logging.WARNING, "embedra"):
        tf.train.Checkpoint(table=small).read(path).assert_consumed()
    assert keys_of(small) == list(kept)
    assert "900" in caplog.text
    assert "'user'" in caplog.text
    # Without a bound everything is there, whatever the capacity at first.
    whole = Table(2, name="user", initial_capacity=16)
    caplog.clear()
    tf.train.Checkpoint(table=whole).read(path).assert_consumed()
    assert whole.size() == 1000
    assert not caplog.text


def test_counters_survive_saving_and_choose_the_same_keys(tmp_path):
    table = trained()
    path = tf.train.Checkpoint(table=table).write(str(tmp_path / "state"))
    other = Table(2, name="user")
    tf.train.Checkpoint(table=other).read(path).assert_consumed()
    for limit, by in ((500, "frequency"), (20, "recency")):
        table.restrict(limit, by)
        other.restrict(limit, by)
        assert keys_of(other) == keys_of(table)


def test_a_saved_model_keeps_the_bound(tmp_path):
    module = tf.Module()
    module.table = Table(2, name="user", max_capacity=8, eviction="frequency")
    module.table.lookup([1, 2, 3], insert=True)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path)).table
    assert loaded.bound == module.table.bound == (8, "frequency")
    loaded.lookup([10, 11, 12, 13, 14, 15, 3], insert=True)
    assert loaded.size() <= 8
    assert 3 in keys_of(loaded)
