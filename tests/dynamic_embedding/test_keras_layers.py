"""de.keras.layers in models of Keras 3."""

import doctest
import importlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
import embedra.layers
from dynamic_embedding.keras_models import (
    DIM,
    assert_same_records,
    batches,
    dense,
    fit,
    network,
    records,
    start_rows,
)
from numerics import assert_allclose


layers = de.keras.layers

TWO_DEVICES = {"devices": ["/CPU:0", "/CPU:0"]}
IDS = np.arange(-6, 14)
START = keras.initializers.RandomUniform(-1.0, 1.0, seed=5)

# What is built of one table, of several, and of rows that are clipped.
KINDS = {"one": {}, "two_devices": TWO_DEVICES, "max_norm": {"max_norm": 9.0}}


def remainder(ids):
    """The field of an id."""
    return tf.math.floormod(ids, 3)


def _started(layer):
    """A layer with rows for all ids of `batches`."""
    if hasattr(layer, "params"):
        layer.params.upsert(IDS, start_rows(IDS))
    else:
        layer.table.assign(IDS, start_rows(IDS))
    return layer


def _rows(layer, ids=IDS):
    if hasattr(layer, "params"):
        return layer.params.lookup(ids).numpy()
    return layer.table.lookup(ids).numpy()


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


# The same numbers as Embedra's own layer.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_rows_are_those_of_embedras_layer_after_fit(optimizer, kind):
    ours = _started(layers.Embedding(DIM, **KINDS[kind]))
    theirs = _started(embedra.layers.Embedding(DIM))
    losses = fit(network(ours), optimizer, run_eagerly=False)
    assert_allclose(losses, fit(network(theirs), optimizer))
    assert_allclose(_rows(ours), _rows(theirs))
    assert np.abs(_rows(ours) - start_rows(IDS)).max() > 1e-5


@pytest.mark.parametrize(
    ("combiner", "kind"),
    [("sum", "one"), ("mean", "two_devices"), ("sqrtn", "max_norm")],
)
def test_pooled_rows_are_those_of_embedras_layer_after_fit(combiner, kind):
    ours = layers.SquashedEmbedding(DIM, combiner=combiner, **KINDS[kind])
    theirs = embedra.layers.Embedding(DIM, combiner=combiner)
    losses = fit(network(_started(ours)), "adam")
    assert_allclose(losses, fit(network(_started(theirs)), "adam"))
    assert_allclose(_rows(ours), _rows(theirs), atol=1e-5)


def test_slots_and_counters_are_those_of_embedras_layer():
    ours = layers.Embedding(DIM, initializer="ones")
    theirs = embedra.layers.Embedding(DIM, embeddings_initializer="ones")
    fit(network(ours), "adam")
    fit(network(theirs), "adam")
    assert_same_records(ours, theirs)


# Shapes and structures.

SHAPES = [(5,), (2, 3), (2, 3, 4), (0, 3)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_each_id_has_a_row(shape, kind):
    ids = np.arange(np.prod(shape)).reshape(shape) % 14
    layer = _started(layers.Embedding(DIM, **KINDS[kind]))
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
    layer = _started(
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
    layer = _started(layers.SquashedEmbedding(DIM, combiner=combiner))
    expected = [
        POOLS[combiner](start_rows(e)) if e else np.zeros(DIM) for e in examples
    ]
    assert_allclose(layer(ids), expected)


@pytest.mark.parametrize(("combiner", "kind"), POOLS_AND_KINDS)
@pytest.mark.parametrize("structure", ["dense", "ragged", "sparse"])
def test_field_wise_pools_by_field(structure, combiner, kind):
    layer = _started(
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
    layer = _started(layers.Embedding(DIM))
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


# What trains, and what inserts.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "cls",
    [
        layers.Embedding,
        layers.SquashedEmbedding,
        lambda *a, **k: layers.FieldWiseEmbedding(*a, 3, remainder, **k),
    ],
)
def test_who_inserts(cls, kind):
    layer = cls(DIM, **KINDS[kind])
    ids = np.array([[1, 2]])
    for training in (None, False):
        layer(ids, training=training)
        assert layer.size() == 0
    layer(ids, training=True)
    assert layer.size() == 2
    for in_function in (False, True):
        call = tf.function(layer) if in_function else layer
        ids = ids + 100
        before = layer.size()
        with tf.GradientTape() as tape:
            outputs = call(tf.constant(ids))
            assert layer.size() == before
            loss = tf.reduce_sum(outputs)
        gradient = tape.gradient(loss, layer.trainable_variables)[0]
        assert layer.size() == before + 2
        assert_allclose(tf.reduce_sum(gradient.values), 2.0 * DIM)


def test_the_inference_mode_inserts_nothing_unless_a_call_says_so():
    layer = layers.Embedding(DIM)
    de.enable_inference_mode()
    try:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(np.array([1, 2])))
        tape.gradient(loss, layer.trainable_variables)
        assert layer.size() == 0
        layer(np.array([1, 2]), training=True)
        assert layer.size() == 2
    finally:
        de.enable_train_mode()


def test_the_gradient_of_an_insert_reads_the_row_that_was_read():
    layer = layers.SquashedEmbedding(
        DIM, combiner="prod", initializer=START, **TWO_DEVICES
    )
    with tf.GradientTape() as tape:
        outputs = layer(np.array([[1, 2]]))
    tape.gradient(outputs, layer.trainable_variables)
    assert_allclose(layer(np.array([[1, 2]])), outputs)


@pytest.mark.parametrize("kind", KINDS)
def test_k09_nothing_but_training_changes_a_table(kind):
    layer = layers.Embedding(DIM, initializer=START, **KINDS[kind])
    model = network(layer)
    fit(model, "adam")
    before = records(layer)
    unseen = np.arange(1000, 1008).reshape(2, 4)
    model.evaluate(unseen, np.zeros((2, 1)), verbose=0)
    model.predict(unseen, verbose=0)
    model(unseen)
    model(unseen, training=False)
    for mine, theirs in zip(records(layer), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    model.train_on_batch(unseen, np.zeros((2, 1)))
    assert layer.size() == len(before[0]) + 8


@pytest.mark.parametrize("wrapped", [False, True])
def test_f02_a_custom_loop_is_the_same_as_fit(wrapped):
    def optimizer():
        plain = keras.optimizers.Adam(0.1)
        return de.DynamicEmbeddingOptimizer(plain) if wrapped else plain

    fitted, looped = (layers.Embedding(DIM, initializer=START) for _ in "ab")
    model, own = network(fitted), network(looped)
    fit(model, optimizer(), run_eagerly=False)
    stepper = optimizer()

    @tf.function
    def step(ids, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((own(ids, training=True) - labels) ** 2)
        variables = own.trainable_variables
        stepper.apply_gradients(
            zip(tape.gradient(loss, variables), variables, strict=True)
        )

    assert any(v is looped.shadow for v in own.trainable_variables)
    for ids, labels in batches():
        step(tf.constant(ids), tf.constant(labels))
    assert_allclose(_rows(looped), _rows(fitted))


class Twice(keras.Model):
    def __init__(self, layer):
        super().__init__()
        self.layer, self.dense = layer, dense()

    def call(self, ids, training=None):
        one = self.layer(ids[:, :1], training=training)
        other = self.layer(ids, training=training)
        return self.dense(tf.reduce_sum(tf.concat([one, other], 1), axis=1))


@pytest.mark.parametrize("way", ["fit", "loop"])
def test_f03_uses_of_a_table_in_a_step_are_joined(way):
    sparse = Twice(_started(layers.Embedding(DIM)))
    # A vocabulary for ids from -6; a dense gradient is that of joined uses.
    table = keras.layers.Embedding(20, DIM)
    table.build()
    table.embeddings.assign(start_rows(IDS))
    full = Twice(table)
    for model, shift in ((sparse, 0), (full, 6)):
        optimizer = keras.optimizers.SGD(0.1)
        model.compile(optimizer, "mse")
        for ids, labels in batches():
            if way == "fit":
                model.train_on_batch(ids + shift, labels)
                continue
            with tf.GradientTape() as tape:
                outputs = model(tf.constant(ids + shift), training=True)
                loss = tf.reduce_mean((outputs - labels) ** 2)
            variables = model.trainable_variables
            gradients = tape.gradient(loss, variables)
            optimizer.apply(gradients, variables)
    assert_allclose(_rows(sparse.layer), table.embeddings.numpy(), atol=1e-5)


def test_f05_frozen_rows_stay_and_learn_after_thawing():
    layer = _started(layers.Embedding(DIM, trainable=False))
    model = network(layer)
    assert not any(v is layer.shadow for v in model.trainable_variables)
    fit(model, "adam")
    np.testing.assert_array_equal(_rows(layer), start_rows(IDS))
    layer.trainable = True
    fit(model, "adam")
    assert np.abs(_rows(layer) - start_rows(IDS)).max() > 1e-4


def test_max_norm_clips_rows_and_their_gradient():
    layer = layers.Embedding(2, initializer=[3.0, 4.0], max_norm=1.0)
    with tf.GradientTape() as tape:
        rows = layer(np.array([7]), training=True)
        loss = rows[0, 0]
    assert_allclose(rows, [[0.6, 0.8]])
    gradient = tape.gradient(loss, layer.trainable_variables)[0]
    # d(x / |x|) / dx = (1 - x x' / |x|^2) / |x|.
    assert_allclose(gradient.values, [[0.128, -0.096]])


# Models.


def _forms():
    """The same network in several forms."""

    def layer():
        return layers.Embedding(DIM, initializer=START)

    class Subclass(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = [layer(), keras.layers.Flatten(), dense()]

        def call(self, ids, training=None):
            rows = self.parts[0](ids, training=training)
            return self.parts[2](self.parts[1](rows))

    class UnawareOfTraining(Subclass):
        def call(self, ids):
            return self.parts[2](self.parts[1](self.parts[0](ids)))

    def sequential():
        return keras.Sequential([layer(), keras.layers.Flatten(), dense()])

    def nested():
        ids = keras.Input((4,), dtype="int64")
        inner = keras.Model(ids, keras.layers.Flatten()(layer()(ids)))
        again = keras.Input((4,), dtype="int64")
        return keras.Model(again, dense()(inner(again)))

    forms = [sequential, nested, Subclass, UnawareOfTraining]
    return {form.__name__: form for form in forms}


@pytest.mark.parametrize("form", _forms())
def test_k04_every_form_of_model_has_the_same_loss_curve(form):
    expected = fit(network(layers.Embedding(DIM, initializer=START)), "adam")
    losses = fit(_forms()[form](), "adam", run_eagerly=False)
    assert_allclose(losses, expected)


def test_k04_a_functional_model_of_stock_layers_can_be_converted():
    model = network(keras.layers.Embedding(20, DIM, name="ids"))

    def convert(layer):
        if isinstance(layer, keras.layers.Embedding):
            return layers.Embedding(layer.output_dim, name=layer.name)
        return layer.__class__.from_config(layer.get_config())

    copy = keras.models.clone_model(model, clone_function=convert)
    assert isinstance(copy.get_layer("ids"), layers.Embedding)
    losses = fit(copy, "adam")
    assert losses[0] > 0


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
    layer = _started(layers.Embedding(DIM, mask_zero=True))
    assert layer.compute_mask(tf.constant(ids)).numpy().tolist() == [
        [True, False],
        [False, False],
    ]
    assert layers.Embedding(DIM).compute_mask(ids) is None
    squashed = _started(layers.SquashedEmbedding(DIM, mask_zero=True))
    expected = [start_rows([3])[0], np.zeros(DIM)]
    assert_allclose(squashed(ids), expected)
    fields = layers.FieldWiseEmbedding(DIM, 3, remainder, mask_zero=True)
    outputs = _started(fields)(ids).numpy()
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
    rows = _started(layers.Embedding(DIM))(ids)
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


def test_plain_optimizers_refuse_to_step_shared_rows_twice():
    one, other = (
        layers.SquashedEmbedding(DIM, shared_name="twice", name=name)
        for name in "ab"
    )
    ids = keras.Input((4,), dtype="int64")
    model = keras.Model(ids, dense()(one(ids) + other(ids)))
    with pytest.raises(Exception, match="DynamicEmbeddingOptimizer"):
        fit(model, "adam")
    fit(model, de.DynamicEmbeddingOptimizer("adam"))
