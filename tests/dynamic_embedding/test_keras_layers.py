"""de.keras.layers in models of Keras 3."""

import doctest
import importlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from dynamic_embedding.keras_models import (
    DIM,
    KINDS,
    remainder,
    start_rows,
    started,
)
from numerics import assert_allclose


layers = de.keras.layers


@pytest.mark.parametrize(
    "name",
    [
        "layers._embedding",
        "layers._layer_normalization",
        "legacy.layers",
        "models",
    ],
)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"{de.keras.__name__}.{name}")
    result = doctest.testmod(module)
    assert result.attempted
    assert result.failed == 0


# Shapes and structures.

SHAPES = [(5,), (2, 3), (2, 3, 4), (0, 3)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_each_id_has_a_row(shape, kind):
    ids = np.arange(np.prod(shape)).reshape(shape) % 14
    layer = started(layers.Embedding(DIM, **KINDS[kind]))
    assert_allclose(layer(ids), start_rows(ids.ravel()).reshape((*shape, DIM)))
    symbolic = layer(keras.Input(shape[1:], dtype="int64"))
    assert symbolic.shape == (None, *shape[1:], DIM)


POOLS = {
    "sum": lambda rows: rows.sum(0),
    "mean": lambda rows: rows.mean(0),
    "sqrtn": lambda rows: rows.sum(0) / np.sqrt(len(rows)),
    "max": lambda rows: rows.max(0),
    "min": lambda rows: rows.min(0),
    "prod": lambda rows: rows.prod(0),
}
POOLS_AND_KINDS = [
    *((combiner, "one") for combiner in POOLS),
    *((combiner, "two_devices") for combiner in ("sum", "mean", "max")),
    *((combiner, "max_norm") for combiner in ("sum", "sqrtn", "prod")),
]


@pytest.mark.parametrize(("combiner", "kind"), POOLS_AND_KINDS)
def test_squashed_pools_examples_of_any_shape(combiner, kind):
    layer = started(
        layers.SquashedEmbedding(DIM, combiner=combiner, **KINDS[kind])
    )
    ids = np.arange(12).reshape(2, 3, 2)
    expected = [POOLS[combiner](start_rows(e.ravel())) for e in ids]
    assert_allclose(layer(ids), expected)
    assert_allclose(layer(ids[0].ravel()), expected[0])
    assert layer(np.zeros((0, 3), np.int64)).shape == (0, DIM)
    assert layer(keras.Input((3, 2), dtype="int64")).shape == (None, DIM)


@pytest.mark.parametrize("combiner", ["sum", "mean", "max", "prod"])
@pytest.mark.parametrize("structure", ["ragged", "sparse", "deep_ragged"])
def test_squashed_pools_uneven_examples(combiner, structure):
    examples = [[1, 2, 2], [], [5]]
    ids = tf.ragged.constant(examples, dtype=tf.int64)
    if structure == "sparse":
        ids = ids.to_sparse()
    if structure == "deep_ragged":
        ids = tf.ragged.constant([[[1], [2, 2]], [], [[5]]], dtype=tf.int64)
    layer = started(layers.SquashedEmbedding(DIM, combiner=combiner))
    expected = [
        POOLS[combiner](start_rows(e)) if e else np.zeros(DIM) for e in examples
    ]
    assert_allclose(layer(ids), expected)


@pytest.mark.parametrize(("combiner", "kind"), POOLS_AND_KINDS)
@pytest.mark.parametrize("structure", ["dense", "ragged", "sparse"])
def test_field_wise_pools_by_field(structure, combiner, kind):
    layer = started(
        layers.FieldWiseEmbedding(
            DIM, 3, slot_map_fn=remainder, combiner=combiner, **KINDS[kind]
        )
    )
    examples = [[9, 12, 1, 3], [2, 2, 5, 8]]
    if structure != "dense":
        examples = [*examples, [], [7]]
    ids = tf.ragged.constant(examples, dtype=tf.int64)
    expected = np.zeros((len(examples), 3, DIM))
    for example, output in zip(examples, expected, strict=True):
        for field in {i % 3 for i in example}:
            members = [i for i in example if i % 3 == field]
            output[field] = POOLS[combiner](start_rows(members))
    if structure == "dense":
        ids = ids.to_tensor()
    if structure == "sparse":
        ids = ids.to_sparse()
    assert_allclose(layer(ids), expected, atol=1e-5)
    symbolic = layer(keras.Input((4,), dtype="int64"))
    assert symbolic.shape == (None, 3, DIM)


def test_ragged_ids_keep_their_structure_in_a_functional_model():
    ids = keras.Input((None,), dtype="int64", ragged=True)
    layer = started(layers.Embedding(DIM))
    model = keras.Model(ids, layer(ids))
    batch = tf.ragged.constant([[1, 2], [], [3]], dtype=tf.int64)
    rows = model(batch)
    assert rows.row_lengths().numpy().tolist() == [2, 0, 1]
    assert_allclose(rows.flat_values, start_rows([1, 2, 3]))


def test_string_ids():
    layer = layers.SquashedEmbedding(DIM, key_dtype=tf.string, initializer=1.0)
    words = tf.constant([["a", "b"], ["a", "c"]])
    assert_allclose(layer(words, training=True), np.full((2, DIM), 2.0))
    assert layer.size() == 3


def test_layers_of_one_name_have_tables_of_their_own_unless_shared():
    one, other = (layers.Embedding(DIM) for _ in "ab")
    one(np.array([1]), training=True)
    assert (one.size(), other.size()) == (1, 0)
    one, other = (layers.Embedding(DIM, shared_name="both") for _ in "ab")
    one(np.array([1]), training=True)
    assert (one.size(), other.size()) == (1, 1)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_keeps_rows_in_float32(policy):
    for layer in (
        layers.Embedding(DIM, dtype=policy),
        layers.SquashedEmbedding(DIM, dtype=policy),
        layers.FieldWiseEmbedding(DIM, 3, remainder, dtype=policy),
    ):
        outputs = layer(np.array([[1, 2]]), training=True)
        assert outputs.dtype == policy.removeprefix("mixed_")
        assert layer.params.value_dtype == tf.float32
        assert layer(keras.Input((2,), dtype="int64")).dtype == outputs.dtype


def test_rows_of_half_precision():
    layer = layers.Embedding(DIM, value_dtype=tf.bfloat16, initializer="ones")
    assert layer(np.array([[1]]), training=True).dtype == tf.bfloat16
    assert layer.params.tables[0].dtype == "bfloat16"


def test_masks():
    ids = np.array([[3, 0], [0, 0]])
    layer = started(layers.Embedding(DIM, mask_zero=True))
    assert layer.compute_mask(tf.constant(ids)).numpy().tolist() == [
        [True, False],
        [False, False],
    ]
    assert layers.Embedding(DIM).compute_mask(ids) is None
    squashed = started(layers.SquashedEmbedding(DIM, mask_zero=True))
    expected = [start_rows([3])[0], np.zeros(DIM)]
    assert_allclose(squashed(ids), expected)
    fields = layers.FieldWiseEmbedding(DIM, 3, remainder, mask_zero=True)
    outputs = started(fields)(ids).numpy()
    assert_allclose(outputs[:, 0], expected)
    assert not outputs[:, 1:].any()


def test_layer_normalization_of_unknown_dimensions():
    ours, stock = layers.LayerNormalization(), keras.layers.LayerNormalization()
    inputs = keras.Input((None, DIM))
    model = keras.Model(inputs, ours(inputs))
    values = np.random.default_rng(1).normal(size=(2, 5, DIM))
    assert_allclose(model(values), stock(values), atol=1e-5)


@pytest.mark.parametrize("axis", [-1, 2])
def test_layer_normalization_of_ragged_rows(axis):
    ids = keras.Input((None,), dtype="int64", ragged=True)
    rows = started(layers.Embedding(DIM))(ids)
    model = keras.Model(ids, layers.LayerNormalization(axis=axis)(rows))
    batch = tf.ragged.constant([[1, 2], [], [3]], dtype=tf.int64)
    expected = keras.layers.LayerNormalization()(start_rows([1, 2, 3]))
    assert_allclose(model(batch).flat_values, expected)


def test_layer_normalization_refuses_ragged_dimensions():
    layer = layers.LayerNormalization(axis=[1, 2])
    layer(np.zeros((1, 2, DIM)))
    rows = tf.RaggedTensor.from_row_splits(start_rows([1, 2]), [0, 2])
    with pytest.raises(ValueError, match="cannot normalize ragged dim"):
        layer(rows)


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"combiner": "median"}, ValueError, "`combiner` must be one of"),
        ({"embedding_size": "x"}, TypeError, "`embedding_size` must be an int"),
        ({"embedding_size": 0}, ValueError, "'ids' must be a positive"),
        ({"max_norm": -1}, ValueError, "`max_norm` must be positive"),
        ({"key_dtype": tf.float32}, ValueError, "`key_dtype` of table 'ids'"),
        ({"value_dtype": tf.int32}, ValueError, "`dtype` of table 'ids'"),
        ({"initializer": [1.0]}, ValueError, "width"),
        ({"restrict_policy": "Nothing"}, ValueError, "no restrict policy"),
        ({"no_such": 1}, ValueError, "no_such"),
    ],
)
def test_bad_arguments(arguments, error, message):
    if arguments.get("initializer"):
        arguments = {"initializer": [1.0, 2.0]}
    arguments = {"embedding_size": DIM, "name": "ids", **arguments}
    with pytest.raises(error, match=message):
        layers.Embedding(**arguments)


@pytest.mark.parametrize("slot_map_fn", [None, 3])
def test_field_wise_needs_a_function(slot_map_fn):
    with pytest.raises(ValueError, match="needs a `slot_map_fn`"):
        layers.FieldWiseEmbedding(DIM, 3, slot_map_fn=slot_map_fn)


def test_field_wise_refuses_fields_that_are_not_there():
    layer = layers.FieldWiseEmbedding(DIM, 3, lambda ids: ids)
    with pytest.raises(tf.errors.InvalidArgumentError, match="0 to 2"):
        layer(np.array([[1, 3]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="0 to 2"):
        tf.function(layer)(tf.constant([[1, -1]]))


def test_bad_ids():
    layer = layers.Embedding(DIM, name="user")
    sparse = tf.sparse.from_dense([[1]])
    for ids, error, message in (
        (np.array([1.0]), TypeError, "'user' needs integer or string ids"),
        (np.array(1), ValueError, "'user' needs ids of rank 1 or more"),
        (sparse, ValueError, "'user' gives a row for each id"),
    ):
        with pytest.raises(error, match=message):
            layer(ids)
    fields = layers.FieldWiseEmbedding(DIM, 3, remainder, name="user")
    with pytest.raises(ValueError, match="'user' needs ids of rank 2"):
        fields(np.array([1]))
    with pytest.raises(TypeError, match="'user' needs integer or string ids"):
        layer(keras.Input((2,)))
