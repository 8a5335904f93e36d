"""What `compile` takes beyond Keras: limits of gradients, TF1 optimizers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb


def one_table(ids=1, optimizer=None):
    """A model whose loss pulls each row by the label, and each weight."""
    tensor = keras.Input((ids,), dtype="int64")
    rows = hb.layers.Embedding(
        2,
        combiner="sum",
        embeddings_initializer="zeros",
        name="rows",
        optimizer=optimizer,
    )(tensor)
    out = keras.layers.Dense(2, kernel_initializer="identity", name="out")(rows)
    return hb.keras.Model(tensor, out)


def pull(y_true, y_pred):
    return tf.reduce_sum(y_true * y_pred)


def moved(model, ids, labels):
    model.fit(np.array(ids), np.array(labels), batch_size=8, verbose=0)
    keys = np.unique(ids)
    rows = model.get_layer("rows").table.lookup(keys).numpy()
    return rows, model.get_layer("out").bias.numpy()


IDS = [[7], [7], [7], [9]]
LABELS = [[-1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [0.0, -4.0]]
# Of the table: [3, 0] for id 7 and [0, 4] for id 9, norm 5; the bias: [3, 4].


@pytest.mark.parametrize("own", [False, True])
def test_o03_by_norm_then_by_value_after_repeated_rows_are_summed(own):
    model = one_table(optimizer=keras.optimizers.SGD(1.0) if own else None)
    model.compile("sgd", pull, clipnorm=2.5, clipvalue=1.8)
    model.optimizer.learning_rate = 1.0
    rows, bias = moved(model, IDS, LABELS)
    np.testing.assert_allclose(rows, [[1.5, 0.0], [0.0, 1.8]], rtol=1e-6)
    np.testing.assert_allclose(bias, [1.5, 1.8], rtol=1e-6)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"clipnorm": 1.0}, [[0.6, 0.0], [0.0, 0.8]]),
        ({"clipvalue": 3.5}, [[3.0, 0.0], [0.0, 3.5]]),
        ({"clipnorm": 0.0}, [[3.0, 0.0], [0.0, 4.0]]),
    ],
)
def test_o03_one_limit_alone(limits, expected):
    model = one_table()
    model.compile(keras.optimizers.SGD(1.0), pull, **limits)
    rows, bias = moved(model, IDS, LABELS)
    np.testing.assert_allclose(rows, expected, rtol=1e-6)
    np.testing.assert_allclose(bias, np.sum(expected, axis=0), rtol=1e-6)


def test_an_optimizer_without_a_kernel_clips_by_both():
    model = one_table()
    model.compile(keras.optimizers.Lion(1.0), pull, clipnorm=2.5, clipvalue=1.8)
    moved(model, IDS, LABELS)
    (records,) = model.get_layer("rows").table.export_chunks()
    slots = dict(zip(records.keys.tolist(), records.slots, strict=True))
    # Lion keeps a hundredth of the gradient.
    np.testing.assert_allclose(slots[7], [-0.015, 0.0], rtol=1e-5)
    np.testing.assert_allclose(slots[9], [0.0, -0.018], rtol=1e-5)


@pytest.mark.parametrize("name", ["clipnorm", "clipvalue"])
def test_negative_limits_are_refused(name):
    with pytest.raises(ValueError, match=rf"`{name}`.*-1"):
        one_table().compile("sgd", "mse", **{name: -1.0})


@pytest.mark.parametrize("name", ["clipnorm", "clipvalue", "global_clipnorm"])
def test_clipping_here_and_in_the_optimizer_is_refused(name):
    optimizer = keras.optimizers.SGD(**{name: 1.0})
    with pytest.raises(ValueError, match=f"clipped twice.*{name}=1.0"):
        one_table().compile(optimizer, "mse", clipvalue=2.0)


def test_an_optimizer_of_tf1_trains_tables_and_weights():
    v1 = tf.compat.v1.train
    model = one_table()
    model.compile(v1.GradientDescentOptimizer(0.5), pull, clipnorm=2.5)
    rows, bias = moved(model, IDS, LABELS)
    np.testing.assert_allclose(rows, [[0.75, 0.0], [0.0, 1.0]], rtol=1e-6)
    np.testing.assert_allclose(bias, [0.75, 1.0], rtol=1e-6)


def test_o05_mixed_precision_clips_gradients_without_their_scale():
    keras.mixed_precision.set_dtype_policy("mixed_float16")
    try:
        model = one_table()
    finally:
        keras.mixed_precision.set_dtype_policy("float32")
    model.dtype_policy = keras.mixed_precision.DTypePolicy("mixed_float16")
    model.compile("sgd", pull)
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    scaling = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(1.0), initial_scale=64.0
    )
    model.compile(scaling, pull, clipnorm=2.5, clipvalue=1.8)
    rows, bias = moved(model, IDS, LABELS)
    np.testing.assert_allclose(rows, [[1.5, 0.0], [0.0, 1.8]], rtol=1e-3)
    np.testing.assert_allclose(bias, [1.5, 1.8], rtol=1e-3)


def test_k01_a_saved_model_has_its_class_tables_optimizer_and_limits(tmp_path):
    model = one_table()
    model.compile("adam", "mse", clipnorm=2.5, clipvalue=1.8)
    ids, labels = np.array(IDS), np.array(LABELS)
    model.fit(ids, labels, batch_size=4, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, hb.keras.Model)
    assert (loaded.optimizer.clipnorm, loaded.optimizer.clipvalue) == (2.5, 1.8)
    for one in (model, loaded):
        one.fit(ids, labels, batch_size=4, verbose=0)
    np.testing.assert_array_equal(
        loaded.predict(ids, verbose=0), model.predict(ids, verbose=0)
    )
