"""DenseFeatures: a layer of Keras over columns."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra
from embedra import feature_column as fc
from embedra.dynamic_embedding import embedding_variable as ev

from .batches import FEATURES, user_column, word_column


BATCH = {
    "user": np.array([[7, 8], [7, -1]], np.int64),
    "word": tf.ragged.constant([["a", "b"], []]),
    "age": np.array([[1.0], [2.0]], np.float32),
}


def columns():
    cities = fc.categorical_column_with_hash_bucket("user", 5, tf.int64)
    return [
        word_column(3),
        fc.numeric_column("age"),
        user_column(),
        fc.indicator_column(cities),
    ]


def inputs():
    return {
        "user": keras.Input((2,), dtype="int64", name="user"),
        "word": keras.Input((None,), dtype="string", ragged=True, name="word"),
        "age": keras.Input((1,), name="age"),
    }


def model(**kwargs):
    features = inputs()
    dense = fc.DenseFeatures(columns(), name="columns", **kwargs)(features)
    made = keras.Model(features, keras.layers.Dense(1, name="out")(dense))
    made.compile(keras.optimizers.Adagrad(0.1), "mse")
    return made


def data(count=1):
    labels = np.array([[1.0], [-1.0]], np.float32)
    return tf.data.Dataset.from_tensors((BATCH, labels)).repeat(count)


def test_tensors_of_columns_are_joined_by_name():
    layer = fc.DenseFeatures(columns())
    joined = layer(BATCH)
    assert [column.name for column in layer.feature_columns] == [
        "age",
        "user_embedding",
        "user_indicator",
        "word_embedding",
    ]
    np.testing.assert_array_equal(joined[:, 0], [1.0, 2.0])
    np.testing.assert_array_equal(joined[:, 1:3], [[0.5] * 2] * 2)
    np.testing.assert_array_equal(joined[:, 8:], [[0.5] * 3, [0.0] * 3])
    assert joined.shape == (2, 1 + 2 + 5 + 3)


def test_it_is_where_programs_of_hybridbackend_look_for_it():
    assert embedra.keras.layers.DenseFeatures is fc.DenseFeatures
    assert embedra.dense_features is fc.dense_features
    widths = [
        t.shape[1]
        for t in embedra.keras.layers.dense_features(
            {"age": FEATURES["age"]}, [fc.numeric_column("age")]
        )
    ]
    assert widths == [1]


def test_fit_trains_tables_and_dense_weights_as_one_model():
    made = model()
    before = made.evaluate(data(), verbose=0)
    made.fit(data(20), verbose=0, shuffle=False)
    assert made.evaluate(data(), verbose=0) < before / 4
    layer = made.get_layer("columns")
    assert layer.size() == {"user_embedding": 2, "word_embedding": 2}


def test_k09_prediction_creates_no_ids():
    made = model()
    made.predict(data(), verbose=0)
    made.evaluate(data(), verbose=0)
    made({**BATCH, **{k: tf.constant(BATCH[k]) for k in ("user", "age")}})
    layer = made.get_layer("columns")
    assert set(layer.size().values()) == {0}
    layer(BATCH, training=True)
    assert layer.size() == {"user_embedding": 2, "word_embedding": 2}


def test_f05_what_is_not_trainable_stays():
    made = model()
    made.fit(data(2), verbose=0, shuffle=False)
    layer = made.get_layer("columns")
    before = layer(BATCH).numpy()
    layer.trainable = False
    made.compile(keras.optimizers.Adagrad(0.1), "mse")
    made.fit(data(2), verbose=0, shuffle=False)
    np.testing.assert_array_equal(layer(BATCH), before)
    assert not layer.trainable_variables


def test_k01_a_saved_model_goes_on_as_one_that_was_not(tmp_path):
    made = model()
    made.fit(data(3), verbose=0, shuffle=False)
    expected = made.predict(data(), verbose=0)
    made.save(tmp_path / "m.keras")
    made.fit(data(3), verbose=0, shuffle=False)
    again = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again.predict(data(), verbose=0), expected)
    again.fit(data(3), verbose=0, shuffle=False)
    np.testing.assert_allclose(
        again.predict(data(), verbose=0),
        made.predict(data(), verbose=0),
        rtol=1e-6,
    )


def test_k02_weights_go_into_a_model_of_the_same_columns(tmp_path):
    made = model()
    made.fit(data(3), verbose=0, shuffle=False)
    made.save_weights(tmp_path / "m.weights.h5")
    again = model()
    again.optimizer.build(again.trainable_variables)
    again.load_weights(tmp_path / "m.weights.h5")
    np.testing.assert_array_equal(
        again.predict(data(), verbose=0), made.predict(data(), verbose=0)
    )


def test_k02_weights_of_other_columns_are_refused(tmp_path):
    path = tmp_path / "one.weights.h5"

    def made(key):
        ids = fc.categorical_column_with_embedding(key, tf.int64)
        given = {key: keras.Input((1,), dtype="int64", name=key)}
        layer = fc.DenseFeatures([fc.embedding_column(ids, 2)], name="columns")
        return keras.Model(given, layer(given))

    made("user").save_weights(path)
    with pytest.raises(ValueError, match="table of column 'user_embedding'"):
        made("item").load_weights(path)


def test_k03_a_clone_has_tables_of_its_own():
    made = model()
    made.fit(data(1), verbose=0, shuffle=False)
    clone = keras.models.clone_model(made)
    layer = clone.get_layer("columns")
    assert layer.feature_columns == made.get_layer("columns").feature_columns
    assert set(layer.size().values()) == {0}


def test_stock_embedding_columns_have_dense_variables_of_the_layer():
    layer = fc.DenseFeatures(columns())
    assert len(layer.trainable_variables) == 2
    identity = fc.categorical_column_with_identity("user", 10, default_value=0)
    layer = fc.DenseFeatures([fc.embedding_column(identity, 2)])
    (weights,) = layer.trainable_variables
    assert weights.shape == (10, 2)
    assert layer({"user": [[1]]}).shape == (1, 2)


def test_columns_that_share_a_table_share_it_in_the_layer():
    shared = fc.shared_embedding_columns(
        [
            fc.categorical_column_with_embedding(key, tf.int64)
            for key in ("seen", "bought")
        ],
        2,
    )
    layer = fc.DenseFeatures(shared)
    layer({"seen": [1], "bought": [2]}, training=True)
    assert list(layer.size().values()) == [2]


def test_filters_and_evictions_are_kept_in_files(tmp_path):
    option = ev.EmbeddingVariableOption(
        filter_option=ev.CounterFilter(2),
        evict_option=ev.GlobalStepEvict(1000),
    )
    ids = fc.categorical_column_with_embedding(
        "user", tf.int64, ev_option=option
    )
    layer = fc.DenseFeatures([fc.embedding_column(ids, 2)], name="columns")
    layer({"user": [[7], [7], [8]]}, training=True)
    path = tmp_path / "m.keras"
    ids = {"user": keras.Input((1,), dtype="int64", name="user")}
    keras.Model(ids, layer(ids)).save(path)
    again = keras.models.load_model(path).get_layer("columns")
    table = again.tables["user_embedding"].embedding_variable
    assert int(table.size()) == 1
    assert int(table.candidates.size()) == 1
    assert table.ev_option == option
    again({"user": [[8]]}, training=True)
    assert int(table.size()) == 2


def test_an_exported_model_needs_no_embedra(tmp_path):
    made = model()
    made.fit(data(3), verbose=0, shuffle=False)
    embedra.saved_model.export(made, str(tmp_path / "export"))
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    received = loaded.serve(
        {
            name: value
            if isinstance(value, tf.RaggedTensor)
            else tf.constant(value)
            for name, value in BATCH.items()
        }
    )
    np.testing.assert_allclose(
        received, made.predict(data(), verbose=0), rtol=1e-6
    )


def test_vocabularies_of_stock_columns_are_the_layers_own(tmp_path):
    path = tmp_path / "towns.txt"
    path.write_text("x\ny\n")
    towns = fc.categorical_column_with_vocabulary_file("town", str(path))
    layer = fc.DenseFeatures(
        [
            fc.indicator_column(towns),
            fc.embedding_column(towns, 2, initializer=0.5, dynamic=True),
        ]
    )
    town = {"town": keras.Input((1,), dtype="string", name="town")}
    made = keras.Model(town, layer(town))
    given = {"town": tf.constant([["y"], ["nowhere"]])}
    expected = [[0.5, 0.5, 0.0, 1.0], [0.0] * 4]
    np.testing.assert_array_equal(made(given), expected)
    embedra.saved_model.export(made, str(tmp_path / "export"))
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    np.testing.assert_array_equal(loaded.serve(given), expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "Received: none"),
        ([fc.categorical_column_with_embedding("a")], "needs dense columns"),
        ([user_column(), user_column(3)], "two columns named 'user_embedding'"),
    ],
    ids=["none", "ids", "twice"],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        fc.DenseFeatures(given)


def test_layers_of_tf_keras_are_told_which_one_to_use():
    tf_keras = pytest.importorskip("tf_keras")
    layer = tf_keras.layers.DenseFeatures([user_column()])
    with pytest.raises(TypeError, match=r"embedra\.keras\.layers\.DenseFeat"):
        layer({"user": tf.constant([7])})
