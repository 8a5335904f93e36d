"""Many threads on the same tables."""

import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

import numpy as np
import pytest
import tensorflow as tf

from embedra import _ops
from ops.calls import lookup


DIMS = [4, 6]
THREADS = 16
NUM_KEYS = 5000


@pytest.fixture
def handles():
    """Tables in which every element of a row is the row's key."""
    handles = [_ops.anonymous_table(name=f"t{d}", dim=d) for d in DIMS]
    keys = np.arange(NUM_KEYS)
    rows = [np.repeat(keys[:, None], d, 1).astype(np.float32) for d in DIMS]
    _ops.table_assign(handles, [keys, keys], rows, dims=DIMS)
    return handles


def test_l15_each_answer_matches_its_own_ids(handles):
    """L15: 16 threads, batches of many sizes, ten thousand calls."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)] * 2)
    def serve(first, second):
        found = lookup(
            handles, [first, second], dims=DIMS, insert=False, default=()
        )
        return found.rows, [first, second]

    def calls(thread):
        rng = np.random.default_rng(thread)
        for _ in range(10_000 // THREADS):
            ids = [
                rng.integers(0, NUM_KEYS, rng.integers(0, 400)) for _ in DIMS
            ]
            rows, echoed = serve(*map(tf.constant, ids))
            for i, dim in enumerate(DIMS):
                assert np.array_equal(echoed[i], ids[i])
                assert rows[i].shape == (len(ids[i]), dim)
                assert (rows[i].numpy() == ids[i][:, None]).all()
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(calls, range(THREADS)))


def test_rows_are_read_whole_while_others_write(handles):
    """Trainers, readers, removers and an exporter; no row is ever mixed."""
    stop = threading.Event()
    bodies = [train, train, read, read, remove, export]
    with ThreadPoolExecutor(len(bodies)) as pool:
        futures = [
            pool.submit(repeat, body, handles, stop, seed)
            for seed, body in enumerate(bodies)
        ]
        wait(futures, timeout=6, return_when=FIRST_EXCEPTION)
        stop.set()
        for future in futures:
            future.result(timeout=60)


def repeat(body, handles, stop, seed):
    rng = np.random.default_rng(seed)
    while not stop.is_set():
        body(handles, tf.constant(rng.integers(0, 2 * NUM_KEYS, 3000)))


@tf.function
def train(handles, ids):
    found = lookup(handles, [ids, ids], dims=DIMS)
    grads = [tf.ones_like(rows) for rows in found.rows]
    _ops.table_update(handles, found.positions, grads, 0.5, 1, optimizer="sgd")


def read(handles, ids):
    found = lookup(handles, [ids, ids], dims=DIMS, insert=False)
    for rows in found.rows:
        assert_rows_are_whole(rows)


def remove(handles, ids):
    _ops.table_remove(handles, [ids[:50], ids[50:100]])


def export(handles, ids):
    del ids
    cursor, before = 0, -1
    while cursor != before:
        before = cursor
        records = _ops.table_export(
            handles[0], cursor, 700, dtype="float32", dim=DIMS[0]
        )
        cursor = int(records.next_cursor)
        assert_rows_are_whole(records.rows)


def assert_rows_are_whole(rows):
    assert (rows.numpy() == rows.numpy()[:, :1]).all()


@pytest.mark.parametrize("threads", [2, 8])
def test_concurrent_inserts_make_each_key_once(handles, threads):
    keys = [
        np.random.default_rng(i).integers(-(10**6), 10**6, 20_000)
        for i in range(threads)
    ]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda k: lookup(handles, [k, k], dims=DIMS), keys))
    expected = np.unique(np.concatenate([np.arange(NUM_KEYS), *keys])).size
    assert [int(s) for s in _ops.table_size(handles)] == [expected] * 2
