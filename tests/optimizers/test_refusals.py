"""What cannot work is refused, with what to do instead."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from dense_reference import fit, table_model
from embedra.layers import Embedding
from embedra.optimizers import (
    DynamicEmbeddingOptimizer,
    UnsupportedOptimizerError,
)


O = keras.optimizers


@pytest.mark.parametrize("cls", [O.Adafactor, O.Muon, O.ScheduleFreeAdamW])
@pytest.mark.parametrize("wrap", [lambda o: o, DynamicEmbeddingOptimizer])
def test_optimizers_that_are_not_elementwise(cls, wrap):
    model, rows = table_model()
    before = rows()
    with pytest.raises(UnsupportedOptimizerError, match=cls.__name__):
        fit(model, wrap(cls()), steps=1)
    np.testing.assert_array_equal(rows(), before)


@pytest.mark.parametrize(
    "setting", [{"gradient_accumulation_steps": 2}, {"global_clipnorm": 1.0}]
)
def test_settings_that_need_the_wrapper_name_it(setting):
    model, _ = table_model()
    with pytest.raises(
        UnsupportedOptimizerError, match=r"DynamicEmbeddingOptimizer"
    ):
        fit(model, O.Adam(**setting), steps=1)


@pytest.mark.parametrize("wrap", [lambda o: o, DynamicEmbeddingOptimizer])
def test_moving_averages(wrap):
    model, _ = table_model()
    with pytest.raises(UnsupportedOptimizerError, match="use_ema"):
        fit(model, wrap(O.Adam(use_ema=True)), steps=1)


def test_global_clipping_of_accumulated_gradients():
    with pytest.raises(UnsupportedOptimizerError, match="only one"):
        DynamicEmbeddingOptimizer(
            O.SGD(global_clipnorm=1.0, gradient_accumulation_steps=2)
        )


def test_slot_that_does_not_start_as_a_constant():
    class Noisy(O.Optimizer):
        def build(self, variables):
            super().build(variables)
            self.noise = self.add_optimizer_variables(
                variables, "noise", initializer="random_normal"
            )

        def update_step(self, gradient, variable, learning_rate):
            self.assign_sub(variable, gradient * learning_rate)

    layer = Embedding(2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.array([1]), training=True))
    grad = tape.gradient(loss, layer.embeddings)
    with pytest.raises(UnsupportedOptimizerError, match="constant"):
        Noisy(0.1).apply_gradients([(grad, layer.embeddings)])


def test_gradient_without_an_optimizer():
    layer = Embedding(2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.array([1]), training=True))
    grad = tape.gradient(loss, layer.embeddings)
    with pytest.raises(RuntimeError, match="apply_gradients"):
        layer.embeddings.assign(grad)


def test_dense_gradient():
    layer = Embedding(2)
    with pytest.raises(TypeError, match="IndexedSlices"):
        O.SGD().apply_gradients([(tf.zeros((5, 2)), layer.embeddings)])
