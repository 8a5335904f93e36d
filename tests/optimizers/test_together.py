"""Tables that one op updates get what each would get by itself."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.layers import Embedding
from embedra.optimizers import DynamicEmbeddingOptimizer


O = keras.optimizers
IDS = np.array([[3, 5, 3], [5, 9, 1]])


def make_layers():
    """Four tables, of which two have a say in their own updates."""
    return [
        Embedding(4, seed=1, name="plain"),
        Embedding(4, seed=2, name="undecayed"),
        Embedding(
            4, seed=3, name="constrained", embeddings_constraint="non_neg"
        ),
        Embedding(4, seed=4, name="own", optimizer=O.SGD(0.5)),
    ]


def without_decay(optimizer, layer):
    """Leaves a layer out of an optimizer's weight decay."""
    optimizer.exclude_from_weight_decay(var_list=[layer.embeddings])
    return optimizer


def train(layers, optimizer, steps=3):
    """Trains layers by one step function, and returns it and their rows."""

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.add_n(
                [
                    tf.reduce_sum(layer(IDS, training=True) ** 2) * (i + 1)
                    + tf.reduce_sum(layer(IDS[:1], training=True))
                    for i, layer in enumerate(layers)
                ]
            )
        variables = [layer.embeddings for layer in layers]
        optimizer.apply(tape.gradient(loss, variables), variables)

    for layer in layers:
        layer.build(None)
    for _ in range(steps):
        step()
    ids = tf.constant([1, 3, 5, 9], tf.int64)
    rows = [layer(ids, training=False).numpy() for layer in layers]
    return step.get_concrete_function(), rows


def updates(function):
    """The update ops of a function, and how many tables each has."""
    return sorted(
        op.get_attr("N")
        for op in function.graph.get_operations()
        if op.type == "EmbedraTableUpdate"
    )


OPTIMIZERS = {
    "adam": lambda: O.Adam(0.1, weight_decay=0.3),
    "adagrad": lambda: O.Adagrad(0.1, clipnorm=0.5),
    "momentum": lambda: O.SGD(0.1, momentum=0.5, clipvalue=0.2),
    "lion": lambda: O.Lion(0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_table_gets_what_a_plain_optimizer_gives_it(name):
    rows = []
    for wrap in (DynamicEmbeddingOptimizer, lambda optimizer: optimizer):
        layers = make_layers()
        optimizer = without_decay(OPTIMIZERS[name](), layers[1])
        rows.append(train(layers, wrap(optimizer))[1])
    for together, alone in zip(*rows, strict=True):
        np.testing.assert_array_equal(together, alone)


def test_tables_of_one_optimizer_share_an_op():
    layers = [
        Embedding(4 + s, seed=s, name=f"table_{s}", combiner="sum")
        for s in range(5)
    ]
    function = train(layers, DynamicEmbeddingOptimizer(O.Adam(0.1)))[0]
    assert updates(function) == [5]


def test_tables_with_settings_of_their_own_do_not():
    layers = make_layers()
    optimizer = without_decay(O.Adam(0.1, weight_decay=0.3), layers[1])
    function, _ = train(layers, DynamicEmbeddingOptimizer(optimizer))
    assert updates(function) == [1, 1, 1, 1]
