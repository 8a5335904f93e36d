"""The example with which keras-style programming with `de` began.

A function looks rows up and returns them together with what stands for them;
gradients and updates are outside of it, or in it.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de


def make_variable(name="seed"):
    return de.Variable(dim=2, name=name, initializer=1.0)


@tf.function
def foo(devar, ids):
    lookup_result, trainable = de.embedding_lookup(
        devar, ids, return_trainable=True
    )
    return lookup_result, trainable


def test_a_function_returns_what_stands_for_rows():
    devar = make_variable()
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(0.5))
    for step in range(3):
        with tf.GradientTape() as tape:
            rows, trainable = foo(devar, tf.constant([1, 2, 2], tf.int64))
            loss = tf.reduce_sum(rows * [[1.0], [2.0], [3.0]])
        assert isinstance(trainable, de.TrainableWrapper)
        (gradient,) = tape.gradient(loss, [trainable])
        optimizer.apply_gradients([(gradient, trainable)])
        np.testing.assert_allclose(
            devar.lookup([1, 2]).numpy(),
            1.0 - (step + 1) * np.array([[0.5, 0.5], [2.5, 2.5]]),
        )
    assert int(devar.size()) == 2


def step_eager(devar, optimizer, ids):
    with tf.GradientTape() as tape:
        rows, trainable = de.embedding_lookup(devar, ids, return_trainable=True)
        loss = tf.reduce_sum(rows**2)
    gradients = tape.gradient(loss, [trainable])
    optimizer.apply_gradients(zip(gradients, [trainable], strict=True))
    return loss


def step_nested(devar, optimizer, ids):
    @tf.function
    def inner(ids):
        return de.embedding_lookup(devar, ids, return_trainable=True)

    with tf.GradientTape() as tape:
        rows, trainable = inner(ids)
        loss = tf.reduce_sum(rows**2)
    gradients = tape.gradient(loss, [trainable])
    optimizer.apply_gradients(zip(gradients, [trainable], strict=True))
    return loss


OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.1),
    "adam": lambda: keras.optimizers.Adam(0.1),
    "nadam": lambda: keras.optimizers.Nadam(0.1),
}


@pytest.mark.parametrize("wrap", [True, False], ids=["wrapped", "plain"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_f01_eager_function_and_nested_function_agree(name, wrap):
    results = []
    for how in ("eager", "function", "nested", "function of nested"):
        devar = make_variable()
        optimizer = OPTIMIZERS[name]()
        if wrap:
            optimizer = de.DynamicEmbeddingOptimizer(optimizer)
        step = step_nested if "nested" in how else step_eager
        if how.startswith("function"):
            step = tf.function(step)
        for ids in ([1, 2, 2], [2, 3], [5], [1, 5]):
            loss = step(devar, optimizer, tf.constant(ids, tf.int64))
            assert np.isfinite(float(loss))
        assert int(devar.size()) == 4
        results.append(devar.lookup([1, 2, 3, 5]).numpy())
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-6)
    assert np.abs(results[0] - 1.0).min() > 1e-3


def test_slots_are_made_in_functions_on_first_and_later_calls():
    devar = make_variable()
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1))
    step = tf.function(step_eager)
    for ids in ([1], [2, 3]):
        step(devar, optimizer, tf.constant(ids, tf.int64))
    assert devar.tables[0].slot_names == ("momentum", "velocity")
