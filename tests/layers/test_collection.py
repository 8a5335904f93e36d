"""EmbeddingCollection: the same as its layers one by one."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra
from embedra import table as table_lib
from embedra.layers import Embedding, EmbeddingCollection


IDS = {
    "user": np.array([7, 8, 7]),
    "items": tf.ragged.constant([[1, 2, 3], [], [2]], dtype=tf.int64),
    "last": np.array([3, 4, 1]),
    "tags": tf.sparse.from_dense([[1, 0, 2], [0, 0, 0], [3, 0, 0]]),
    "words": tf.constant([["a", ""], ["b", "a"], ["", ""]]),
}
WEIGHTS = {"items": tf.ragged.constant([[1.0, 2.0, 0.5], [], [3.0]])}


def layers(seed=1, **settings):
    items = Embedding(3, combiner="mean", name="items", seed=seed, **settings)
    return {
        "user": Embedding(4, name="user", seed=seed, **settings),
        "items": items,
        "last": items,
        "tags": Embedding(2, combiner="sum", name="tags", seed=seed),
        "words": Embedding(
            2, key_dtype="string", mask_zero=True, name="words", seed=seed
        ),
    }


def one_by_one(embeddings, ids, weights, training):
    return {
        name: layer(ids[name], weights=weights.get(name), training=training)
        for name, layer in embeddings.items()
    }


def total(rows):
    return tf.add_n([tf.reduce_sum(each**2) for each in rows.values()])


def records(embeddings):
    found = {}
    for layer in embeddings.values():
        for chunk in layer.table.export_chunks():
            for key, row, count in zip(
                chunk.keys, chunk.rows, chunk.frequencies, strict=True
            ):
                found[layer.name, int(key)] = (*row.tolist(), int(count))
    return found


@pytest.mark.parametrize("training", [True, False, None])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
def test_rows_gradients_and_tables_are_those_of_single_layers(
    training, compiled
):
    def step(look_up, embeddings):
        variables = [
            layer.embeddings
            for layer in {id(e): e for e in embeddings.values()}.values()
        ]
        optimizer = keras.optimizers.SGD(0.5)
        optimizer.build(variables)

        def run():
            with tf.GradientTape() as tape:
                rows = look_up()
                loss = total(rows)
            gradients = tape.gradient(loss, variables)
            if training is not False:
                optimizer.apply(gradients, variables)
            return rows

        return (tf.function(run) if compiled else run)()

    single, together = layers(), layers()
    collection = EmbeddingCollection(together)
    expected = step(lambda: one_by_one(single, IDS, WEIGHTS, training), single)
    found = step(
        lambda: collection(IDS, weights=WEIGHTS, training=training), together
    )
    assert list(found) == list(expected)
    for name, rows in expected.items():
        np.testing.assert_array_equal(found[name], rows, err_msg=name)
    assert records(together) == records(single)
    assert bool(records(together)) == (training is not False)


def test_tables_of_a_kind_are_read_by_one_op():
    collection = EmbeddingCollection(
        {f"f{i}": Embedding(2 + i, name=f"f{i}") for i in range(5)}
    )
    ids = {f"f{i}": tf.constant([i]) for i in range(5)}
    function = tf.function(lambda: collection(ids, training=True))
    graph = function.get_concrete_function().graph
    ops = [op.type for op in graph.get_operations()]
    assert ops.count("EmbedraTableLookup") == 1


def test_python_initializers_make_rows():
    def by_key(shape, keys):
        return tf.cast(keys, tf.float32)[:, None] * tf.ones(shape)

    collection = EmbeddingCollection(
        {
            "a": Embedding(2, embeddings_initializer=by_key, name="a"),
            "b": Embedding(2, embeddings_initializer=by_key, name="b"),
        }
    )
    ids = {"a": [1, 2], "b": [3]}
    assert collection(ids, training=True)["b"].numpy().tolist() == [[3, 3]]
    with tf.GradientTape() as tape:
        loss = total(collection({"a": [5], "b": [6]}))
    tape.gradient(loss, collection.trainable_variables)
    assert collection.size() == 5


def test_frozen_layers_are_only_read_and_penalties_count():
    regular = Embedding(
        2, embeddings_initializer="ones", embeddings_regularizer="l2", name="r"
    )
    frozen = Embedding(2, trainable=False, name="frozen")
    collection = EmbeddingCollection({"r": regular, "frozen": frozen})
    collection({"r": [1, 1, 2], "frozen": [1]}, training=True)
    assert (regular.size(), frozen.size()) == (2, 0)
    np.testing.assert_allclose(collection.losses, [0.01 * 4])


def test_rows_have_the_compute_dtype_of_their_layer():
    collection = EmbeddingCollection(
        {
            "half": Embedding(2, dtype="bfloat16", name="half"),
            "mixed": Embedding(2, dtype="mixed_float16", name="mixed"),
        }
    )
    rows = collection({"half": [1], "mixed": [1]}, training=True)
    assert (rows["half"].dtype, rows["mixed"].dtype) == (
        tf.bfloat16,
        tf.float16,
    )


def model_of(collection):
    inputs = {
        "user": keras.Input((), dtype="int64", name="user"),
        "items": keras.Input((4,), dtype="int64", name="items"),
        "last": keras.Input((), dtype="int64", name="last"),
    }
    rows = collection(inputs)
    x = keras.layers.Concatenate()([rows["user"], rows["items"], rows["last"]])
    return keras.Model(inputs, keras.layers.Dense(1)(x))


def small(**settings):
    items = Embedding(3, combiner="mean", mask_zero=True, name="items")
    return EmbeddingCollection(
        {"user": Embedding(4, name="user"), "items": items, "last": items},
        name="features",
        **settings,
    )


BATCH = {
    "user": np.array([7, 8, 7]),
    "items": np.array([[1, 2, 0, 0], [0, 0, 0, 0], [3, 1, 2, 2]]),
    "last": np.array([3, 4, 1]),
}
LABELS = np.array([[1.0], [0.0], [1.0]])


def trained(collection=None):
    model = model_of(collection or small())
    model.compile("adam", "mse")
    model.fit(BATCH, LABELS, verbose=0)
    return model


def test_functional_models_train_and_are_saved_whole(tmp_path):
    model = trained(small(num_groups=2, wire_dtype="bfloat16"))
    expected = model.predict(BATCH, verbose=0)
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded.predict(BATCH, verbose=0), expected)
    collection = loaded.get_layer("features")
    assert (collection.num_groups, collection.wire_dtype) == (2, "bfloat16")
    assert collection.embeddings["last"] is collection.embeddings["items"]
    # Padding is left out of the bags of "items", and is an id for "last".
    assert collection.size() == 2 + 4
    loaded.fit(BATCH, LABELS, verbose=0)


def test_weights_and_checkpoints_hold_its_tables(tmp_path):
    model = trained()
    expected = model.predict(BATCH, verbose=0)
    model.save_weights(tmp_path / "m.weights.h5")
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "c"))
    by_weights, by_checkpoint = model_of(small()), model_of(small())
    by_weights.load_weights(tmp_path / "m.weights.h5")
    status = tf.train.Checkpoint(model=by_checkpoint).read(path)
    status.assert_existing_objects_matched().expect_partial()
    for other in (by_weights, by_checkpoint):
        np.testing.assert_array_equal(other.predict(BATCH, verbose=0), expected)


def test_clones_have_tables_of_their_own():
    model = trained()
    clone = keras.models.clone_model(model)
    assert clone.get_layer("features").size() == 0
    assert model.get_layer("features").size() == 6
    clone.compile("sgd", "mse")
    clone.fit(BATCH, LABELS, verbose=0)
    assert clone.get_layer("features").size() == 6


def test_masks_are_handed_on():
    collection = EmbeddingCollection(
        {"a": Embedding(2, mask_zero=True), "b": Embedding(2)}
    )
    inputs = {
        "a": keras.Input((3,), dtype="int64", name="a"),
        "b": keras.Input((3,), dtype="int64", name="b"),
    }
    rows = collection(inputs)
    pooled = keras.layers.GlobalAveragePooling1D()(rows["a"])
    model = keras.Model(inputs, [pooled, rows["b"]])
    ids = {"a": np.array([[5, 0, 0]]), "b": np.array([[1, 2, 3]])}
    first = collection.embeddings["a"](np.array([5]))
    np.testing.assert_allclose(model(ids)[0], first, rtol=1e-6)


def test_entries_of_other_features_are_left_alone():
    collection = EmbeddingCollection({"a": Embedding(2)})
    rows = collection({"a": [1], "age": [0.5], "name": ["x"]})
    assert list(rows) == ["a"]


def test_wrong_arguments_are_told():
    collection = EmbeddingCollection({"a": Embedding(2), "b": Embedding(2)})
    with pytest.raises(ValueError, match=r"\['a', 'b'\].*Received: \['a'\]"):
        collection({"a": [1]})
    with pytest.raises(ValueError, match="needs a dict"):
        collection([1])
    with pytest.raises(table_lib.KeyDtypeError, match="Feature 'b'"):
        collection({"a": [1], "b": [0.5]})
    with pytest.raises(ValueError, match="weights"):
        collection({"a": [1], "b": [1]}, weights={"a": [1.0]})
    with pytest.raises(ValueError, match="dict with an Embedding"):
        EmbeddingCollection({})
    with pytest.raises(TypeError, match="'a'.*embedra.layers.Embedding"):
        EmbeddingCollection({"a": keras.layers.Embedding(3, 2)})
    with pytest.raises(ValueError, match="num_groups=0"):
        EmbeddingCollection({"a": Embedding(2)}, num_groups=0)
    with pytest.raises(ValueError, match="wire_dtype='int8'"):
        EmbeddingCollection({"a": Embedding(2)}, wire_dtype="int8")


def test_functional_inputs_may_be_ragged_sparse_strings_and_weighted():
    embeddings = layers()
    collection = EmbeddingCollection(embeddings)
    inputs = {
        "user": keras.Input((), dtype="int64", name="user"),
        "items": keras.Input((None,), dtype="int64", ragged=True, name="items"),
        "last": keras.Input((), dtype="int64", name="last"),
        "tags": keras.Input((3,), dtype="int64", sparse=True, name="tags"),
        "words": keras.Input((2,), dtype="string", name="words"),
    }
    weights = keras.Input((None,), ragged=True, name="weights")
    rows = collection(inputs, weights={"items": weights})
    assert rows["words"].shape == (None, 2, 2)
    model = keras.Model({**inputs, "weights": weights}, rows)
    user, last = tf.constant(IDS["user"]), tf.constant(IDS["last"])
    batch = {**IDS, "user": user, "last": last, "weights": WEIGHTS["items"]}
    found = model(batch)
    expected = one_by_one(embeddings, IDS, WEIGHTS, False)
    for name, each in expected.items():
        np.testing.assert_array_equal(found[name], each, err_msg=name)


def test_exports_hold_its_tables(tmp_path):
    model = trained()
    expected = model.predict(BATCH, verbose=0)
    embedra.saved_model.export(model, tmp_path / "exported")
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    served = exported.signatures["serving_default"]
    (found,) = served(**{k: tf.constant(v) for k, v in BATCH.items()}).values()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
