"""DynamicEmbeddingOptimizer as an object."""

import keras
import numpy as np
import pytest

from dense_reference import VOCABULARY, fit, table_model
from embedra.optimizers import DynamicEmbeddingOptimizer, TableOptimizer
from optimizers.test_against_dense import SignMomentum


O = keras.optimizers


def test_is_an_instance_of_the_optimizers_class():
    wrapped = DynamicEmbeddingOptimizer(O.Adam(0.5))
    assert isinstance(wrapped, O.Adam)
    assert isinstance(wrapped, TableOptimizer)
    assert float(wrapped.learning_rate) == 0.5


def test_takes_names_and_configs():
    assert isinstance(DynamicEmbeddingOptimizer("sgd"), O.SGD)
    config = O.serialize(O.Adam(0.25))
    assert float(DynamicEmbeddingOptimizer(config).learning_rate) == 0.25


def test_wrapping_twice_is_wrapping_once():
    wrapped = DynamicEmbeddingOptimizer("adam")
    assert DynamicEmbeddingOptimizer(wrapped) is wrapped


def test_optimizers_of_a_class_are_wrapped_in_one_class():
    """Keras never forgets one that it can save."""
    first, second = (DynamicEmbeddingOptimizer(O.Adam()) for _ in range(2))
    assert first is not second
    assert type(first) is type(second)


@pytest.mark.parametrize(
    "optimizer",
    [
        O.Adam(O.schedules.ExponentialDecay(0.1, 2, 0.5), global_clipnorm=2.0),
        O.SGD(0.5, momentum=0.25, gradient_accumulation_steps=3),
        O.LossScaleOptimizer(O.SGD(0.5), initial_scale=8.0),
    ],
)
def test_config_round_trip(optimizer):
    wrapped = DynamicEmbeddingOptimizer(optimizer)
    again = O.deserialize(O.serialize(wrapped))
    assert isinstance(again, TableOptimizer)
    assert isinstance(again, type(optimizer))
    assert again.get_config() == wrapped.get_config()


def test_setting_the_learning_rate_reaches_the_tables():
    model, rows = table_model()
    wrapped = DynamicEmbeddingOptimizer(O.SGD(0.1))
    fit(model, wrapped, steps=1)
    wrapped.learning_rate = 0.0
    before = rows()
    fit(model, wrapped, steps=1)
    np.testing.assert_array_equal(rows(), before)


def test_hyperparameters_set_later_reach_the_generic_update():
    def make(alpha):
        model, rows = table_model()
        optimizer = SignMomentum(0.5, 0.01)
        fit(model, optimizer, steps=1, run_eagerly=True)
        optimizer.alpha = alpha
        fit(model, optimizer, steps=2, run_eagerly=True)
        return rows()

    assert (make(0.5) != make(-5.0)).any()


def test_tables_alone_count_iterations():
    for optimizer in (
        O.Adam(),
        O.Adam(global_clipnorm=1.0),
        O.Adam(gradient_accumulation_steps=2),
    ):
        model, _ = table_model()
        variable = model.trainable_variables[0]
        wrapped = DynamicEmbeddingOptimizer(optimizer)
        wrapped.build([variable])
        import tensorflow as tf

        layer = model.layers[1]
        for _ in range(4):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(
                    layer(np.arange(VOCABULARY), training=True)
                )
            wrapped.apply_gradients([(tape.gradient(loss, variable), variable)])
        assert int(wrapped._iterations) == 4
