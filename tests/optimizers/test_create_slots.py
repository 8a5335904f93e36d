"""Slots of variables, by TFRA's name for making them."""

import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from numerics import assert_allclose


def test_new_slots_start_as_asked_for():
    variable = de.Variable(dim=2, devices=["CPU:0", "CPU:0"])
    variable.upsert([1, 2, 3], np.ones((3, 2), np.float32))
    slot = de.create_slots(
        variable, tf.constant_initializer(0.5), "average", "Mine", False
    )
    assert variable.get_slot_variables(None) == ["average"]
    assert slot.params is variable
    assert_allclose(slot.lookup([[1], [9]]).numpy(), np.full((2, 1, 2), 0.5))


def test_slots_of_an_optimizer_are_found():
    variable = de.Variable(dim=2)
    optimizer = de.DynamicEmbeddingOptimizer(
        tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)
    )
    optimizer.minimize(
        lambda: tf.reduce_sum(de.embedding_lookup(variable, [7, 7]))
    )
    trainable = variable.trainable_of(None)
    slot = de.create_slots(trainable, 0.0, "momentum", "Momentum", False)
    assert_allclose(slot.lookup([7, 8]).numpy(), [[2.0, 2.0], [0.0, 0.0]])


def test_slots_that_do_not_start_as_a_number_are_refused():
    variable = de.Variable(dim=2)
    with pytest.raises(ValueError, match="must start as one number"):
        de.create_slots(variable, tf.random_normal_initializer(), "a", "b")
