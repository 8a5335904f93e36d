"""Translated optimizers make the steps that the TF1 kernels make."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra import DynamicEmbeddingOptimizer
from embedra.layers import Embedding
from embedra.optimizers import UnsupportedOptimizerError, from_v1


v1 = tf.compat.v1.train

MAKERS = {
    "sgd": lambda: v1.GradientDescentOptimizer(0.1),
    "momentum": lambda: v1.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: v1.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: v1.AdagradOptimizer(0.1, 0.2),
    "adadelta": lambda: v1.AdadeltaOptimizer(1.0, 0.9, 1e-3),
    "adam": lambda: v1.AdamOptimizer(0.05, 0.8, 0.9, 1e-4),
    "ftrl": lambda: v1.FtrlOptimizer(
        0.1,
        learning_rate_power=-0.6,
        initial_accumulator_value=0.3,
        l1_regularization_strength=0.01,
        l2_regularization_strength=0.02,
        l2_shrinkage_regularization_strength=0.03,
        beta=0.1,
    ),
    "rmsprop": lambda: v1.RMSPropOptimizer(0.05, 0.8, 0.5, 1e-3),
    "plain rmsprop": lambda: v1.RMSPropOptimizer(0.05),
    "centered": lambda: v1.RMSPropOptimizer(0.05, 0.8, 0.5, centered=True),
    "proximal": lambda: v1.ProximalGradientDescentOptimizer(0.1, 0.01, 0.1),
    "proximal adagrad": lambda: v1.ProximalAdagradOptimizer(
        0.1, 0.2, 0.01, 0.1
    ),
}
STEPS = 8


def gradients():
    generator = np.random.default_rng(5)
    return generator.normal(size=(STEPS, 3, 4)).astype(np.float32)


def by_v1(optimizer, start):
    variable = tf.Variable(start)
    for gradient in gradients():
        optimizer.apply_gradients([(tf.constant(gradient), variable)])
    return variable.numpy()


@pytest.mark.parametrize("name", MAKERS)
def test_dense_weights_move_as_by_the_v1_kernel(name):
    start = np.full((3, 4), 0.3, np.float32)
    expected = by_v1(MAKERS[name](), start)
    variable = keras.Variable(start)
    optimizer = from_v1(MAKERS[name]())
    for gradient in gradients():
        optimizer.apply([tf.constant(gradient)], [variable])
    assert np.abs(expected - start).max() > 0.05
    np.testing.assert_allclose(
        np.asarray(variable), expected, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("name", MAKERS)
def test_rows_move_as_by_the_v1_kernel(name):
    start = np.full((3, 4), 0.3, np.float32)
    expected = by_v1(MAKERS[name](), start)
    layer = Embedding(
        4, embeddings_initializer=keras.initializers.Constant(0.3)
    )
    optimizer = DynamicEmbeddingOptimizer(from_v1(MAKERS[name]()))
    ids = np.array([0, 1, 2])
    for gradient in gradients():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(ids, training=True) * gradient)
        optimizer.apply(
            tape.gradient(loss, layer.trainable_variables),
            layer.trainable_variables,
        )
    np.testing.assert_allclose(
        layer(ids).numpy(), expected, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("as_variable", [True, False])
def test_a_rate_that_changes_is_followed(as_variable):
    def run(make_step, rate):
        for step, gradient in enumerate(gradients()):
            rate.assign(0.1 / (step + 1))
            make_step(gradient)

    rate = tf.Variable(0.1)
    given = rate if as_variable else lambda: rate.read_value()
    start = np.full((3, 4), 0.3, np.float32)
    expected = tf.Variable(start)
    reference = v1.MomentumOptimizer(lambda: rate.read_value(), 0.9)
    run(lambda g: reference.apply_gradients([(g, expected)]), rate)
    variable = keras.Variable(start)
    optimizer = from_v1(v1.MomentumOptimizer(given, 0.9))
    run(lambda g: optimizer.apply([tf.constant(g)], [variable]), rate)
    np.testing.assert_allclose(
        np.asarray(variable), expected.numpy(), rtol=1e-6, atol=1e-6
    )


def test_a_wrapped_optimizer_is_translated_too():
    wrapped = DynamicEmbeddingOptimizer(v1.AdagradOptimizer(0.3))
    found = from_v1(wrapped)
    assert isinstance(found, keras.optimizers.Adagrad)
    assert float(found.learning_rate) == pytest.approx(0.3)


def test_a_rule_that_is_not_known_is_refused():
    class Own(v1.GradientDescentOptimizer):
        def _resource_apply_dense(self, grad, handle):
            return handle.assign_add(grad)

    with pytest.raises(UnsupportedOptimizerError, match=r"Own.*AdamOptimizer"):
        from_v1(Own(0.1))
    with pytest.raises(UnsupportedOptimizerError, match="AdagradDA"):
        from_v1(v1.AdagradDAOptimizer(0.1, tf.Variable(0, dtype=tf.int64)))
