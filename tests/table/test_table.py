"""Methods of a table."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.table import KeyDtypeError, Records, Slot, Table
from numerics import assert_allclose


def _table(**kwargs):
    return Table(2, name="t", initializer=0.5, **kwargs)


def test_lookup_without_insert_changes_nothing():
    table = _table()
    assert table.lookup([1, 2]).numpy().tolist() == [[0.5, 0.5]] * 2
    assert table.size() == 0


def test_lookup_with_insert_creates_rows():
    table = _table()
    assert table.lookup([[1], [2]], insert=True).shape == (2, 1, 2)
    assert table.size() == 2


@pytest.mark.parametrize(
    ("default", "row"), [(0.0, [0, 0]), ([3.0, 4.0], [3, 4])]
)
def test_absent_keys_read_as_the_default(default, row):
    assert _table().lookup([1], default=default).numpy().tolist() == [row]


def test_default_of_a_wrong_width_is_refused():
    with pytest.raises(ValueError, match="width 2"):
        _table().lookup([1], default=[1.0, 2.0, 3.0])


def test_assign_keeps_the_last_row_of_a_key():
    table = _table()
    table.assign([1, 2, 1], [[1, 1], [2, 2], [3, 3]])
    assert table.lookup([1, 2]).numpy().tolist() == [[3, 3], [2, 2]]


@pytest.mark.parametrize("rows", [[[1.0]], [1.0, 2.0], [[1.0, 2.0]] * 2])
def test_rows_of_a_wrong_shape_are_refused(rows):
    table = _table()
    with pytest.raises(ValueError, match="table 't'"):
        table.assign([1], rows)
    with pytest.raises(ValueError, match="table 't'"):
        table.accumulate([1], rows)
    assert table.size() == 0


def test_accumulate_starts_from_the_initial_row():
    table = _table()
    table.accumulate([1, 1], [[1, 2], [3, 4]])
    assert table.lookup([1]).numpy().tolist() == [[4.5, 6.5]]


def test_remove_counts_what_was_there():
    table = _table()
    table.assign([1, 2], [[1, 1], [2, 2]])
    assert table.remove([2, 3]) == 1
    assert table.size() == 1


def test_clear_removes_all():
    table = _table()
    table.assign([1], [[1, 1]])
    table.clear()
    assert table.size() == 0


def test_reserve_makes_room():
    table = _table()
    table.reserve(10_000)
    assert table.statistics().capacity >= 10_000


def test_statistics_count():
    table = _table()
    table.lookup([1, 2], insert=True)
    table.lookup([1, 3])
    table.remove([2])
    statistics = table.statistics()
    assert statistics.size == 1
    assert statistics.inserts == 2
    assert statistics.removes == 1
    assert statistics.hits == 1
    assert statistics.misses == 3


def test_all_works_inside_a_function():
    table = _table()

    @tf.function
    def work(keys):
        table.assign(keys, tf.ones((2, 2)))
        table.accumulate(keys, tf.ones((2, 2)))
        removed = table.remove(keys[:1])
        return table.lookup(keys), table.size(), removed

    rows, size, removed = work(tf.constant([1, 2], tf.int64))
    assert rows.numpy().tolist() == [[0.5, 0.5], [2, 2]]
    assert (int(size), int(removed)) == (1, 1)


def test_string_table_takes_strings_only():
    table = _table(key_dtype="string")
    table.assign(["a"], [[1, 1]])
    assert table.lookup(["a", "b"]).numpy().tolist() == [[1, 1], [0.5, 0.5]]
    with pytest.raises(KeyDtypeError, match="key_dtype='string'"):
        table.lookup([1])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rows_have_the_tables_dtype(dtype):
    table = _table(dtype=dtype)
    table.assign([1], [[1.5, 2.5]])
    rows = table.lookup([1, 2])
    assert rows.dtype == dtype
    assert_allclose(rows, [[1.5, 2.5], [0.5, 0.5]])


@pytest.mark.parametrize(
    "arguments",
    [
        {"dim": 0},
        {"dim": 2.0},
        {"dim": True},
        {"dim": 2, "dtype": "float64"},
        {"dim": 2, "key_dtype": "float32"},
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments):
    with pytest.raises(ValueError, match="table 'wrong'"):
        Table(name="wrong", **arguments)


def test_unseeded_tables_differ_and_are_governed_by_keras():
    keras.utils.set_random_seed(1)
    first, second = Table(8, name="t"), Table(8, name="t")
    keras.utils.set_random_seed(1)
    again = Table(8, name="t")
    rows = [table.lookup([1]).numpy() for table in (first, second, again)]
    assert (rows[0] != rows[1]).all()
    np.testing.assert_array_equal(rows[0], rows[2])


def test_one_seeded_initializer_differs_by_table_name():
    initializer = keras.initializers.RandomUniform(seed=3)
    one = Table(8, name="one", initializer=initializer)
    two = Table(8, name="two", initializer=initializer)
    assert (one.lookup([1]).numpy() != two.lookup([1]).numpy()).all()


def test_exported_records_can_be_imported():
    table = _table()
    table.set_slots([Slot("momentum", 2, 0.0), Slot("count", 1, 7.0)])
    table.lookup(list(range(10)), insert=True)
    chunks = list(table.export_chunks(chunk_size=4))
    assert [len(chunk.keys) for chunk in chunks] == [4, 4, 2]
    assert chunks[0].slots[0].tolist() == [0, 0, 7]
    other = _table()
    other.set_slots(table.slots)
    for chunk in chunks:
        other.import_records(chunk)
    assert other.size() == 10
    assert other.slot_names == ("momentum", "count")
    assert_allclose(other.lookup([3]), table.lookup([3]))


def test_records_of_a_wrong_width_are_refused():
    empty = np.zeros((0,), np.int64)
    records = Records(
        np.array([1]),
        np.zeros((1, 3), np.float32),
        np.zeros((0, 0), np.float32),
        empty,
        empty,
    )
    with pytest.raises(ValueError, match=r"\(n, 2\)"):
        _table().import_records(records)


def test_dropped_slots_are_named():
    table = _table()
    table.set_slots([Slot("momentum", 2, 0.0)])
    assert table.set_slots([]).numpy().tolist() == [b"momentum"]
    assert table.slots == ()
