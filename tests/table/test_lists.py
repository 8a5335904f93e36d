"""Operations on lists of tables do what those on each table do."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import table as table_lib


def make_tables():
    return [
        table_lib.Table(2, name="a", seed=1),
        table_lib.Table(3, name="b", seed=2, dtype="bfloat16"),
        table_lib.Table(2, name="c", seed=3, key_dtype="string"),
        table_lib.Table(
            1, name="d", initializer=lambda shape: tf.ones(shape) * 7.0
        ),
    ]


KEYS = ([1, 2, 1], [[3], [-4]], ["x", ""], [[[5]]])


def rows_of(tables):
    return [
        table.lookup(keys, default=-1.0).numpy().astype(np.float32)
        for table, keys in zip(tables, KEYS, strict=True)
    ]


@pytest.mark.parametrize("in_function", [False, True])
def test_each_operation_agrees_with_that_on_one_table(in_function):
    together, alone = make_tables(), make_tables()

    def run(function, *arguments):
        if in_function:
            return tf.function(lambda: function(together, *arguments))()
        return function(together, *arguments)

    deltas = [
        np.ones((*np.shape(keys), table.dim), np.float32)
        for keys, table in zip(KEYS, alone, strict=True)
    ]
    values = [5.0 * delta for delta in deltas]
    found = run(table_lib.lookup_tables, KEYS, True)
    for table, keys, rows in zip(alone, KEYS, found, strict=True):
        np.testing.assert_array_equal(rows, table.lookup(keys, insert=True))
    run(table_lib.accumulate_tables, KEYS, deltas)
    for table, keys, delta in zip(alone, KEYS, deltas, strict=True):
        table.accumulate(keys, delta)
    for a, b in zip(rows_of(together), rows_of(alone), strict=True):
        np.testing.assert_array_equal(a, b)
    run(table_lib.assign_tables, KEYS, values)
    for rows in rows_of(together):
        np.testing.assert_array_equal(rows, 5.0)
    assert [int(n) for n in run(table_lib.table_sizes)] == [2, 2, 2, 1]
    removed = run(table_lib.remove_from_tables, ([1, 9], [3], ["x", "y"], [6]))
    assert [int(n) for n in removed] == [1, 1, 1, 0]
    run(table_lib.clear_tables)
    assert table_lib.table_sizes(together) == [0, 0, 0, 0]


def test_numbers_that_do_not_fit_are_refused_before_anything_changes():
    tables = make_tables()[:2]
    with pytest.raises(ValueError, match="each of 2 tables"):
        table_lib.lookup_tables(tables, [[1]], True)
    with pytest.raises(ValueError, match="at least one"):
        table_lib.lookup_tables([], [])
    with pytest.raises(ValueError, match="table 'b' must have shape"):
        table_lib.assign_tables(
            tables, [[1], [2]], [np.ones((1, 2)), np.ones((1, 2))]
        )
    assert table_lib.table_sizes(tables) == [0, 0]


def test_no_tables_have_no_sizes_and_nothing_to_clear():
    assert table_lib.table_sizes([]) == []
    assert table_lib.clear_tables([]) is None


def test_a_graph_of_tf1_runs_them_in_order():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tables = make_tables()
        rows = table_lib.lookup_tables(tables, KEYS, True)
        ones = [
            np.ones((*np.shape(keys), table.dim), np.float32)
            for keys, table in zip(KEYS, tables, strict=True)
        ]
        accumulated = table_lib.accumulate_tables(tables, KEYS, ones)
        assigned = table_lib.assign_tables(tables, KEYS, ones)
        sizes = table_lib.table_sizes(tables)
        cleared = table_lib.clear_tables(tables)
        assert (session.run(rows[3]) == 7.0).all()
        session.run(accumulated)
        assert (session.run(rows[3]) == 8.0).all()
        session.run(assigned)
        assert all((row == 1.0).all() for row in session.run(rows))
        session.run(cleared)
        assert session.run(sizes) == [0, 0, 0, 0]
