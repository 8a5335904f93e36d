"""Rows that are not in a batch do not move; those that are move once."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.layers import Embedding
from embedra.optimizers import TableVariable, apply_gradients
from embedra.table import Table
from optimizers.test_against_dense import OPTIMIZERS


def _step(layer, optimizer, ids):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.asarray(ids), training=True))
    optimizer.apply_gradients(
        [(tape.gradient(loss, layer.embeddings), layer.embeddings)]
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_other_rows_stay_bit_for_bit(name):
    layer = Embedding(4, embeddings_initializer="ones")
    optimizer = OPTIMIZERS[name]()
    optimizer.weight_decay = 0.1
    _step(layer, optimizer, [1])
    before = layer.table.lookup([1]).numpy()
    _step(layer, optimizer, [2])
    np.testing.assert_array_equal(layer.table.lookup([1]), before)
    assert (layer.table.lookup([2]).numpy() != 1).all()


def test_repeated_row_is_clipped_after_summing():
    for setting, limit in (("clipnorm", 1.0), ("clipvalue", 0.5)):
        layer = Embedding(4, embeddings_initializer="zeros")
        optimizer = keras.optimizers.SGD(1.0, **{setting: limit})
        _step(layer, optimizer, [7, 7, 7])
        move = layer.table.lookup([7]).numpy()
        size = (
            np.linalg.norm(move) if setting == "clipnorm" else abs(move).max()
        )
        assert size == pytest.approx(limit)


def test_zero_rows_change_nothing():
    layer = Embedding(4)
    optimizer = keras.optimizers.Adam()
    for shape in ((0,), (0, 3), (3, 0)):
        _step(layer, optimizer, np.zeros(shape, np.int64))
    assert layer.size() == 0


def test_one_layer_called_twice_steps_shared_rows_once():
    layer = Embedding(2, embeddings_initializer="zeros")
    optimizer = keras.optimizers.SGD(1.0)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.array([[1], [2]]), training=True))
        loss += tf.reduce_sum(layer(np.array([[2, 3, 2]]), training=True))
    optimizer.apply_gradients(
        [(tape.gradient(loss, layer.embeddings), layer.embeddings)]
    )
    rows = layer.table.lookup([1, 2, 3]).numpy()
    assert rows[:, 0].tolist() == [-1, -3, -1]


def test_apply_gradients_works_without_keras_models():
    table = Table(2, name="t", initializer="zeros")
    rows = TableVariable(table)
    layer = Embedding(2, embeddings_initializer="zeros")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.array([5]), training=True))
    grad = tape.gradient(loss, layer.embeddings)
    apply_gradients(layer.table, keras.optimizers.SGD(0.5), grad)
    assert layer.table.lookup([5]).numpy().tolist() == [[-0.5, -0.5]]
    assert rows.shape == (0, 2)


def test_step_of_the_table_follows_the_optimizer():
    layer = Embedding(2)
    optimizer = keras.optimizers.Lion()
    for _ in range(3):
        _step(layer, optimizer, [1])
    assert layer.table.step == 3
    assert int(optimizer.iterations) == 3
