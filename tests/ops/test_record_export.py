"""Export and import of whole records."""

import numpy as np
import pytest

from embedra import _ops
from numerics import assert_allclose
from ops.calls import lookup_one


def export_all(tables, chunk):
    """All records of the first table, in columns."""

    def body(t, cursor):
        return _ops.table_export(
            t[0], cursor, chunk, dtype="float32", dim=tables.dims[0]
        )

    chunks, cursor = [], 0
    while True:
        *columns, after = tables.run(body, np.int64(cursor))
        if int(after) == cursor:
            break
        cursor = int(after)
        assert len(columns[0]) <= chunk
        chunks.append(columns)
    return [np.concatenate(column) for column in zip(*chunks, strict=True)]


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_chunks_hold_every_record_once(make_tables, chunk):
    tables = make_tables(
        [3], initializer="normal", initializer_parameters=[0.0, 1.0]
    )
    keys = np.arange(20, dtype=np.int64) * 1000
    rows, *_ = tables.run(lambda t, k: lookup_one(t[0], k, 3), keys)
    tables.run(lambda t, k: _ops.table_remove(t, [k]), keys[::4])
    exported = export_all(tables, chunk)
    order = np.argsort(exported[0])
    kept = np.arange(20) % 4 != 0
    assert exported[0][order].tolist() == keys[kept].tolist()
    assert_allclose(exported[1][order], rows[kept])
    assert exported[3].tolist() == [1] * 15


def test_import_restores_rows_slots_and_counters(make_tables):
    source, target = make_tables([2]), make_tables([2])
    for tables in (source, target):
        tables.run(
            lambda t: _ops.table_set_slots(t[0], ["m", "a"], [2, 1], [0, 0])
        )
    keys = np.array([3, 1, 2])
    source.run(lambda t: _ops.table_set_step(t[0], 9))
    source.run(lambda t, k: lookup_one(t[0], k, 2), keys)
    columns = [
        keys,
        np.arange(6, dtype=np.float32).reshape(3, 2),
        np.arange(9, dtype=np.float32).reshape(3, 3),
        np.array([5, 6, 7]),
        np.array([1, 2, 3]),
    ]
    target.run(lambda t, *c: _ops.table_import(t[0], *c), *columns)
    exported = export_all(target, 100)
    order = np.argsort(exported[0])
    for actual, expected in zip(exported, columns, strict=True):
        assert_allclose(actual[order], expected[np.argsort(keys)])
    last_steps = export_all(source, 100)[4]
    assert last_steps.tolist() == [9, 9, 9]


def test_import_without_slots_and_counters_starts_them(eager_tables):
    tables = eager_tables([2])
    tables.run(lambda t: _ops.table_set_slots(t[0], ["m"], [2], [0.5]))
    nothing = np.zeros([0], np.int64)
    tables.run(
        lambda t, *c: _ops.table_import(t[0], *c),
        np.array([4]),
        np.ones((1, 2), np.float32),
        np.zeros((0, 0), np.float32),
        nothing,
        nothing,
    )
    _, _, slots, frequencies, last_steps = export_all(tables, 10)
    assert_allclose(slots, [[0.5, 0.5]])
    assert frequencies.tolist() == last_steps.tolist() == [0]
