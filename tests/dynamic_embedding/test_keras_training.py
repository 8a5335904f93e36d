"""What layers of de.keras train and insert, in models of Keras 3."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
import embedra.layers
from dynamic_embedding.keras_models import (
    DIM,
    IDS,
    KINDS,
    START,
    TWO_DEVICES,
    assert_same_records,
    batches,
    dense,
    fit,
    network,
    records,
    remainder,
    rows_of,
    start_rows,
    started,
)
from numerics import assert_allclose


layers = de.keras.layers


# The same numbers as Embedra's own layer.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_rows_are_those_of_embedras_layer_after_fit(optimizer, kind):
    ours = started(layers.Embedding(DIM, **KINDS[kind]))
    theirs = started(embedra.layers.Embedding(DIM))
    losses = fit(network(ours), optimizer, run_eagerly=False)
    assert_allclose(losses, fit(network(theirs), optimizer))
    assert_allclose(rows_of(ours), rows_of(theirs))
    assert np.abs(rows_of(ours) - start_rows(IDS)).max() > 1e-5


@pytest.mark.parametrize(
    ("combiner", "kind"),
    [("sum", "one"), ("mean", "two_devices"), ("sqrtn", "max_norm")],
)
def test_pooled_rows_are_those_of_embedras_layer_after_fit(combiner, kind):
    ours = layers.SquashedEmbedding(DIM, combiner=combiner, **KINDS[kind])
    theirs = embedra.layers.Embedding(DIM, combiner=combiner)
    losses = fit(network(started(ours)), "adam")
    assert_allclose(losses, fit(network(started(theirs)), "adam"))
    assert_allclose(rows_of(ours), rows_of(theirs), atol=1e-5)


def test_slots_and_counters_are_those_of_embedras_layer():
    ours = layers.Embedding(DIM, initializer="ones")
    theirs = embedra.layers.Embedding(DIM, embeddings_initializer="ones")
    fit(network(ours), "adam")
    fit(network(theirs), "adam")
    assert_same_records(ours, theirs)


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
    assert_allclose(rows_of(looped), rows_of(fitted))


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
    sparse = Twice(started(layers.Embedding(DIM)))
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
    assert_allclose(rows_of(sparse.layer), table.embeddings.numpy(), atol=1e-5)


def test_f05_frozen_rows_stay_and_learn_after_thawing():
    layer = started(layers.Embedding(DIM, trainable=False))
    model = network(layer)
    assert not any(v is layer.shadow for v in model.trainable_variables)
    fit(model, "adam")
    np.testing.assert_array_equal(rows_of(layer), start_rows(IDS))
    layer.trainable = True
    fit(model, "adam")
    assert np.abs(rows_of(layer) - start_rows(IDS)).max() > 1e-4


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
