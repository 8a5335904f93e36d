"""Training on ranks with a part of each batch, against one rank with all."""

import keras
import numpy as np
import tensorflow as tf

from embedra import DynamicEmbeddingOptimizer, Table
from embedra.distribute import batch_share, communicator
from embedra.lookup import RowReader
from embedra.optimizers import TableVariable, apply_gradients


STEPS = 4
BATCH = 24
DIMS = {"user": 4, "item": 6}
SIGNATURE = [
    tf.TensorSpec([None], tf.int64),
    tf.TensorSpec([None, 3], tf.int64),
    tf.TensorSpec([None], tf.int64),
    tf.TensorSpec([None, 1], tf.float32),
]

comm = communicator()
RANK, SIZE = comm.rank, comm.size


class Trainer:
    """Two tables, dense weights, and a step in a `tf.function`."""

    def __init__(self, comm, optimizer, wire_dtype="float32", uneven=False):
        self.comm = comm
        self.uneven = uneven
        self.tables = [
            Table(dim, name=name, seed=3, communicator=comm)
            for name, dim in DIMS.items()
        ]
        self.stand_ins = [TableVariable(table) for table in self.tables]
        self.readers = [
            RowReader(table, variable, "initializer", wire_dtype)
            for table, variable in zip(self.tables, self.stand_ins, strict=True)
        ]
        initial = np.random.default_rng(2).normal(size=(10, 1)) * 0.3
        self.dense = [
            keras.Variable(initial, dtype="float32"),
            keras.Variable([0.1]),
            # A static table, whose gradients are slices.
            keras.Variable(np.ones((5, 1)), dtype="float32"),
        ]
        self.plain = optimizer
        self.optimizer = DynamicEmbeddingOptimizer(optimizer)
        self.optimizer.build(self.stand_ins + self.dense)
        self.step = tf.function(self._step, input_signature=SIGNATURE)

    def _step(self, users, items, days, labels):
        count = tf.shape(labels)[0]
        with tf.GradientTape() as tape:
            user, item = (
                reader.rows(reader.keys(ids, True), True)
                for reader, ids in zip(
                    self.readers, [users, items], strict=True
                )
            )
            features = tf.concat([user, tf.reduce_sum(item, 1)], -1)
            weights, bias, by_day = (v.value for v in self.dense)
            logits = features @ weights + bias + tf.gather(by_day, days)
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
            loss = tf.math.divide_no_nan(
                tf.reduce_sum(losses), tf.cast(count, tf.float32)
            )
            if self.uneven:
                loss *= batch_share(self.comm, count) * self.comm.size
        variables = [*self.stand_ins, *self.dense]
        gradients = tape.gradient(loss, variables)
        if self.comm.size == 1:
            # Not together with the other ranks, which train the same.
            tables = zip(self.tables, gradients, strict=False)
            for table, gradient in tables:
                apply_gradients(table, self.plain, gradient)
            number = len(self.tables)
            self.plain.apply(gradients[number:], variables[number:])
            return
        self.optimizer.apply(gradients, variables)

    def records(self):
        found = {}
        for table in self.tables:
            for chunk in table.export_chunks():
                for i, key in enumerate(chunk.keys):
                    slots = chunk.slots[i] if len(chunk.slots) else []
                    found[table.name, int(key)] = chunk.rows[i], slots
        return found


def batches():
    """All examples of each step; a quarter of the ids are never seen twice."""
    rng = np.random.default_rng(1)
    for step in range(STEPS):
        users = rng.integers(-20, 20, BATCH)
        users[::4] = 10**12 + np.arange(len(users[::4])) + 100 * step
        items = rng.integers(0, 30, (BATCH, 3))
        days = rng.integers(0, 5, BATCH)
        labels = rng.integers(0, 2, (BATCH, 1)).astype(np.float32)
        yield users, items, days, labels


def part_of(batch, step, uneven):
    """What this rank has of a batch: an equal part, or none in some steps."""
    bounds = np.linspace(0, BATCH, SIZE + 1).astype(int)
    if uneven:
        # Rank 0 has most, and all of the second batch.
        bounds[1:-1] = BATCH if step == 1 else BATCH - SIZE + 1
        bounds[1:-1] += 0 if step == 1 else np.arange(SIZE - 1)
    return [each[bounds[RANK] : bounds[RANK + 1]] for each in batch]


def trained_by_one(optimizer):
    trainer = Trainer(communicator("single"), optimizer)
    for batch in batches():
        trainer.step(*batch)
    return trainer


def check(everything, optimizer, tolerance=2e-5, uneven=False, **settings):
    shared = Trainer(comm, optimizer, uneven=uneven, **settings)
    for step, batch in enumerate(batches()):
        shared.step(*part_of(batch, step, uneven))
    for one, many in zip(everything.dense, shared.dense, strict=True):
        np.testing.assert_allclose(many, one, atol=tolerance)
    expected, own = everything.records(), shared.records()
    for name, (row, slots) in own.items():
        np.testing.assert_allclose(row, expected[name][0], atol=tolerance)
        np.testing.assert_allclose(slots, expected[name][1], atol=tolerance)
    counts, _ = comm.all_gather_v([len(own)])
    # Each key is on one rank, and all have about as many.
    assert sum(counts.numpy()) == len(expected)
    assert min(counts.numpy()) > 0.5 * len(expected) / SIZE
    weights, _ = comm.all_gather_v(shared.dense[0].value[None])
    assert np.ptp(weights.numpy(), axis=0).max() == 0.0


for make_optimizer in (
    lambda: keras.optimizers.SGD(0.5),
    lambda: keras.optimizers.Adagrad(0.3),
    lambda: keras.optimizers.Adam(0.05, epsilon=1e-4),
):
    reference = trained_by_one(make_optimizer())
    check(reference, make_optimizer())
    check(reference, make_optimizer(), uneven=True)
    if isinstance(make_optimizer(), keras.optimizers.SGD):
        for dtype in ("bfloat16", "float16"):
            check(reference, make_optimizer(), 5e-3, wire_dtype=dtype)
print("passed", flush=True)
