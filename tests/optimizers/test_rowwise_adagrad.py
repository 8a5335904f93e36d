"""RowwiseAdagrad on dense variables and its config."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.optimizers import RowwiseAdagrad
from numerics import assert_allclose


def test_matrix_has_one_accumulator_per_row():
    variable = keras.Variable(np.ones((2, 3)), dtype="float32")
    optimizer = RowwiseAdagrad(0.5, initial_accumulator_value=0.2)
    grad = np.float32([[1, 2, 3], [0, 0, 4]])
    expected = np.ones((2, 3))
    accumulator = np.full((2, 1), 0.2)
    for _ in range(3):
        optimizer.apply_gradients([(tf.constant(grad), variable)])
        accumulator += (grad**2).mean(axis=1, keepdims=True)
        expected -= 0.5 * grad / np.sqrt(accumulator + 1e-7)
    assert_allclose(variable.numpy(), expected)
    assert optimizer.variables[-1].shape == (2, 1)


def test_vector_is_updated_as_by_adagrad():
    ours = keras.Variable(np.ones(3), dtype="float32")
    theirs = keras.Variable(np.ones(3), dtype="float32")
    grad = tf.constant([1.0, 2.0, 3.0])
    RowwiseAdagrad(0.5).apply_gradients([(grad, ours)])
    keras.optimizers.Adagrad(0.5).apply_gradients([(grad, theirs)])
    assert_allclose(ours.numpy(), theirs.numpy())


def test_slices_are_summed_first():
    variable = keras.Variable(np.zeros((4, 2)), dtype="float32")
    slices = tf.IndexedSlices(
        tf.ones((2, 2)), tf.constant([1, 1]), tf.constant([4, 2])
    )
    RowwiseAdagrad(1.0, 0.0).apply_gradients([(slices, variable)])
    assert_allclose(variable.numpy()[1], [-1.0, -1.0], atol=1e-5)


def test_config_round_trip():
    optimizer = RowwiseAdagrad(0.5, 0.3, 1e-3, clipnorm=2.0)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.get_config() == optimizer.get_config()


def test_negative_start_is_refused():
    with pytest.raises(ValueError, match="negative"):
        RowwiseAdagrad(initial_accumulator_value=-1.0)
