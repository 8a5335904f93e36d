"""Arguments that are refused, with the variable's name and what was given."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra import optimizers


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": None}, TypeError, "`name`.*string.*None"),
        ({"name": ""}, ValueError, "`name`.*empty"),
        ({"devices": 3}, TypeError, "`devices`.*'user'.*3"),
        ({"devices": ["/CPU:0", 0]}, TypeError, "`devices`.*'user'.*0"),
        ({"partitioner": "hash"}, TypeError, "`partitioner`.*'user'.*'hash'"),
        ({"init_size": -1}, ValueError, "`init_size`.*'user'.*-1"),
        ({"kv_creator": "cuckoo"}, TypeError, "`kv_creator`.*'user'.*'cuckoo'"),
        (
            {"kv_creator": de.CuckooHashTableCreator},
            TypeError,
            "`kv_creator`.*'user'.*CuckooHashTableCreator",
        ),
        (
            {"restrict_policy": "lru"},
            TypeError,
            "`restrict_policy`.*'user'.*'lru'",
        ),
    ],
)
def test_arguments_of_a_wrong_kind_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        de.Variable(**{"name": "user", **arguments})


@pytest.mark.parametrize("max_norm", [0, -1.0])
def test_max_norm_must_be_positive(max_norm):
    user = de.Variable(dim=2, name="user")
    shadow = de.shadow_ops.ShadowVariable(user, max_norm=max_norm)
    for look_up in (
        lambda: de.embedding_lookup(user, [1], max_norm=max_norm),
        lambda: de.embedding_lookup_sparse(
            user, [[1]], None, max_norm=max_norm
        ),
        lambda: de.shadow_ops.embedding_lookup(shadow, [1]),
    ):
        with pytest.raises(ValueError, match=r"`max_norm`.*'user'.*positive"):
            look_up()


@pytest.mark.parametrize("devices", [None, ["/CPU:0"] * 3])
@pytest.mark.parametrize("ids", [[], [[], []]])
def test_empty_lists_are_strings_too(ids, devices):
    word = de.Variable(tf.string, dim=2, name="word", devices=devices)
    assert de.embedding_lookup(word, ids).shape == (*np.shape(ids), 2)
    assert int(word.size()) == 0


def test_errors_in_functions_are_those_of_eager_code():
    user = de.Variable(dim=2, name="user")
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.Adafactor())

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            rows, trainable = de.embedding_lookup(
                user, ids, return_trainable=True
            )
            loss = tf.reduce_sum(rows)
        optimizer.apply_gradients([(tape.gradient(loss, trainable), trainable)])

    with pytest.raises(TypeError, match="'user' needs integer or string ids"):
        step(tf.constant([1.0]))
    with pytest.raises(
        optimizers.UnsupportedOptimizerError, match="cannot update table 'user'"
    ):
        step(tf.constant([1]))


def test_variables_that_a_tape_has_watched_can_be_trained():
    """They are the inner ones, which Keras optimizers know too."""
    rows = {}
    for name in ("plain", "wrapped"):
        user = de.Variable(dim=2, name="user", initializer=1.0)
        dense = tf.Variable([[2.0], [3.0]])
        optimizer = keras.optimizers.Adam(0.1)
        if name == "wrapped":
            optimizer = de.DynamicEmbeddingOptimizer(optimizer)
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(de.embedding_lookup(user, [1, 1]) @ dense)
            variables = tape.watched_variables()
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
        rows[name] = np.r_[user.lookup([1]).numpy()[0], dense.numpy()[:, 0]]
    np.testing.assert_allclose(rows["plain"], rows["wrapped"], rtol=1e-6)
    assert np.all(rows["plain"] < [0.8, 0.8, 1.8, 2.8])
