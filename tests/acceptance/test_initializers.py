"""Initial rows: what an initializer gives each key, and pretrained rows."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.layers import Embedding

from .reference import fit, network, records_of, rows_of


ONES_AND_MORE = keras.initializers.RandomUniform(1.0, 2.0)
BETWEEN_1_AND_2 = {
    "partial": functools.partial(tf.random.uniform, minval=1.0, maxval=2.0),
    "partial_of_class": functools.partial(
        keras.initializers.RandomUniform, minval=1.0, maxval=2.0
    ),
    "keras_object": ONES_AND_MORE,
    "tf_object": tf.random_uniform_initializer(1.0, 2.0),
    "dict": keras.initializers.serialize(ONES_AND_MORE),
    "function": lambda shape: tf.random.uniform(shape, 1.0, 2.0),
    "function_of_numpy": lambda shape: 1 + np.random.random(shape),
}
DISTRIBUTIONS = {
    "uniform": (keras.initializers.RandomUniform(-1.0, 3.0), 1.0, 4 / 12**0.5),
    "normal": (keras.initializers.RandomNormal(2.0, 0.5), 2.0, 0.5),
    "truncated": (keras.initializers.TruncatedNormal(0.0, 1.0), 0.0, 0.8796),
    "string": ("uniform", 0.0, 0.1 / 12**0.5),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_i01_one_initializer_draws_anew_for_each_key_and_table(name):
    initializer, mean, deviation = DISTRIBUTIONS[name]
    first, second = (
        Embedding(8, embeddings_initializer=initializer, name=name)
        for name in ("first", "second")
    )
    keys = np.arange(10_000)
    for batch in np.array_split(keys, 37):
        first(batch, training=True)
        second(batch, training=True)
    a, b = rows_of(first, keys), rows_of(second, keys)
    for rows in (a, b):
        assert len(np.unique(rows, axis=0)) == len(keys)
        error = deviation / np.sqrt(rows.size)
        assert abs(rows.mean() - mean) < 5 * error
        np.testing.assert_allclose(rows.std(), deviation, rtol=0.02)
        np.testing.assert_allclose(rows.mean(0), mean, atol=5 * error * 8**0.5)
    assert np.mean(a == b) < 1e-3
    correlation = np.corrcoef(a.ravel(), b.ravel())[0, 1]
    assert abs(correlation) < 5 / np.sqrt(a.size)


def test_i01_columns_and_neighbouring_keys_are_not_correlated():
    layer = Embedding(4, embeddings_initializer="random_normal")
    rows = rows_of(layer, np.arange(10_000))
    columns = np.corrcoef(rows.T) - np.eye(4)
    assert np.max(np.abs(columns)) < 0.05
    neighbours = np.corrcoef(rows[1:].ravel(), rows[:-1].ravel())[0, 1]
    assert abs(neighbours) < 0.05


def test_i01_the_seed_of_keras_makes_unseeded_rows_repeatable():
    rows = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        rows.append(rows_of(Embedding(3, name="ids"), [1, 2]))
    np.testing.assert_array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])


@pytest.mark.parametrize("name", BETWEEN_1_AND_2)
def test_i02_random_initializers_of_any_kind_differ_by_key_and_column(name):
    layer = Embedding(4, embeddings_initializer=BETWEEN_1_AND_2[name])
    rows = [
        np.asarray(layer(np.array(ids), training=True))
        for ids in ([1, 2, 3], [4], [5, 1])
    ]
    rows = np.concatenate(rows)
    np.testing.assert_array_equal(rows[5], rows[0])
    assert rows.dtype == np.float32
    assert np.all((rows >= 1.0) & (rows < 2.0))
    assert len(np.unique(rows)) == 20
    np.testing.assert_array_equal(rows_of(layer, [1, 2, 3, 4, 5]), rows[:5])


@pytest.mark.parametrize("name", ["partial", "function"])
def test_i02_callables_work_inside_fit(name):
    layer = Embedding(4, embeddings_initializer=BETWEEN_1_AND_2[name])
    ids = np.arange(32).reshape(16, 2)
    model = network(layer, 2)
    fit(model, keras.optimizers.SGD(0.0), ids, np.ones((16, 1)), batch_size=4)
    rows = rows_of(layer, range(32))
    assert int(layer.table.size()) == 32
    assert np.all((rows >= 1.0) & (rows < 2.0))
    assert len(np.unique(rows)) > 120


@pytest.mark.parametrize(
    ("initializer", "row"),
    [
        (0.5, [0.5, 0.5, 0.5]),
        (np.float32([1, -2, 3]), [1, -2, 3]),
        ([1.0, -2.0, 3.0], [1, -2, 3]),
        ("ones", [1, 1, 1]),
        (keras.initializers.Constant(4.0), [4, 4, 4]),
        (tf.constant_initializer(4.0), [4, 4, 4]),
    ],
)
def test_i02_constants_and_rows_are_given_to_every_key(initializer, row):
    layer = Embedding(3, embeddings_initializer=initializer)
    rows = layer(np.array([1, 2, 10**15]), training=True)
    np.testing.assert_array_equal(rows, np.float32([row] * 3))


@pytest.mark.parametrize(
    "initializer",
    [
        np.ones(2),
        [1.0] * 4,
        np.ones((5, 3)),
        lambda shape: tf.ones((shape[0], 7)),
    ],
    ids=["short", "long", "matrix", "callable"],
)
def test_i02_rows_of_another_length_are_refused(initializer):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)) as error:
        Embedding(3, embeddings_initializer=initializer, name="user_table")(
            np.array([1]), training=True
        )
    assert "3" in str(error.value)


@pytest.mark.parametrize("initializer", ["no_such", object(), {"class": 1}])
def test_i02_what_is_no_initializer_is_refused(initializer):
    with pytest.raises((TypeError, ValueError)):
        Embedding(3, embeddings_initializer=initializer)


def test_i04_pretrained_rows_are_kept_and_train_on():
    layer = Embedding(4, name="pretrained")
    model = network(layer, 2)  # nothing has been called with ids yet
    count = 1_000_000
    for keys in np.array_split(np.arange(count) * 3 - 50, 10):
        values = np.float32(keys)[:, None] * np.float32([1, -1, 0.5, 2])
        layer.table.assign(keys, values)
    assert int(layer.table.size()) == count
    sample = np.array([-50, 100, 2_999_947])
    expected = np.float32(sample)[:, None] * np.float32([1, -1, 0.5, 2])
    np.testing.assert_array_equal(rows_of(layer, sample), expected)

    fit(model, "adam", sample[None, :2], np.ones((1, 1)), batch_size=1)
    assert int(layer.table.size()) == count
    rows = rows_of(layer, sample)
    assert np.all(rows[:2] != expected[:2])
    np.testing.assert_array_equal(rows[2], expected[2])


def test_i04_rows_may_be_given_before_the_layer_is_built():
    layer = Embedding(2)
    keys = np.arange(10)
    layer.table.assign(keys, np.float32(keys)[:, None] * np.ones((1, 2)))
    assert not layer.built
    rows = np.asarray(layer(np.array([7, 11]), training=True))
    np.testing.assert_array_equal(rows[0], [7, 7])
    fit(
        network(layer, 1), "adam", keys[:2, None], np.ones((2, 1)), batch_size=2
    )
    records = records_of(layer.table)
    assert len(records) == 11
    for key in (0, 1):
        assert np.any(records[key][1] != 0)
    for key in range(2, 10):
        np.testing.assert_array_equal(records[key][0], [key, key])
        np.testing.assert_array_equal(records[key][1], np.zeros(4))


def test_i04_rows_of_another_width_are_refused():
    layer = Embedding(4, name="pretrained")
    with pytest.raises(
        (ValueError, tf.errors.InvalidArgumentError), match="pretrained"
    ) as error:
        layer.table.assign(np.arange(3), np.ones((3, 5), np.float32))
    assert "4" in str(error.value)
    assert "5" in str(error.value)
    assert int(layer.table.size()) == 0
