"""Some of a table's records, to measure it by."""

import numpy as np
import pytest

import embedra as hb
from embedra.table import sample_records


def table_of(count):
    table = hb.table.Table(2, name="sampled", seed=1)
    table.lookup(np.arange(count), insert=True)
    return table


@pytest.mark.parametrize("count", [1, 7, 16, 100, 999])
def test_a_sample_has_each_record_once(count):
    table = table_of(1000)
    records = sample_records(table, count)
    assert len(set(records.keys.tolist())) == len(records.keys) == count
    np.testing.assert_array_equal(records.rows, table.lookup(records.keys))


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_small_table_is_read_as_a_whole(size):
    records = sample_records(table_of(size), 100)
    assert sorted(records.keys.tolist()) == list(range(size))
    assert records.rows.shape == (size, 2)


def test_a_sample_is_of_old_and_new_records():
    table = table_of(1)
    for step in range(10):
        table.lookup(np.arange(step * 1000, (step + 1) * 1000), insert=True)
    keys = sample_records(table, 32).keys
    assert set(keys // 1000) == set(range(10))


def test_a_sample_of_a_table_with_free_places_has_each_record_once():
    table = table_of(1000)
    table.remove(np.arange(0, 1000, 3))
    keys = sample_records(table, 200).keys.tolist()
    assert len(set(keys)) == len(keys) > 100
    assert not [key for key in keys if key % 3 == 0]


def test_a_sample_has_some_records():
    with pytest.raises(ValueError, match="`count`.*0"):
        sample_records(table_of(3), 0)
