"""Features of every kind are answered as the model does."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.layers import Embedding
from embedra.saved_model import export

from .models import (
    IDS,
    NEW,
    assert_same,
    dense_model,
    reload,
    trained,
)


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


@pytest.mark.parametrize(
    ("dtype", "ids"),
    [
        ("int8", [1, -128, 127]),
        ("int32", [1, -(2**31), 2**31 - 1]),
        ("uint64", [1, 2**63, 2**64 - 1]),
    ],
)
def test_integer_ids_of_any_width(dtype, ids, tmp_path):
    ids = tf.constant(ids, dtype)
    layer = trained(Embedding(3), ids)
    spec = tf.TensorSpec([None], dtype)
    loaded = reload(layer, tmp_path / "model", signature=spec)
    assert_same(loaded.serve(ids), layer(ids, training=False))


@pytest.mark.parametrize(
    "spec",
    [
        tf.RaggedTensorSpec(None, tf.int64, ragged_rank=1),
        tf.RaggedTensorSpec([2, None], tf.int64),
        tf.SparseTensorSpec(None, tf.int64),
        tf.SparseTensorSpec([None, 7], tf.int64),
    ],
    ids=["ragged", "ragged batch", "sparse", "sparse width"],
)
@pytest.mark.parametrize("native_ops", [False, True])
def test_shapes_that_specs_leave_open(spec, native_ops, tmp_path):
    layer = trained(Embedding(3, combiner="mean", mask_zero=True))
    loaded = reload(
        layer, tmp_path / "model", signature=spec, native_ops=native_ops
    )
    ids = tf.RaggedTensor.from_row_splits(RAGGED.values, SPLITS)
    if isinstance(spec, tf.SparseTensorSpec):
        ids = ids.to_sparse()
        ids = tf.sparse.reset_shape(ids, [3, 7])
    expected = layer(ids, training=False)
    assert_same(loaded.serve(ids), expected)


def test_lists_in_dicts_are_numbered(tmp_path):
    layer = trained(Embedding(3))
    spec = tf.TensorSpec([None], tf.int64, "ids")
    signature = {"serving_default": {"user": spec, "seen": [spec, spec]}}

    class Sum(keras.Model):
        def call(self, inputs):
            one, other = inputs["seen"]
            return layer(inputs["user"]) + layer(one) - layer(other)

    loaded = reload(Sum(), tmp_path / "model", signature=signature)
    one, two = tf.constant(IDS[:, 0]), tf.constant(IDS[:, 1])
    rows = loaded.signatures["serving_default"](
        user=one, seen_0=two, seen_1=two
    )
    assert_same(rows["output_0"], layer(one, training=False))
