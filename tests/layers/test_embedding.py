"""The layer in Keras models."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.layers import Embedding
from embedra.table import KeyDtypeError
from numerics import assert_allclose


def _fit(model, ids, epochs=1):
    model.fit(ids, np.ones((len(ids), 1)), epochs=epochs, verbose=0)


def test_training_inserts_and_inference_does_not():
    layer = Embedding(2)
    model = keras.Sequential(
        [layer, keras.layers.Flatten(), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    _fit(model, np.array([[1], [2]]))
    assert layer.size() == 2
    before = layer.table.lookup([1, 2]).numpy()
    frequencies = next(layer.table.export_chunks()).frequencies
    model.predict(np.array([[1], [99]]), verbose=0)
    model.evaluate(np.array([[98]]), np.ones((1, 1)), verbose=0)
    model(np.array([[97]]))
    model(np.array([[96]]), training=False)
    assert layer.size() == 2
    np.testing.assert_array_equal(layer.table.lookup([1, 2]), before)
    after = next(layer.table.export_chunks()).frequencies
    np.testing.assert_array_equal(after, frequencies)


@pytest.mark.parametrize(
    ("default", "row"),
    [
        ("initializer", [1, 1]),
        ("zeros", [0, 0]),
        (np.array([2.0, 3.0]), [2, 3]),
    ],
)
def test_absent_ids_read_as_the_default(default, row):
    layer = Embedding(
        2, embeddings_initializer="ones", inference_default=default
    )
    assert layer(np.array([5])).numpy().tolist() == [row]


@pytest.mark.parametrize("default", ["zero", [1.0], [[1.0, 2.0]], 3])
def test_wrong_default_is_refused(default):
    with pytest.raises((ValueError, TypeError)):
        Embedding(2, inference_default=default)


def test_wrong_combiner_is_refused():
    with pytest.raises(ValueError, match="sqrtn"):
        Embedding(2, combiner="max")


@pytest.mark.parametrize(
    "ids",
    [keras.KerasTensor((None, 1)), np.zeros((2, 1)), [[1.0]], tf.zeros((1,))],
)
def test_float_ids_are_refused_with_the_remedy(ids):
    with pytest.raises(KeyDtypeError, match='dtype="int64"'):
        Embedding(2)(ids)


def test_sequential_model_without_an_input_takes_large_ids_exactly():
    layer = Embedding(2)
    model = keras.Sequential(
        [layer, keras.layers.Flatten(), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    _fit(model, np.array([[16777216], [16777217]]))
    assert layer.size() == 2


def test_lists_are_ids():
    layer = Embedding(2, embeddings_initializer="ones")
    assert layer([1, 2, 3]).shape == (3, 2)
    assert layer(["a", "b"]).shape == (2, 2)
    assert layer(7).shape == (2,)


def test_frozen_layer_moves_no_row_and_inserts_none():
    layer = Embedding(2, trainable=False)
    layer.table.assign([1], [[1.0, 2.0]])
    model = keras.Sequential(
        [layer, keras.layers.Flatten(), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    _fit(model, np.array([[1], [2]]))
    assert layer.trainable_variables == []
    assert layer.size() == 1
    assert layer.table.lookup([1]).numpy().tolist() == [[1.0, 2.0]]
    layer.trainable = True
    model.compile("adam", "mse")
    _fit(model, np.array([[1], [2]]))
    assert layer.size() == 2
    assert (layer.table.lookup([1]).numpy() != [[1.0, 2.0]]).all()


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_keeps_float32_rows(policy):
    layer = Embedding(2, dtype=policy)
    rows = layer(np.array([[1]]), training=True)
    assert rows.dtype == layer.compute_dtype
    assert layer.table.dtype == "float32"
    flat = keras.layers.Flatten(dtype=policy)
    dense = keras.layers.Dense(1, dtype=policy)
    model = keras.Sequential([layer, flat, dense])
    model.compile("adam", "mse")
    before = layer.table.lookup([1]).numpy()
    _fit(model, np.array([[1], [2]]))
    assert (layer.table.lookup([1]).numpy() != before).any()


def test_overflow_leaves_rows_and_slots_alone():
    layer = Embedding(2)
    model = keras.Sequential(
        [layer, keras.layers.Flatten(), keras.layers.Dense(1)]
    )
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.1))
    model.compile(optimizer, "mse")
    _fit(model, np.array([[1], [2]]))
    before = next(layer.table.export_chunks())
    model.fit(np.array([[1]]), np.full((1, 1), np.inf), verbose=0)
    after = next(layer.table.export_chunks())
    np.testing.assert_array_equal(after.rows, before.rows)
    np.testing.assert_array_equal(after.slots, before.slots)


def test_half_precision_rows():
    layer = Embedding(2, dtype="bfloat16")
    assert layer.table.dtype == "bfloat16"
    assert layer(np.array([1])).dtype == tf.bfloat16


def test_regularizer_counts_each_row_of_the_batch_once():
    layer = Embedding(
        2,
        embeddings_initializer="ones",
        embeddings_regularizer=keras.regularizers.L2(0.5),
    )
    layer(np.array([[1, 1], [2, 1]]), training=True)
    assert float(sum(layer.losses)) == pytest.approx(0.5 * 4)
    model = keras.Sequential([layer, keras.layers.Lambda(lambda x: x * 0.0)])
    model.compile(keras.optimizers.SGD(0.25), "mse")
    model.fit(np.array([[1, 1]]), np.zeros((1, 2, 2)), verbose=0)
    assert_allclose(layer.table.lookup([1, 2]), [[0.75, 0.75], [1, 1]])


def test_constraint_is_applied_to_touched_rows():
    layer = Embedding(
        2,
        embeddings_initializer="ones",
        embeddings_constraint=keras.constraints.NonNeg(),
    )
    layer.table.assign([3], [[-1.0, -1.0]])
    optimizer = keras.optimizers.SGD(5.0)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.array([1, 1]), training=True))
    grad = tape.gradient(loss, layer.embeddings)
    optimizer.apply_gradients([(grad, layer.embeddings)])
    assert layer.table.lookup([1, 3]).numpy().tolist() == [[0, 0], [-1, -1]]


def test_table_with_its_own_optimizer():
    wide = Embedding(
        1,
        embeddings_initializer="zeros",
        optimizer=keras.optimizers.Ftrl(0.5),
        name="wide",
    )
    deep = Embedding(1, name="deep")
    ids = keras.Input((1,), dtype="int64")
    outputs = keras.layers.Add()([wide(ids), deep(ids)])
    model = keras.Model(ids, keras.layers.Flatten()(outputs))
    model.compile("adam", "mse")
    _fit(model, np.array([[1], [2]]), epochs=3)
    assert wide.table.slot_names == ("accumulator", "linear")
    assert deep.table.slot_names == ("momentum", "velocity")
    assert int(wide.optimizer.iterations) == 3


@pytest.mark.parametrize("initializer", ["uniform", 0.5])
def test_config_round_trip(initializer):
    layer = Embedding(
        4,
        combiner="mean",
        embeddings_initializer=initializer,
        embeddings_regularizer="l2",
        embeddings_constraint="non_neg",
        mask_zero=True,
        key_dtype="string",
        initial_capacity=100,
        optimizer=keras.optimizers.Ftrl(0.25),
        inference_default=[1.0, 2.0, 3.0, 4.0],
        seed=3,
        name="words",
        dtype="mixed_bfloat16",
        trainable=False,
    )
    again = Embedding.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    assert again.optimizer is not layer.optimizer


def test_clone_has_a_table_of_its_own():
    ids = keras.Input((1,), dtype="int64")
    model = keras.Model(ids, Embedding(2, name="e")(ids))
    model(np.array([[1]]), training=True)
    clone = keras.models.clone_model(model)
    again = keras.models.model_from_json(model.to_json())
    assert clone.get_layer("e").size() == again.get_layer("e").size() == 0
    clone(np.array([[5], [6]]), training=True)
    assert model.get_layer("e").size() == 1


def test_kinds_of_model_learn_alike():
    def parts():
        return [
            Embedding(2, seed=1, name="same"),
            keras.layers.Flatten(),
            keras.layers.Dense(1, kernel_initializer="ones"),
        ]

    class Subclassed(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = parts()

        def call(self, ids):
            for part in self.parts:
                ids = part(ids)
            return ids

    def functional():
        ids = x = keras.Input((2,), dtype="int64")
        for part in parts():
            x = part(x)
        return keras.Model(ids, x)

    def nested():
        ids = keras.Input((2,), dtype="int64")
        return keras.Model(ids, functional()(ids))

    ids = np.arange(20).reshape(10, 2) % 7
    curves = []
    for make in (
        lambda: keras.Sequential(parts()),
        functional,
        nested,
        Subclassed,
    ):
        model = make()
        model.compile("adam", "mse")
        history = model.fit(
            ids, np.ones((10, 1)), epochs=3, shuffle=False, verbose=0
        )
        curves.append(history.history["loss"])
    for curve in curves[1:]:
        assert curve == pytest.approx(curves[0], rel=1e-6)


def test_shapes_are_known_before_data():
    layer = Embedding(8)
    assert layer.compute_output_shape((None, 3)) == (None, 3, 8)
    pooling = Embedding(8, combiner="sum")
    assert pooling.compute_output_shape((None, 3)) == (None, 8)
    assert pooling.compute_output_shape((None,)) == (None, 8)
    spec = pooling.compute_output_spec(
        keras.KerasTensor((None, None, None), dtype="int64", ragged=True)
    )
    assert spec.ragged
    assert spec.shape == (None, None, 8)


def test_unseeded_layers_differ():
    one, two = Embedding(4), Embedding(4)
    ids = np.arange(3)
    assert (one(ids).numpy() != two(ids).numpy()).all()


def test_set_weights_warns_once_that_it_leaves_the_rows():
    layer = Embedding(2, name="users")
    layer.table.assign([1], [[1.0, 2.0]])
    with pytest.warns(UserWarning, match="'users'.*load_weights"):
        layer.set_weights(layer.get_weights())
    layer.set_weights(layer.get_weights())
    assert layer.table.lookup([1]).numpy().tolist() == [[1.0, 2.0]]
