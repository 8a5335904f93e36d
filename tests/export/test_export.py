"""Exports with stock ops answer as the model does."""

import os
import threading
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra.layers import Embedding
from embedra.saved_model import StockOpsError, export


IDS = np.array([[5, 0, -9], [7, 5, 2**62], [1, -(2**63), 2**63 - 1]])
SEEN = np.array([5, 7, 0, 2**62, -(2**63), 3])
NEW = 10**9


def trained(layer, ids=SEEN):
    """A layer whose table has rows for ids, that differ from initial ones."""
    layer(ids, training=True)
    for table in layer.table_group.tables:
        for records in table.export_chunks():
            rows = np.sin(np.arange(records.rows.size)).reshape(
                records.rows.shape
            )
            table.import_records(records._replace(rows=rows))
    return layer


def reload(model, folder, **options):
    return tf.saved_model.load(export(model, folder, **options).path)


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, tf.RaggedTensor):
        for mine, theirs in zip(
            one.nested_row_splits, other.nested_row_splits, strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
        one, other = one.flat_values, other.flat_values
    assert one.dtype == other.dtype
    tolerance = 1e-2 if one.dtype.size == 2 else 1e-6
    np.testing.assert_allclose(
        tf.cast(one, tf.float32), tf.cast(other, tf.float32), atol=tolerance
    )


def dense_model(**options):
    ids = keras.Input((None,), dtype="int64", name="ids")
    layer = trained(Embedding(3, name="table", **options))
    return keras.Model(ids, layer(ids))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"embeddings_initializer": "random_normal"},
        {"embeddings_initializer": "truncated_normal", "seed": -3},
        {"embeddings_initializer": 0.5},
        {"embeddings_initializer": np.array([1.0, 2.0, 3.0])},
        {"inference_default": "zeros"},
        {"inference_default": [1.0, 2.0, 3.0]},
        {"embeddings_initializer": lambda shape: np.ones(shape)},
        {"combiner": "sum"},
        {"combiner": "mean", "mask_zero": True},
        {"combiner": "sqrtn"},
        {"dtype": "mixed_float16"},
        {"dtype": "bfloat16"},
        {"dtype": "float16"},
    ],
)
def test_dense_ids_and_absent_ones(options, tmp_path):
    model = dense_model(**options)
    loaded = reload(model, tmp_path / "model")
    ids = tf.constant(IDS)
    expected = model(ids, training=False)
    assert_same(loaded.serve(ids), expected)
    answer = loaded.signatures["serving_default"](ids=ids)
    assert_same(answer["output_0"], expected)


def _weighted(kind):
    options = {"sparse": True} if kind == "sparse" else {"ragged": True}
    ids = keras.Input((None,), dtype="int64", name="ids", **options)
    weights = keras.Input((None,), dtype="float32", name="weights", **options)
    layer = trained(Embedding(3, name="table", combiner="mean"))
    return keras.Model([ids, weights], layer(ids, weights))


def _ragged(values, splits):
    return tf.RaggedTensor.from_row_splits(tf.constant(values), splits)


SPLITS = tf.constant([0, 2, 2, 5], tf.int64)
RAGGED = _ragged([5, 0, -9, 5, NEW], SPLITS)
RAGGED = tf.cast(RAGGED, tf.int64)
WEIGHTS = _ragged([1.0, 2.0, 0.5, 0.0, 3.0], SPLITS)


def test_ragged_ids_keep_their_rows(tmp_path):
    ids = keras.Input((None,), dtype="int64", name="my ids", ragged=True)
    model = keras.Model(ids, trained(Embedding(3))(ids))
    loaded = reload(model, tmp_path / "model")
    expected = model(RAGGED, training=False)
    assert_same(loaded.serve(RAGGED), expected)
    answer = loaded.signatures["serving_default"](
        my_ids_values=RAGGED.values, my_ids_row_splits=RAGGED.row_splits
    )
    assert_same(answer["output_0_values"], expected.values)
    assert_same(answer["output_0_row_splits"], expected.row_splits)


def test_ragged_ids_with_weights_and_empty_bags(tmp_path):
    model = _weighted("ragged")
    loaded = reload(model, tmp_path / "model")
    expected = model([RAGGED, WEIGHTS], training=False)
    assert_same(loaded.serve([RAGGED, WEIGHTS]), expected)
    np.testing.assert_array_equal(expected[1], np.zeros(3))


def test_sparse_ids_with_weights(tmp_path):
    model = _weighted("sparse")
    loaded = reload(model, tmp_path / "model")
    sparse = [RAGGED.to_sparse(), WEIGHTS.to_sparse()]
    expected = model(sparse, training=False)
    assert_same(loaded.serve(sparse), expected)
    tensors = {}
    for name, one in zip(("ids", "weights"), sparse, strict=True):
        tensors[f"{name}_values"] = one.values
        tensors[f"{name}_indices"] = one.indices
        tensors[f"{name}_dense_shape"] = one.dense_shape
    answer = loaded.signatures["serving_default"](**tensors)
    assert_same(answer["output_0"], expected)


def test_nested_ragged_ids(tmp_path):
    layer = trained(Embedding(3, combiner="sum"))
    spec = tf.RaggedTensorSpec([None, None, None], tf.int64, ragged_rank=2)
    nested = tf.ragged.constant([[[5, 7], []], [[0]]], dtype=tf.int64)
    folder = export(
        layer, tmp_path / "model", signature={"serving_default": spec}
    ).path
    loaded = tf.saved_model.load(folder)
    assert_same(loaded.serve(nested), layer(nested, training=False))
    _, inputs = loaded.signatures["serving_default"].structured_input_signature
    assert set(inputs) == {
        "inputs_values",
        "inputs_row_splits_0",
        "inputs_row_splits_1",
    }


def test_strings_are_hashed_as_in_training(tmp_path):
    words = np.array([["a", ""], ["b", "new"]], dtype=object)
    ids = keras.Input((None,), dtype="string", name="ids")
    layer = trained(Embedding(3, key_dtype="string"), np.array(["a", "b", ""]))
    model = keras.Model(ids, layer(ids))
    loaded = reload(model, tmp_path / "model")
    words = tf.constant(words)
    assert_same(loaded.serve(words), model(words, training=False))


def test_an_empty_table(tmp_path):
    layer = Embedding(2, embeddings_initializer=7.0)
    spec = tf.TensorSpec([None], tf.int64)
    exported = export(layer, tmp_path / "model", signature=spec)
    assert exported.tables[0].keys == 0
    loaded = tf.saved_model.load(exported.path)
    rows = loaded.serve(tf.constant([1, 2], tf.int64))
    np.testing.assert_array_equal(rows, np.full((2, 2), 7.0))


def _slots(ids):
    return ids % 2


@pytest.mark.parametrize("devices", [None, ["CPU:0", "CPU:0"]], ids=str)
@pytest.mark.parametrize(
    "make",
    [
        de.keras.layers.Embedding,
        de.keras.layers.SquashedEmbedding,
        lambda dim, **options: de.keras.layers.FieldWiseEmbedding(
            dim, 2, slot_map_fn=_slots, **options
        ),
        lambda dim, **options: de.keras.layers.SquashedEmbedding(
            dim, max_norm=0.5, combiner="mean", **options
        ),
    ],
    ids=["rows", "squashed", "fields", "max_norm"],
)
def test_layers_of_dynamic_embedding(make, devices, tmp_path):
    layer = trained(make(3, devices=devices, name="layer"), SEEN[None])
    ids = keras.Input((3,), dtype="int64")
    model = keras.Model(ids, layer(ids))
    loaded = reload(model, tmp_path / "model")
    given = tf.constant(IDS)
    assert_same(loaded.serve(given), model(given, training=False))


@pytest.mark.parametrize("devices", [None, ["CPU:0", "CPU:0"]], ids=str)
def test_functions_that_look_up(devices, tmp_path):
    user = de.Variable(dim=2, name="user", devices=devices, initializer=0.25)
    user.upsert(SEEN, np.arange(12.0).reshape(6, 2))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64)])
    def lookups(ids):
        sparse = tf.sparse.from_dense(ids)
        return {
            "rows": de.embedding_lookup(user, ids),
            "pooled": de.embedding_lookup_sparse(user, sparse, None),
            "safe": de.safe_embedding_lookup_sparse(user, sparse),
            "direct": user.lookup(ids),
            "table": user.tables[0].lookup(ids, default=2.0),
        }

    expected = lookups(tf.constant(IDS))
    size = int(user.size())
    loaded = reload(
        lookups, tmp_path / "model", signature={"serving_default": lookups}
    )
    # In inference mode no lookup makes rows; here the default mode is TRAIN.
    answer = loaded.serve(tf.constant(IDS))
    if devices is not None:
        expected.pop("table"), answer.pop("table")
    assert set(answer) == set(expected)
    for name, value in expected.items():
        assert_same(answer[name], value)
    assert int(user.size()) == size


def test_control_flow_in_a_function(tmp_path):
    user = de.Variable(dim=2, name="user", initializer=0.25)

    def rows(ids):
        if tf.size(ids) > 2:
            return de.embedding_lookup(user, ids) + 1.0
        return de.embedding_lookup(user, ids)

    spec = tf.TensorSpec([None], tf.int64)
    loaded = reload(
        rows, tmp_path / "model", signature={"serving_default": (rows, spec)}
    )
    assert loaded.serve(tf.constant([1, 2, 3], tf.int64))[0, 0] == 1.25
    assert loaded.serve(tf.constant([1], tf.int64))[0, 0] == 0.25


class TwoTowers(keras.Model):
    def __init__(self):
        super().__init__()
        self.users = trained(Embedding(3, name="users"))
        self.items = trained(Embedding(3, name="items", combiner="mean"))
        self.dense = keras.layers.Dense(2)

    def call(self, inputs, training=None):
        users = self.users(inputs["user"], training=training)
        items = self.items(inputs["items"], training=training)
        return {"score": self.dense(users + items), "users": users}


FEATURES = {"user": tf.constant(IDS[:, 0]), "items": tf.constant(IDS)}
SPECS = {
    "user": tf.TensorSpec([None], tf.int64),
    "items": tf.TensorSpec([None, None], tf.int64),
}


@pytest.mark.parametrize(
    "signature",
    [SPECS, lambda: SPECS, FEATURES, {"serving_default": SPECS}],
    ids=["specs", "function", "examples", "by name"],
)
def test_subclass_models(signature, tmp_path):
    model = TwoTowers()
    expected = model(FEATURES, training=False)
    loaded = reload(model, tmp_path / "model", signature=signature)
    served = loaded.signatures["serving_default"](**FEATURES)
    for answer in (loaded.serve(FEATURES), served):
        assert set(answer) == {"score", "users"}
        assert_same(answer["score"], expected["score"])
    # Another batch size.
    two = {name: value[:2] for name, value in FEATURES.items()}
    assert_same(loaded.serve(two)["score"], expected["score"][:2])


def test_several_signatures_share_tables(tmp_path):
    model = TwoTowers()
    model(FEATURES)

    def users(ids):
        return model.users(ids, training=False)

    exported = export(
        model,
        tmp_path / "model",
        signature={
            "serving_default": SPECS,
            "users": (users, tf.TensorSpec([None], tf.int64, name="user")),
        },
    )
    assert sorted(table.name for table in exported.tables) == ["items", "users"]
    loaded = tf.saved_model.load(exported.path)
    rows = loaded.signatures["users"](user=FEATURES["user"])["output_0"]
    assert_same(rows, model.users(FEATURES["user"], training=False))
    assert_same(loaded.users(FEATURES["user"]), rows)


def test_sequential_models(tmp_path):
    model = keras.Sequential(
        [
            keras.Input((3,), dtype="int64", name="class"),
            trained(Embedding(3)),
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ]
    )
    loaded = reload(model, tmp_path / "model")
    given = tf.constant(IDS)
    assert_same(loaded.serve(given), model(given, training=False))


def test_hash_tables_of_keras_come_along(tmp_path):
    words = keras.Input((), dtype="string", name="words")
    numbers = keras.layers.StringLookup(vocabulary=["a", "b"])(words)
    model = keras.Model(words, trained(Embedding(3))(numbers))
    loaded = reload(model, tmp_path / "model")
    given = tf.constant(["b", "a", "c"])
    assert_same(loaded.serve(given), model(given, training=False))


def test_loaded_models_are_copies(tmp_path):
    model = dense_model()
    ids = tf.constant(IDS)
    expected = model(ids, training=False)
    loaded = reload(model, tmp_path / "model")
    trained_on = model.layers[1]
    trained_on.table.assign(SEEN, np.ones((6, 3)))
    assert_same(loaded.serve(ids), expected)


def test_sessions_load_it_as_servers_do(tmp_path):
    model = dense_model()
    expected = model(tf.constant(IDS), training=False)
    path = export(model, tmp_path / "model").path
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], path)
        signature = graph.signature_def["serving_default"]
        given = signature.inputs["ids"]
        assert [d.size for d in given.tensor_shape.dim] == [-1, -1]
        rows = session.run(
            signature.outputs["output_0"].name, {given.name: IDS}
        )
    np.testing.assert_allclose(rows, expected, atol=1e-6)


def test_s04_constants_for_variables(tmp_path):
    from tensorflow.python.framework.convert_to_constants import (
        convert_variables_to_constants_v2,
    )

    model = dense_model()
    loaded = reload(model, tmp_path / "model")
    signature = loaded.signatures["serving_default"]
    frozen = convert_variables_to_constants_v2(signature)
    assert not frozen.variables
    assert [given.dtype for given in frozen.inputs] == [tf.int64]
    ids = tf.constant(IDS)
    expected = model(ids, training=False)
    assert_same(tf.nest.flatten(frozen(ids))[0], expected)


def test_c12_rows_are_not_in_the_graph(tmp_path):
    layer = Embedding(16, embeddings_initializer=np.linspace(0, 1, 16))
    sizes = []
    for count in (1_000, 100_000):
        layer.table.lookup(np.arange(count), insert=True)
        path = export(
            layer,
            tmp_path / str(count),
            signature=tf.TensorSpec([None], tf.int64),
        ).path
        sizes.append(os.path.getsize(f"{path}/saved_model.pb"))
        files = Path(path, "variables").iterdir()
        assert sum(file.stat().st_size for file in files) > 64 * count
    assert sizes[0] == sizes[1] < 2**16


def test_l15_threads_get_their_own_answers(tmp_path):
    layer = trained(Embedding(4), np.arange(1000))
    spec = tf.TensorSpec([None], tf.int64)

    def echo(ids):
        return {"ids": ids, "rows": layer(ids, training=False)}

    signature = {"serving_default": (echo, spec)}
    loaded = reload(layer, tmp_path / "model", signature=signature)
    serve = loaded.signatures["serving_default"]
    rows = layer(np.arange(2000), training=False).numpy()
    wrong = []

    def client(number):
        random = np.random.default_rng(number)
        for _ in range(625):
            ids = random.integers(0, 2000, random.integers(1, 100))
            answer = serve(tf.constant(ids))
            same = np.array_equal(answer["ids"], ids)
            if not same or not np.allclose(answer["rows"], rows[ids]):
                wrong.append(number)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("before", [True, False])
def test_tf_functions_inside_are_refused(before, tmp_path):
    layer = trained(Embedding(3))

    @tf.function
    def inner(ids):
        return layer(ids, training=False)

    spec = tf.TensorSpec([None], tf.int64)
    if before:
        inner.get_concrete_function(spec)

    def outer(ids):
        return inner(ids) + 1.0

    signature = {"serving_default": (outer, spec)}
    with pytest.raises(StockOpsError, match="Leave out that tf.function"):
        export(outer, tmp_path / "model", signature=signature)
    assert not list(tmp_path.iterdir())
    # Nothing of the attempt is left in the function.
    ids = tf.constant(SEEN)
    assert_same(inner(ids), layer(ids, training=False))


def test_changes_of_tables_are_refused(tmp_path):
    table = Embedding(3).table

    def change(ids):
        table.remove(ids)
        return table.lookup(ids)

    spec = tf.TensorSpec([None], tf.int64)
    with pytest.raises(StockOpsError, match="EmbedraTableRemove"):
        export(change, tmp_path / "m", signature={"change": (change, spec)})
