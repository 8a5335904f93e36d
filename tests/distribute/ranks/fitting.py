"""`fit`, `evaluate` and `predict` on ranks, against one process with all."""

import keras
import numpy as np
import tensorflow as tf
from fit_models import (
    alone,
    batch_of,
    dataset,
    divided,
    examples,
    rows_of_tables,
    together,
)

import embedra as hb
from embedra.distribute import job_communicator


comm = job_communicator()
RANK, SIZE = comm.rank, comm.size
DATA = examples(60)


def check_same(expected, own, tolerance=1e-4):
    for name, values in expected.items():
        # Of few examples it jumps where one comes to be before another.
        atol = 0.05 if name.endswith("auc") else tolerance
        np.testing.assert_allclose(own[name], values, atol=atol, err_msg=name)


def check_model(one, many, tolerance=5e-5):
    """Asserts that dense weights and rows are those of one process."""
    for a, b in zip(one.weights, many.weights, strict=True):
        np.testing.assert_allclose(b, a, atol=tolerance, err_msg=a.path)
    expected, own = rows_of_tables(one), rows_of_tables(many)
    for name, row in own.items():
        np.testing.assert_allclose(row, expected[name], atol=tolerance)
    counts, _ = comm.all_gather_v([len(own)])
    assert sum(counts.numpy()) == len(expected)
    weights = tf.concat([tf.reshape(w, [-1]) for w in many.weights], 0)
    of_all, _ = comm.all_gather_v(weights[None])
    assert np.ptp(of_all.numpy(), axis=0).max() == 0.0


def check_fit(sizes, make_optimizer, epochs=1, known=True, **settings):
    """Trains with batches of sizes of each rank, and in one process."""
    of_ranks, steps = divided(sizes, len(DATA[0]))
    own = [batch_of(DATA, rows) for rows in of_ranks[RANK]]
    of_all = [batch_of(DATA, rows) for rows in steps if rows]
    one, many = alone(make_optimizer()), together(make_optimizer(), **settings)
    if RANK:
        many.set_weights([2.0 * w + 1.0 for w in many.get_weights()])
    expected = one.fit(dataset(of_all), epochs=epochs, verbose=0)
    history = many.fit(
        dataset(own, known),
        epochs=epochs,
        validation_data=dataset(own[:1], known),
        callbacks=[hb.keras.callbacks.TableProgress()],
        verbose=0,
    )
    assert history.epoch == expected.epoch
    check_same(expected.history, history.history)
    check_model(one, many)
    assert history.history["table_rows"][-1] == len(rows_of_tables(one))
    return one, many, own, of_all


# D01: 5 batches and 3, the last ones short; D02: a batch without rows, and a
# rank without any data.
UNEVEN = {2: [[6, 6, 6, 6, 2], [8, 0, 3]], 3: [[6, 6, 6, 6, 2], [8, 0, 3], []]}
one, many, own, of_all = check_fit(
    UNEVEN[SIZE], lambda: keras.optimizers.SGD(0.5), epochs=2
)
print("uneven data, SGD", flush=True)

# Metrics of an evaluation are those of all data, predictions those of the own.
expected = one.evaluate(dataset(of_all), return_dict=True, verbose=0)
check_same(expected, many.evaluate(dataset(own), return_dict=True, verbose=0))
predicted = many.predict(dataset(own, known=False), verbose=0)
assert predicted.shape == (sum(len(batch[1]) for batch in own), 1)
if own:
    wanted = one.predict(dataset(own), verbose=0)
    np.testing.assert_allclose(predicted, wanted, atol=1e-5)
print("evaluate and predict", flush=True)

# The one model is trained by all ranks, which do the same.
check_fit(
    [[5, 5]] * SIZE,
    lambda: hb.DynamicEmbeddingOptimizer(
        keras.optimizers.Adagrad(
            0.3, clipnorm=0.05, gradient_accumulation_steps=2
        )
    ),
    known=False,
)
print("Adagrad, clipping, accumulation, unknown length", flush=True)

# The last batch has no rows on any rank: it is as if it were not there.
EMPTY = [[], *[[5, 4, 0]] * (SIZE - 1)]
check_fit(EMPTY, lambda: keras.optimizers.Adam(0.05, epsilon=1e-2))
print("Adam, no data on rank 0", flush=True)

if SIZE == 2:
    check_fit(
        [[6, 4, 2], [2]],
        lambda: hb.DynamicEmbeddingOptimizer(
            keras.optimizers.LossScaleOptimizer(
                keras.optimizers.SGD(0.5, global_clipnorm=0.1)
            )
        ),
    )
    print("SGD, joint clipping, loss scale", flush=True)
print("passed", flush=True)
