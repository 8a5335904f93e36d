"""Cases of gradients, through the names of `embedra.dynamic_embedding`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de

from .reference import DenseTwin, assert_close, random_rows


KEYS = np.arange(6) * 11 - 20
DEVICES = pytest.mark.parametrize(
    "devices", [None, ["/CPU:0"] * 3], ids=["one table", "three tables"]
)
OPTIMIZERS = pytest.mark.parametrize(
    "optimizer",
    [
        keras.optimizers.SGD(0.5),
        keras.optimizers.Adagrad(0.5),
        keras.optimizers.Adam(0.5),
        keras.optimizers.Ftrl(0.5),
        keras.optimizers.Nadam(0.5),
    ],
    ids=lambda optimizer: optimizer.name,
)


def variable(devices=None, name="ids"):
    made = de.Variable(dim=3, name=name, devices=devices)
    made.upsert(KEYS, random_rows(6, 3))
    return made


def copy_of(optimizer):
    config = keras.optimizers.serialize(optimizer)
    return keras.optimizers.deserialize(config)


def train(user, optimizer, batches, loss_of):
    """Trains a variable on `loss_of(*rows)`, a lookup for each batch of ids."""
    optimizer = de.DynamicEmbeddingOptimizer(copy_of(optimizer))
    for batch in batches:
        with tf.GradientTape() as tape:
            found = [
                de.embedding_lookup(user, ids, return_trainable=True)
                for ids in batch
            ]
            loss = loss_of(*[rows for rows, _ in found])
        trainables = [found[0][1]]
        gradients = tape.gradient(loss, trainables)
        optimizer.apply_gradients(zip(gradients, trainables, strict=True))
    return user.lookup(KEYS).numpy()


def train_twin(optimizer, batches, loss_of):
    """The same with a dense matrix."""
    twin, optimizer = DenseTwin(KEYS, random_rows(6, 3)), copy_of(optimizer)
    for batch in batches:
        with tf.GradientTape() as tape:
            loss = loss_of(*[twin(ids) for ids in batch])
        variables = twin.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
    return twin.matrix.numpy()


@DEVICES
def test_f01_eager_function_and_nested_function_agree(devices):
    factors = np.float32([[1, 10, 2], [2, 20, 3], [4, 40, 5]])
    ids = tf.constant([KEYS[2], KEYS[0], KEYS[2]])
    results = []
    for how in ("eager", "function", "nested"):
        user = variable(devices)

        def look_up(ids, user=user):
            return de.embedding_lookup(user, ids, return_trainable=True)

        if how != "eager":
            look_up = tf.function(look_up)
        if how == "nested":
            inner = look_up
            look_up = tf.function(lambda ids, inner=inner: inner(ids))
        optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(0.5))
        for _ in range(2):
            with tf.GradientTape() as tape:
                rows, trainable = look_up(ids)
                loss = tf.reduce_sum(rows * factors)
            gradient = tape.gradient(loss, trainable)
            np.testing.assert_array_equal(gradient.values, factors)
            optimizer.apply_gradients([(gradient, trainable)])
        results.append(user.lookup(KEYS).numpy())
    expected = random_rows(6, 3)
    expected[2] -= factors[0] + factors[2]
    expected[0] -= factors[1]
    for result in results:
        assert_close(result, expected)


@DEVICES
@pytest.mark.parametrize("wrapped", [True, False], ids=["wrapped", "plain"])
def test_f02_tables_and_dense_weights_train_in_a_custom_loop(wrapped, devices):
    """Rows and a dense layer move as a dense matrix and that layer do."""

    def dense():
        layer = keras.layers.Dense(1, kernel_initializer="ones")
        layer.build((None, 3))
        return layer

    batches = np.random.default_rng(1).permuted(np.tile(KEYS, (8, 2)), axis=1)
    user, tower = variable(devices), dense()
    optimizer = keras.optimizers.Adam(0.1)
    if wrapped:
        optimizer = de.DynamicEmbeddingOptimizer(optimizer)

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            rows, trainable = de.embedding_lookup(
                user, ids, return_trainable=True
            )
            loss = tf.reduce_mean(tf.sin(tower(rows)))
        variables = [trainable, *tower.trainable_variables]
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    twin, twin_tower = DenseTwin(KEYS, random_rows(6, 3)), dense()
    twin_optimizer = keras.optimizers.Adam(0.1)
    for ids in batches:
        step(tf.constant(ids))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.sin(twin_tower(twin(ids))))
        variables = twin.trainable_variables + twin_tower.trainable_variables
        twin_optimizer.apply(tape.gradient(loss, variables), variables)
    assert_close(user.lookup(KEYS), twin.matrix)
    assert_close(tower.kernel, twin_tower.kernel)
    assert not np.allclose(user.lookup(KEYS), random_rows(6, 3))


@DEVICES
@OPTIMIZERS
def test_f03_lookups_of_other_shapes_in_a_step_are_joined(optimizer, devices):
    generator = np.random.default_rng(4)
    batches = [
        (
            generator.permutation(KEYS)[:, np.newaxis],
            generator.choice(KEYS, size=(6, 5)),
        )
        for _ in range(3)
    ]

    def loss_of(narrow, wide):
        return tf.reduce_sum(narrow**2) + tf.reduce_sum(tf.sin(wide))

    start = random_rows(6, 3)
    actual = train(variable(devices), optimizer, batches, loss_of)
    assert_close(actual, train_twin(optimizer, batches, loss_of))
    assert np.all(actual != start)


@DEVICES
@OPTIMIZERS
def test_f04_repeated_ids_are_summed_and_stepped_once(optimizer, devices):
    seven, nine = KEYS[:2]
    batches = [(np.array([seven, seven, seven, nine, *KEYS[2:]]),)] * 2

    def loss_of(rows):
        return tf.reduce_sum(rows**2)

    actual = train(variable(devices), optimizer, batches, loss_of)
    assert_close(actual, train_twin(optimizer, batches, loss_of))
    assert np.all(actual[:2] != random_rows(6, 3)[:2])


def test_rows_train_as_those_of_a_keras_embedding():
    """SGD, for which repeats may be summed before or after the step."""
    layer = keras.layers.Embedding(6, 3)
    layer.build(None)
    layer.embeddings.assign(random_rows(6, 3))
    ids = np.array([[0, 3, 3], [5, 0, 1]])
    optimizer = keras.optimizers.SGD(0.5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids) ** 2)
    variables = layer.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    actual = train(
        variable(),
        keras.optimizers.SGD(0.5),
        [(KEYS[ids],)],
        lambda rows: tf.reduce_sum(rows**2),
    )
    assert_close(actual, layer.embeddings)


@DEVICES
def test_f05_a_frozen_variable_does_not_change_and_learns_when_thawed(devices):
    user = variable(devices)
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(0.5))
    dense = keras.Variable(1.0)

    def step(ids):
        with tf.GradientTape() as tape:
            rows, trainable = de.embedding_lookup(
                user, ids, return_trainable=True
            )
            loss = tf.reduce_sum(rows * dense.value)
        variables = [trainable, dense]
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    step([KEYS[0]])
    before = user.lookup(KEYS).numpy()
    assert not np.array_equal(before, random_rows(6, 3))
    user.trainable = False
    step([*KEYS, 1000])
    np.testing.assert_array_equal(user.lookup(KEYS), before)
    assert int(user.size()) == 6
    user.trainable = True
    step([KEYS[1], 1000])
    assert int(user.size()) == 7
    assert np.all(user.lookup(KEYS).numpy()[1] != before[1])


@DEVICES
@pytest.mark.parametrize("max_norm", [None, 1.2])
def test_f08_gradients_equal_central_differences(devices, max_norm):
    """Two tables of other widths, pooled and not, and a dense kernel."""
    items = variable(devices)
    tags = de.Variable(dim=2, name="tags", devices=devices)
    tags.upsert([1, 2, 3], random_rows(3, 2, seed=1))
    kernel = tf.Variable(random_rows(5, 1, seed=2))
    weights = tf.Variable([1.0, 0.5, 2.0, 1.5])
    ids = KEYS[[0, 2, 0]]
    places = [[0, 0], [0, 1], [1, 0], [2, 1]]

    def forward():
        rows, of_items = de.embedding_lookup(
            items, ids, max_norm=max_norm, return_trainable=True
        )
        pooled, of_tags = de.embedding_lookup_sparse(
            tags,
            tf.SparseTensor(
                places, tf.constant([1, 2, 2, 3], tf.int64), [3, 2]
            ),
            tf.SparseTensor(places, weights, [3, 2]),
            combiner="sqrtn",
            max_norm=max_norm,
            return_trainable=True,
        )
        hidden = tf.concat([rows, pooled], axis=1) @ kernel
        return tf.reduce_sum(tf.sin(hidden) ** 2), of_items, of_tags

    with tf.GradientTape() as tape:
        loss, of_items, of_tags = forward()
    gradients = tape.gradient(loss, [of_items, of_tags, kernel, weights])

    def differences(read, write):
        start = read().copy()
        found = np.zeros_like(start)
        for place in np.ndindex(*start.shape):
            ends = []
            for delta in (1e-2, -1e-2):
                moved = start.copy()
                moved[place] += delta
                write(moved)
                ends.append(float(forward()[0]))
            found[place] = (ends[0] - ends[1]) / 2e-2
        write(start)
        return found

    for table, keys, trainable, gradient in (
        (items, KEYS, of_items, gradients[0]),
        (tags, np.array([1, 2, 3]), of_tags, gradients[1]),
    ):
        expected = differences(
            lambda table=table, keys=keys: table.lookup(keys).numpy(),
            lambda rows, table=table, keys=keys: table.upsert(keys, rows),
        )
        before = table.lookup(keys).numpy()
        optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(1.0))
        optimizer.apply_gradients([(gradient, trainable)])
        actual = before - table.lookup(keys).numpy()
        table.upsert(keys, before)
        assert_close(actual, expected, tolerance=1e-3)
        assert np.abs(expected).max() > 0.1
    for dense, gradient in ((kernel, gradients[2]), (weights, gradients[3])):
        expected = differences(dense.numpy, dense.assign)
        assert_close(gradient, expected, tolerance=1e-3)
