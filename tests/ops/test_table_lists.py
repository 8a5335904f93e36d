"""Ops on several tables of different widths at once."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import _ops
from numerics import assert_allclose
from ops.calls import lookup, pooled_lookup


DIMS = [2, 5, 3]
KEYS = [np.array([1, 2, 1]), np.array([[1, 7]]), np.zeros([0], np.int64)]
BIG = 3000


@pytest.fixture
def tables(make_tables):
    return make_tables(
        DIMS, initializer="uniform", initializer_parameters=[-1.0, 1.0]
    )


def test_lookup_and_size(tables):
    found = tables.run(lambda t, *k: lookup(t, k, dims=DIMS), *KEYS)
    assert [r.shape for r in found.rows] == [(3, 2), (1, 2, 5), (0, 3)]
    assert [p.shape for p in found.positions] == [(3,), (1, 2), (0,)]
    assert [int(b) for b in found.bounds] == [2, 2, 0]
    assert [int(s) for s in tables.run(_ops.table_size)] == [2, 2, 0]


def test_tables_answer_as_they_do_one_by_one(tables, rng):
    keys = [rng.integers(0, 500, BIG) for _ in DIMS]
    together = tables.run(lambda t, *k: lookup(t, k, dims=DIMS), *keys)
    for i, dim in enumerate(DIMS):
        alone = tables.run(
            lambda t, k, i=i, dim=dim: lookup(t[i : i + 1], [k], dims=[dim]),
            keys[i],
        )
        assert_allclose(together.rows[i], alone.rows[0], rtol=0, atol=0)
        assert together.positions[i].tolist() == alone.positions[0].tolist()


def test_update_and_deduplicate(tables, rng):
    keys = [rng.integers(0, 500, BIG) for _ in DIMS]
    grads = [rng.normal(size=(BIG, dim)).astype(np.float32) for dim in DIMS]
    before = tables.run(lambda t, *k: lookup(t, k, dims=DIMS), *keys)

    def update(t, *a):
        return _ops.table_update(t, a[:3], a[3:], 0.1, 1, optimizer="sgd")

    def deduplicate(t, *a):
        return _ops.table_deduplicate(t, a[:3], a[3:], dims=DIMS)

    _, sums = tables.run(deduplicate, *before.positions, *grads)
    tables.run(update, *before.positions, *grads)
    after = tables.run(lambda t, *k: lookup(t, k, dims=DIMS), *keys)
    for i in range(3):
        total = np.zeros((500, DIMS[i]))
        np.add.at(total, keys[i], grads[i])
        step = -0.1 * total[keys[i]]
        assert_allclose(after.rows[i] - before.rows[i], step, atol=2e-6)
        assert_allclose(sums[i].sum(0), grads[i].sum(0), atol=1e-3)


def test_edits(tables):
    keys = [np.array([1, 2])] * 3
    rows = [np.full((2, dim), i, np.float32) for i, dim in enumerate(DIMS)]
    tables.run(
        lambda t, *a: _ops.table_assign(t, a[:3], a[3:], dims=DIMS),
        *keys,
        *rows,
    )
    tables.run(
        lambda t, *a: _ops.table_accumulate(t, a[:3], a[3:], dims=DIMS),
        *keys,
        *rows,
    )
    found = tables.run(lambda t, *k: lookup(t, k, dims=DIMS), *keys)
    for i in range(3):
        assert_allclose(found.rows[i], 2 * rows[i])
    removed = tables.run(lambda t, *k: _ops.table_remove(t, k), *KEYS)
    assert [int(count) for count in removed] == [2, 1, 0]
    tables.run(_ops.table_clear)
    assert [int(s) for s in tables.run(_ops.table_size)] == [0, 0, 0]


def test_pooled_lookup(tables):
    splits = [np.array([0, 2, 3]), np.array([0, 0, 2]), np.array([0])]
    keys = [KEYS[0], KEYS[1].ravel(), KEYS[2]]
    outputs = tables.run(
        lambda t, *a: pooled_lookup(t, a[:3], a[3:], dims=DIMS), *keys, *splits
    )
    rows = tables.run(lambda t, *k: lookup(t, k, dims=DIMS), *keys).rows
    assert_allclose(outputs.pooled[0], [rows[0][:2].sum(0), rows[0][2]])
    assert_allclose(outputs.pooled[1], [np.zeros(5), rows[1].sum(0)])
    assert outputs.pooled[2].shape == (0, 3)


def test_a_table_may_appear_twice(eager_tables):
    tables = eager_tables([4])

    @tf.function
    def twice(keys):
        return lookup(tables.handles * 2, [keys, keys + 1], dims=[4, 4])

    for _ in range(50):
        found = twice(tf.range(2000, dtype=tf.int64))
    assert int(_ops.table_size(tables.handles)[0]) == 2001
    assert found.positions[0][1] == found.positions[1][0]
