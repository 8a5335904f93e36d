"""What stands for rows, where it goes and how it is told from variables."""

import gc

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from numerics import assert_allclose


def variable(devices=None):
    return de.Variable(dim=2, name="user", initializer=1.0, devices=devices)


def optimizer():
    return de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(1.0))


def gradient_of(user, ids):
    with tf.GradientTape() as tape:
        rows, trainable = de.embedding_lookup(user, ids, return_trainable=True)
        loss = tf.reduce_sum(rows)
    return tape.gradient(loss, trainable), trainable


IDS = tf.constant([7, 7, 8], tf.int64)
MOVED = [[-1.0, -1.0], [0.0, 0.0]]


@pytest.mark.parametrize("devices", [None, ["/CPU:0"] * 2], ids=["1", "2"])
@pytest.mark.parametrize("outer", [False, True], ids=["outside", "in function"])
def test_a_function_hands_a_trainable_to_another(outer, devices):
    user, optimizing = variable(devices), optimizer()

    @tf.function
    def differentiate(ids):
        return gradient_of(user, ids)

    @tf.function
    def update(gradient, trainable):
        optimizing.apply_gradients([(gradient, trainable)])

    def step(ids):
        gradient, trainable = differentiate(ids)
        update(gradient, trainable)
        return trainable

    trainable = (tf.function(step) if outer else step)(IDS)
    assert trainable is user.trainable_of(None)
    assert_allclose(user.lookup([7, 8]), MOVED)


def test_trainables_leave_functions_in_structures():
    user = variable()

    @tf.function
    def look_up(ids):
        rows, trainable = de.embedding_lookup(user, ids, return_trainable=True)
        return {"rows": rows, "deep": [(trainable, tf.constant(1))]}

    for _ in range(2):
        result = look_up(IDS)
        assert result["deep"][0][0] is user.trainable_of(None)


def test_one_function_serves_several_variables():
    traces = []

    @tf.function
    def look_up(user, ids):
        traces.append(user)
        return de.embedding_lookup(user, ids, return_trainable=True)

    users = [variable(), variable()]
    for _ in range(2):
        for user in users:
            with tf.GradientTape() as tape:
                rows, trainable = look_up(user, IDS)
                loss = tf.reduce_sum(rows)
            assert trainable.params is user
            assert tape.gradient(loss, trainable) is not None
    assert traces == users


def test_a_function_is_traced_anew_for_the_trainable_of_another_variable():
    """Even if that is where the first one was in memory."""
    optimizing = optimizer()

    @tf.function(reduce_retracing=False)
    def update(gradient, trainable):
        optimizing.apply_gradients([(gradient, trainable)])

    for _ in range(5):
        user = variable()
        update(*gradient_of(user, IDS))
        assert_allclose(user.lookup([7, 8]), MOVED)
        del user
        gc.collect()


def test_a_trainable_holds_no_rows():
    user = variable()
    trainable = user.trainable_of("x")
    de.embedding_lookup(user, np.arange(1000), name="x")
    assert trainable.shape == (0, 2)
    assert trainable.read_value().shape == (0, 2)
    assert trainable.read_value(do_prefetch=False).shape == (0, 2)


def test_an_assigned_gradient_needs_an_optimizer():
    gradient, trainable = gradient_of(variable(), IDS)
    with pytest.raises(RuntimeError, match=r"'user'.*apply_gradients"):
        trainable.assign(gradient)


def test_a_dense_gradient_is_refused():
    user = variable()
    gradient, trainable = gradient_of(user, IDS)
    with pytest.raises(TypeError, match=r"'user'.*IndexedSlices"):
        keras.optimizers.SGD().apply_gradients(
            [(tf.convert_to_tensor(gradient), trainable)]
        )


def test_the_filter_parts_tables_from_dense_variables():
    user, dense = variable(), keras.Variable(1.0)
    trainable = user.trainable_of("x")
    plain = tf.Variable(1.0)
    pairs = [(None, plain), (None, trainable), (None, dense)]
    tables, others = de.trainable_wrapper_filter(pairs)
    assert tables == [pairs[1]]
    assert others == [pairs[0], pairs[2]]

    variables = [plain, trainable.value, trainable, dense]
    tables, others = de.trainable_wrapper_filter(variables)
    assert [v is w for v, w in zip(tables, variables[1:3], strict=True)]
    assert len(others) == 2

    tables, others = de.trainable_wrapper_filter(
        [{"it": trainable}, {"it": plain}], lambda element: element["it"]
    )
    assert tables == [{"it": trainable}]
    assert others == [{"it": plain}]


def test_the_filter_knows_trainables_in_functions():
    user, counts = variable(), []

    @tf.function
    def look_up(ids):
        _, trainable = de.embedding_lookup(user, ids, return_trainable=True)
        counts.append(len(de.trainable_wrapper_filter([trainable])[0]))

    look_up(IDS)
    assert counts == [1]


def test_variables_and_their_memory_go_when_nothing_holds_them():
    user = variable()
    gradient, trainable = gradient_of(user, IDS)
    optimizing = optimizer()
    optimizing.apply_gradients([(gradient, trainable)])
    handle = user.tables[0].resource_handle
    del user, trainable, gradient, optimizing
    gc.collect()
    from embedra import _ops

    with pytest.raises(tf.errors.FailedPreconditionError, match="'user'"):
        _ops.table_size([handle])
