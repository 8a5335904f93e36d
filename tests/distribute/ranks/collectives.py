"""Collectives on a few ranks, against what NumPy gives."""

import re
import sys

import numpy as np
import pytest
import tensorflow as tf

from embedra.distribute import MpiCommunicator, communicator


comm = communicator()
RANK, SIZE = comm.rank, comm.size
IS_MPI = isinstance(comm, MpiCommunicator)


def rows_of(rank, to, width=3, dtype="float32"):
    """The rows that a rank sends to another: (rank + 2 to) % 4 of them."""
    count = (rank + 2 * to) % 4
    first = 100 * rank + 10 * to
    numbers = np.arange(count * width).reshape(count, width) + first
    return numbers.astype(dtype)


def sent(dtype="float32"):
    parts = [rows_of(RANK, to, dtype=dtype) for to in range(SIZE)]
    return np.concatenate(parts), [len(part) for part in parts]


def expected(dtype="float32"):
    parts = [rows_of(source, RANK, dtype=dtype) for source in range(SIZE)]
    return np.concatenate(parts), [len(part) for part in parts]


def check_place():
    assert 0 <= RANK < SIZE
    apart = "apart" in sys.argv
    assert comm.local_rank == (0 if apart else RANK)
    assert comm.local_size == (1 if apart else SIZE)
    assert communicator() is comm
    if IS_MPI:
        assert "Open MPI" in comm.version


def check_all_to_all_v():
    for dtype in ("float32", "float16", "int64", "int8", "bool", "uint64"):
        values, splits = sent(dtype)
        received, received_splits = comm.all_to_all_v(values, splits)
        rows, counts = expected(dtype)
        np.testing.assert_array_equal(received, rows)
        np.testing.assert_array_equal(received_splits, counts)
        answers, _ = comm.all_to_all_v(received, received_splits, splits)
        np.testing.assert_array_equal(answers, values)


def check_all_to_all_v_of_a_list():
    values, splits = sent()
    wide = np.repeat(values, 2, axis=1)
    flat, flat_splits = np.arange(SIZE, dtype=np.float32), [1] * SIZE
    empty = np.zeros((0, 5), np.float32)
    received, counts = comm.all_to_all_v(
        [tf.constant(wide), tf.constant(flat), tf.constant(empty)],
        [splits, flat_splits, [0] * SIZE],
    )
    rows, expected_counts = expected()
    np.testing.assert_array_equal(received[0], np.repeat(rows, 2, axis=1))
    np.testing.assert_array_equal(received[1], np.full(SIZE, RANK))
    assert received[2].shape == (0, 5)
    np.testing.assert_array_equal(counts[0], expected_counts)


def check_large_all_to_all_v():
    values = np.full((SIZE * 300_000, 4), RANK, np.float32)
    received, _ = comm.all_to_all_v(values, [300_000] * SIZE)
    means = received.numpy().reshape(SIZE, -1).mean(1)
    np.testing.assert_array_equal(means, np.arange(SIZE))


def check_all_reduce():
    total = SIZE * (SIZE + 1) / 2
    for dtype in ("float32", "float64", "float16", "bfloat16", "int32"):
        ones = tf.cast(tf.fill((2, 3), RANK + 1), dtype)
        reduced = comm.all_reduce(ones)
        assert reduced.dtype.name == dtype
        np.testing.assert_array_equal(reduced.numpy(), np.full((2, 3), total))
    value = tf.constant([RANK + 1.0, -RANK])
    np.testing.assert_allclose(
        comm.all_reduce(value, "mean"), [total / SIZE, -(SIZE - 1) / 2]
    )
    np.testing.assert_array_equal(comm.all_reduce(value, "max"), [SIZE, 0])
    np.testing.assert_array_equal(comm.all_reduce(value, "min"), [1, 1 - SIZE])
    assert comm.all_reduce(tf.constant(2**40, tf.int64)) == SIZE * 2**40


def check_all_reduce_of_a_list():
    rng = np.random.default_rng(1)
    shapes = [(3, 2), (), (0, 4), (1000,), (7,)]
    everything = [
        [rng.normal(size=shape).astype("float32") for shape in shapes]
        for _ in range(SIZE)
    ]
    own = [tf.constant(value) for value in everything[RANK]]
    own[4] = tf.cast(tf.range(7), tf.int64)
    for bucket_bytes in (1, 100, 10**6):
        reduced = comm.all_reduce(own, bucket_bytes=bucket_bytes)
        for i in range(4):
            total = np.sum([values[i] for values in everything], axis=0)
            np.testing.assert_allclose(reduced[i], total, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(reduced[4], SIZE * np.arange(7))
    with pytest.raises(ValueError, match="no mean"):
        comm.all_reduce(own, "mean")


def check_ranks_get_the_same_bits():
    value = tf.random.stateless_normal([1001], [RANK, 3])
    gathered, _ = comm.all_gather_v(comm.all_reduce(value)[None])
    np.testing.assert_array_equal(
        gathered, gathered.numpy()[:1].repeat(SIZE, 0)
    )


def check_all_gather_v():
    own = np.full((RANK, 2), RANK)
    gathered, counts = comm.all_gather_v(own)
    np.testing.assert_array_equal(counts, np.arange(SIZE))
    np.testing.assert_array_equal(
        gathered, np.concatenate([np.full((r, 2), r) for r in range(SIZE)])
    )


def check_broadcast():
    for root in range(SIZE):
        value = comm.broadcast(tf.fill((3, 2), RANK), root)
        np.testing.assert_array_equal(value, np.full((3, 2), root))
    with pytest.raises(ValueError, match=f"root={SIZE}"):
        comm.broadcast(1.0, SIZE)


def check_gradients():
    """All against the sum of what the ranks differentiate."""
    values, splits = sent()
    values = tf.constant(values)
    with tf.GradientTape() as tape:
        tape.watch(values)
        received, _ = comm.all_to_all_v(values, splits)
        loss = tf.reduce_sum(received) * (RANK + 1)
    gradient = tape.gradient(loss, values)
    receivers = np.repeat(np.arange(SIZE) + 1.0, splits)
    np.testing.assert_array_equal(gradient, np.tile(receivers[:, None], (1, 3)))
    x = tf.constant([1.0, 2.0]) * (RANK + 1)
    weights = [
        tf.constant([[1.0, 10.0]]) * (rank + 2.0) for rank in range(SIZE)
    ]
    all_weights = tf.reduce_sum(weights, 0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        total = tf.reduce_sum(comm.all_reduce(x) * weights[RANK])
        mean = tf.reduce_sum(comm.all_reduce([x], "mean")[0] * weights[RANK])
        shared = tf.reduce_sum(comm.broadcast(x, 1) * weights[RANK])
        rows = tf.tile(x[None], (RANK, 1))
        gathered, _ = comm.all_gather_v(rows)
        gathered = tf.reduce_sum(gathered * weights[RANK])
    np.testing.assert_allclose(tape.gradient(total, x), all_weights[0])
    np.testing.assert_allclose(tape.gradient(mean, x), all_weights[0] / SIZE)
    np.testing.assert_allclose(
        tape.gradient(shared, x), all_weights[0] * (RANK == 1)
    )
    np.testing.assert_allclose(
        tape.gradient(gathered, x), all_weights[0] * RANK
    )
    with tf.GradientTape() as tape:
        tape.watch(x)
        largest = comm.all_reduce(x, "max", label="norm")
    with pytest.raises(LookupError, match="'norm'.*no gradient"):
        tape.gradient(largest, x)


def check_functions_keep_the_order():
    """Ops that nothing orders but the communicator, in a function."""

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = [comm.all_reduce(x * i) for i in range(5)]
            gathered, _ = comm.all_gather_v(x)
            for _ in tf.range(3):
                x = comm.all_reduce(x, "mean")
            if tf.reduce_sum(x) > 0.0:
                x = comm.broadcast(x, SIZE - 1)
            loss = tf.add_n(outputs) + tf.reduce_sum(gathered) + x
        return loss, tape.gradient(loss, x), gathered

    for _ in range(20):
        loss, _, gathered = step(tf.constant([RANK + 1.0]))
        total = SIZE * (SIZE + 1) / 2
        np.testing.assert_allclose(loss, [10 * total + total + total / SIZE])
        np.testing.assert_array_equal(gathered, np.arange(SIZE) + 1.0)
    graph = step.get_concrete_function(tf.constant([1.0]))
    assert graph.structured_outputs[2].shape.as_list() == [None]


def check_tf1_graphs():
    if not IS_MPI:
        with (
            tf.Graph().as_default(),
            pytest.raises(NotImplementedError, match="Use MPI"),
        ):
            comm.all_reduce(1.0)
        return
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 2])
        with comm.chain("first"):
            first = comm.broadcast(x, label="first")
        received, _ = comm.all_to_all_v(x, [1] * SIZE)
        outputs = [comm.all_reduce(x * i) for i in range(6)]
        loss = tf.reduce_sum(tf.add_n(outputs)) + tf.reduce_sum(received)
        gradient = tf.gradients(loss, x)[0]
        done = comm.barrier()
        with tf.compat.v1.Session() as session:
            own = np.full((SIZE, 2), RANK + 1.0)
            value = session.run(first, {x: own})
            np.testing.assert_array_equal(value, np.ones((SIZE, 2)))
            for _ in range(10):
                fetched = session.run([outputs, gradient, done], {x: own})
                total = SIZE * (SIZE + 1) / 2
                np.testing.assert_allclose(fetched[0][2][0], [2 * total] * 2)
                np.testing.assert_allclose(fetched[1], 15.0 * SIZE + 1)


def fails_on_all(call, message, own_message, failing=SIZE - 1):
    with pytest.raises(tf.errors.OpError) as caught:
        call()
    expected = own_message if failing == RANK else message
    assert re.search(expected, caught.value.message), caught.value.message


def check_errors_reach_all_ranks():
    last = SIZE - 1
    wrong = last == RANK
    fails_on_all(
        lambda: comm.all_to_all_v(
            tf.ones([SIZE]), [2 if wrong else 1] * SIZE, label="ids"
        ),
        f"Rank {last} could not take part in all_to_all_v 'ids'",
        f"add up to the {SIZE} rows given",
    )
    differ = "Ranks differ in (a )?collective"
    fails_on_all(
        lambda: comm.all_reduce(tf.ones([3 if wrong else 2]), label="x"),
        rf"rank {last} called all_reduce 'x' of sum float(32)? \[3\]",
        differ,
    )
    fails_on_all(
        lambda: comm.barrier() if wrong else comm.all_gather_v(tf.ones([1])),
        f"rank {last} called barrier",
        differ,
    )
    fails_on_all(
        lambda: (
            comm.broadcast(tf.ones([2]), 0, label="w")
            if wrong
            else comm.broadcast(tf.ones([2], tf.float64), 0, label="w")
        ),
        differ,
        differ,
    )
    # And go on as if nothing had happened.
    assert comm.all_reduce(1) == SIZE


for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
comm.barrier(label="end")
print("passed", flush=True)
