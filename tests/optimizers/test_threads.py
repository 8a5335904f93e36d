"""Threads that share an optimizer and a variable."""

import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import embedra.dynamic_embedding as de
from numerics import assert_allclose


THREADS = 4
STEPS = 8

# Rules whose step does not depend on how many were made before. The first of
# each family has a kernel, the second none.
OPTIMIZERS = {
    "keras_momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "keras_adadelta": lambda: keras.optimizers.Adadelta(0.1),
    "current_sgd": lambda: tf_keras.optimizers.SGD(0.1),
    "current_adadelta": lambda: tf_keras.optimizers.Adadelta(0.1),
    "legacy_momentum": lambda: tf_keras.optimizers.legacy.SGD(0.1, 0.9),
    "v1_sgd": lambda: tf.compat.v1.train.GradientDescentOptimizer(0.1),
    "v1_momentum": lambda: tf.compat.v1.train.MomentumOptimizer(0.1, 0.9),
}


def train(make, *, traced, threads):
    """Trains other rows, and another number of them, in each thread."""
    user = de.Variable(dim=3, name="user", initializer=1.0)
    optimizer = de.DynamicEmbeddingOptimizer(make())

    def step(ids, factor):
        with tf.GradientTape() as tape:
            rows, trainable = de.embedding_lookup(
                user, ids, return_trainable=True
            )
            loss = tf.reduce_sum(rows**2) * factor
        optimizer.apply_gradients([(tape.gradient(loss, trainable), trainable)])

    step(tf.constant([1000]), tf.constant(1.0))
    errors = []

    def work(number):
        # A function of its own, so that threads trace at the same time.
        own = tf.function(step) if traced else step
        ids = tf.range(10 * number, 11 * number + 3)
        try:
            for _ in range(STEPS):
                own(ids, tf.constant(0.1 * (number + 1)))
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    if threads:
        workers = [
            threading.Thread(target=work, args=(number,))
            for number in range(THREADS)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    else:
        for number in range(THREADS):
            work(number)
    assert not errors
    return user.lookup(np.arange(50))


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_threads_train_as_if_one_after_the_other(name, traced):
    expected = train(OPTIMIZERS[name], traced=traced, threads=False)
    rows = train(OPTIMIZERS[name], traced=traced, threads=True)
    assert_allclose(rows, expected)
