"""Shadow variables: the names with which functions were written for TFRA."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from numerics import assert_allclose


def variable(**kwargs):
    return de.Variable(dim=2, name="user", initializer=1.0, **kwargs)


@pytest.mark.parametrize("devices", [None, ["/CPU:0"] * 2], ids=["1", "2"])
def test_a_shadow_trains_in_a_function(devices):
    user = variable(devices=devices)
    shadow = de.shadow_ops.ShadowVariable(user, name="shadow")
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(1.0))

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            rows = de.shadow_ops.embedding_lookup(shadow, ids)
            loss = tf.reduce_sum(rows)
        gradients = tape.gradient(loss, [shadow])
        optimizer.apply_gradients(zip(gradients, [shadow], strict=True))
        return rows

    ids = tf.constant([7, 7, 8], tf.int64)
    assert_allclose(step(ids), np.ones((3, 2)))
    assert_allclose(step(ids), [[-1, -1], [-1, -1], [0, 0]])
    assert int(user.size()) == 2


def test_shadows_are_listed_under_names_of_their_own():
    user = variable()
    shadows = [de.shadow_ops.ShadowVariable(user) for _ in range(3)]
    assert len(user.trainable_store) == 3
    assert user.get_trainable_by_name("ShadowVariable") is shadows[0]
    for name, shadow in user.trainable_store.items():
        assert shadow.params is user
        assert shadow.name == name


def test_a_shadow_is_trainable_as_asked():
    user = variable()
    assert de.shadow_ops.ShadowVariable(user).trainable
    frozen = de.shadow_ops.ShadowVariable(user, trainable=False)
    assert not frozen.trainable
    with tf.GradientTape() as tape:
        rows = de.shadow_ops.embedding_lookup(frozen, [7])
        loss = tf.reduce_sum(rows)
    assert tape.gradient(loss, frozen) is None
    assert int(user.size()) == 0


def test_ragged_ids_and_the_width_that_is_expected():
    user = variable()
    shadow = de.shadow_ops.ShadowVariable(user)
    ids = tf.ragged.constant([[1, 2], [], [1]], dtype=tf.int64)
    rows = de.shadow_ops.embedding_lookup_unique(shadow, ids, 2)
    assert rows.to_list() == [[[1, 1]] * 2, [], [[1, 1]]]
    dense = de.shadow_ops.embedding_lookup_unique(
        shadow, [[1, 2]], 2, with_unique=False, name="lookup"
    )
    assert dense.shape == (1, 2, 2)
    with pytest.raises(ValueError, match=r"3.*'user'.*2"):
        de.shadow_ops.embedding_lookup_unique(shadow, ids, 3)


def test_other_lookups_take_a_shadow_for_its_variable():
    user = variable()
    shadow = de.shadow_ops.ShadowVariable(user)
    for lookup in (
        lambda **kwargs: de.embedding_lookup(shadow, [7], **kwargs),
        lambda **kwargs: de.embedding_lookup_unique(shadow, [7], **kwargs),
        lambda **kwargs: de.embedding_lookup_sparse(
            shadow, [[7]], None, **kwargs
        ),
        lambda **kwargs: de.safe_embedding_lookup_sparse(
            shadow, [[7]], **kwargs
        ),
    ):
        rows, trainable = lookup(return_trainable=True)
        assert trainable is shadow
        assert_allclose(rows, [[1, 1]])
    assert len(user.trainable_store) == 1


def test_something_that_is_no_variable_is_refused():
    with pytest.raises(TypeError, match=r"de\.Variable"):
        de.shadow_ops.ShadowVariable(tf.Variable(1.0))
