"""Every op of one table, in every mode."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import _ops
from numerics import assert_allclose
from ops.calls import lookup_one


KEYS = np.array([5, -1, 2**62], np.int64)
ROWS = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


@pytest.fixture
def filled(make_tables):
    """One table of width 2 with three rows."""
    tables = make_tables([2], initializer_parameters=[0.5])
    tables.run(
        lambda t, k, r: _ops.table_assign(t, [k], [r], dims=[2]), KEYS, ROWS
    )
    return tables


def read(tables, keys, **options):
    """Rows of `keys`, read only."""
    rows, *_ = tables.run(
        lambda t, k: lookup_one(t[0], k, 2, insert=False, **options),
        np.asarray(keys, np.int64),
    )
    return rows


def size(tables):
    return int(tables.run(_ops.table_size)[0])


def test_lookup_returns_rows_positions_and_found_flags(filled):
    rows, positions, found, bound = filled.run(
        lambda t, k: lookup_one(t[0], k, 2), np.array([[5, 9], [9, -1]])
    )
    assert_allclose(rows, [[[1, 2], [0.5, 0.5]], [[0.5, 0.5], [3, 4]]])
    assert found.tolist() == [[True, False], [False, True]]
    assert positions[0, 1] == positions[1, 0]
    assert len(set(positions.flatten())) == 3
    assert bound == positions.max() + 1
    assert size(filled) == 4


def test_read_only_lookup_changes_nothing_and_gives_defaults(filled):
    keys = np.array([5, 9])
    rows, positions, found, _ = filled.run(
        lambda t, k: lookup_one(t[0], k, 2, insert=False), keys
    )
    assert_allclose(rows, [[1, 2], [0.5, 0.5]])
    assert positions[1] == -1
    assert found.tolist() == [True, False]
    assert_allclose(read(filled, keys, default=[7, 8]), [[1, 2], [7, 8]])
    assert size(filled) == 3


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (2, 1, 2)])
def test_lookup_keeps_the_shape_of_the_keys(make_tables, shape):
    tables = make_tables([2])
    rows, positions, found, bound = tables.run(
        lambda t, k: lookup_one(t[0], k, 2), np.zeros(shape, np.int64)
    )
    assert rows.shape == (*shape, 2)
    assert positions.shape == found.shape == shape
    assert bound == (1 if np.prod(shape) else 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rows_have_the_dtype_of_the_table(make_tables, dtype):
    tables = make_tables([2], dtype=dtype)
    numpy_dtype = tf.as_dtype(dtype).as_numpy_dtype
    tables.run(
        lambda t, k, r: _ops.table_assign(t, [k], [r], dims=[2]),
        KEYS,
        ROWS.astype(numpy_dtype),
    )
    rows, *_ = tables.run(
        lambda t, k: lookup_one(t[0], k, 2, dtype=dtype), KEYS
    )
    assert rows.dtype == numpy_dtype
    assert_allclose(rows, ROWS)


def test_assign_keeps_the_last_row_of_a_repeated_key(filled):
    keys = np.array([[5, 9], [5, 5]])
    rows = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    filled.run(
        lambda t, k, r: _ops.table_assign(t, [k], [r], dims=[2]), keys, rows
    )
    assert_allclose(read(filled, [5, 9, -1]), [[6, 7], [2, 3], [3, 4]])


def test_assign_of_missing_keys_leaves_present_ones(filled):
    def body(t, k, r):
        return _ops.table_assign(t, [k], [r], dims=[2], only_missing=True)

    filled.run(body, np.array([5, 9]), ROWS[:2] * 10)
    assert_allclose(read(filled, [5, 9]), [[1, 2], [30, 40]])


def test_missing_lists_absent_keys_once_in_order(filled):
    missing = filled.run(
        lambda t, k: _ops.table_missing(t[0], k), np.array([9, 5, 3, 9, -1])
    )
    assert missing.tolist() == [9, 3]


def test_accumulate_adds_to_present_and_to_initial_rows(filled):
    def body(t, k, d):
        return _ops.table_accumulate(t, [k], [d], dims=[2])

    filled.run(body, np.array([5, 9, 5]), np.ones((3, 2), np.float32))
    assert_allclose(read(filled, [5, 9]), [[3, 4], [1.5, 1.5]])


def test_remove_counts_present_keys(filled):
    removed = filled.run(
        lambda t, k: _ops.table_remove(t, [k]), np.array([5, 77, -1])
    )
    assert int(removed[0]) == 2
    assert size(filled) == 1
    assert_allclose(read(filled, [5]), [[0.5, 0.5]])


def test_clear_and_reserve(filled):
    filled.run(lambda t: _ops.table_reserve(t[0], 10_000))
    counters, _ = filled.run(lambda t: _ops.table_statistics(t[0]))
    assert counters[1] >= 10_000
    filled.run(_ops.table_clear)
    assert size(filled) == 0


def test_statistics_count_what_happened(filled):
    filled.run(lambda t, k: lookup_one(t[0], k, 2), np.array([5, 9]))
    filled.run(lambda t, k: _ops.table_remove(t, [k]), np.array([9]))
    counters, load_factor = filled.run(lambda t: _ops.table_statistics(t[0]))
    size, capacity, memory, inserts, removes, hits, misses = counters[:7]
    assert (size, inserts, removes, hits, misses) == (3, 4, 1, 1, 1)
    updates, stale, evictions = counters[7:]
    assert (updates, stale, evictions) == (0, 0, 0)
    assert capacity >= 3
    assert memory > 0
    assert 0 < load_factor <= 1


def test_step_is_set_by_hand_and_by_updates(filled):
    filled.run(lambda t: _ops.table_set_step(t[0], 41))
    assert filled.run(lambda t: _ops.table_step(t[0])) == 41
    filled.run(
        lambda t, p, g: _ops.table_update(
            t, [p], [g], 0.5, 42, optimizer="sgd"
        ),
        np.array([0]),
        np.ones((1, 2), np.float32),
    )
    assert filled.run(lambda t: _ops.table_step(t[0])) == 42


def test_update_sums_equal_positions_and_skips_absent_ones(filled):
    _, positions, _, _ = filled.run(
        lambda t, k: lookup_one(t[0], k, 2, insert=False),
        np.array([5, 9, 5, -1]),
    )
    filled.run(
        lambda t, p, g: _ops.table_update(
            t, [p], [g], 0.5, 1, 2.0, optimizer="sgd"
        ),
        positions,
        np.array([[1, 0], [9, 9], [1, 2], [0, 1]], np.float32),
    )
    assert_allclose(read(filled, [5, -1]), [[-1, 0], [3, 3]])


def test_deduplicate_sums_in_order_of_appearance(filled):
    unique, sums = filled.run(
        lambda t, p, g: _ops.table_deduplicate(t, [p], [g], dims=[2]),
        np.array([2, 0, -1, 2]),
        np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32),
    )
    assert unique[0].tolist() == [2, 0]
    assert_allclose(sums[0], [[8, 10], [3, 4]])


def test_gradients_wait_until_taken(filled):
    def accumulate(t, p, g):
        return _ops.table_accumulate_gradients(t[0], p, g)

    filled.run(accumulate, np.array([1, 0]), ROWS[:2])
    filled.run(accumulate, np.array([1]), ROWS[2:])
    positions, grads = filled.run(
        lambda t: _ops.table_take_gradients(t[0], dim=2)
    )
    order = np.argsort(positions)
    assert positions[order].tolist() == [0, 1]
    assert_allclose(grads[order], [[3, 4], [6, 8]])
    positions, _ = filled.run(lambda t: _ops.table_take_gradients(t[0], dim=2))
    assert positions.size == 0


def test_records_are_read_and_written_by_position(filled):
    dropped = filled.run(
        lambda t: _ops.table_set_slots(t[0], ["m", "a"], [2, 1], [0.25, 0.0])
    )
    assert dropped.size == 0
    _, positions, *_ = filled.run(lambda t, k: lookup_one(t[0], k, 2), KEYS)
    first_and_last = positions[[2, 0]]

    def write(t, p, r, m, a):
        return _ops.table_write_records(
            t[0], p, r, [a, m], ["a", "m"], dim=2, slot_widths=[1, 2]
        )

    def read_back(t, p):
        return _ops.table_read_records(
            t[0], p, ["m", "a"], dim=2, slot_widths=[2, 1]
        )

    filled.run(
        write,
        first_and_last,
        ROWS[:2] * 10,
        ROWS[:2],
        np.ones((2, 1), np.float32),
    )
    rows, slots = filled.run(read_back, positions)
    assert_allclose(rows, [[30, 40], [3, 4], [10, 20]])
    assert_allclose(slots[0], [[3, 4], [0.25, 0.25], [1, 2]])
    assert_allclose(slots[1], [[1], [0], [1]])


def test_slots_can_be_listed_and_dropped(filled):
    filled.run(lambda t: _ops.table_set_slots(t[0], ["m", "a"], [2, 1], [0, 3]))
    names, widths, initials = filled.run(lambda t: _ops.table_slots(t[0]))
    assert names.tolist() == [b"m", b"a"]
    assert widths.tolist() == [2, 1]
    assert initials.tolist() == [0.0, 3.0]
    dropped = filled.run(lambda t: _ops.table_set_slots(t[0], ["a"], [1], [3]))
    assert dropped.tolist() == [b"m"]


def test_keys_of_positions(filled):
    _, positions, _, _ = filled.run(lambda t, k: lookup_one(t[0], k, 2), KEYS)
    filled.run(lambda t, k: _ops.table_remove(t, [k]), KEYS[:1])
    keys, alive = filled.run(
        lambda t, p: _ops.table_keys(t[0], p), np.append(positions, [-1, 999])
    )
    assert alive.tolist() == [False, True, True, False, False]
    assert keys.tolist() == [0, KEYS[1], KEYS[2], 0, 0]


def test_initializer_can_be_replaced(filled):
    filled.run(
        lambda t: _ops.table_set_initializer(
            t[0], "other", "constant", [7.0], 3
        )
    )
    assert_allclose(read(filled, [5, 9]), [[1, 2], [7, 7]])


def test_initial_rows_depend_on_seed_name_and_key_alone(make_tables):
    spec = {"initializer": "normal", "initializer_parameters": [0.0, 1.0]}
    one, same, other = (
        make_tables([2], seed=seed, **spec) for seed in (1, 1, 2)
    )
    assert_allclose(read(one, [5, 6]), read(same, [6, 5])[::-1])
    assert not np.allclose(read(one, [5]), read(other, [5]))
    assert not np.allclose(read(one, [5]), read(one, [6]))
