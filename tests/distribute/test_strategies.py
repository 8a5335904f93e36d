"""Strategies of tf.distribute: those of one replica work, others are refused.

The cases are D07 of the catalogue.
"""

import contextlib
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra
from distribute.launching import run_embedra
from embedra import dynamic_embedding as de


v1 = tf.compat.v1

ONE_REPLICA = {
    "one_device": lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
    "mirrored": lambda: tf.distribute.MirroredStrategy(["/cpu:0"]),
}
# They need no devices, as they are never used.
REFUSED = {
    "mirrored": lambda: tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]),
    "servers": v1.distribute.experimental.ParameterServerStrategy,
}


def make_model(model_class, optimizer):
    inputs = keras.Input((3,), dtype="int64")
    rows = embedra.layers.Embedding(4, name="user", seed=3)(inputs)
    outputs = keras.layers.Dense(
        1, kernel_initializer=keras.initializers.GlorotUniform(1)
    )(keras.layers.Flatten()(rows))
    model = model_class(inputs, outputs)
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


def trained(model_class, make_optimizer, strategy):
    with strategy.scope():
        model = make_model(model_class, make_optimizer())
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 50, (64, 3))
    labels = (ids.sum(1, keepdims=True) % 2).astype("float32")
    history = model.fit(
        ids, labels, batch_size=16, epochs=2, shuffle=False, verbose=0
    )
    scores = model.evaluate(ids, labels, verbose=0)
    return history.history, scores, model.predict(ids, verbose=0)


def adam():
    return keras.optimizers.Adam(0.05)


def wrapped_adam():
    return embedra.DynamicEmbeddingOptimizer(adam())


@pytest.fixture(scope="module")
def without_strategy():
    return trained(embedra.keras.Model, adam, tf.distribute.get_strategy())


@pytest.mark.parametrize("name", ONE_REPLICA)
@pytest.mark.parametrize(
    ("model_class", "make_optimizer"),
    [(embedra.keras.Model, adam), (keras.Model, wrapped_adam)],
    ids=["embedra_model", "keras_model"],
)
@pytest.mark.filterwarnings("ignore:Collective ops is not configured")
def test_d07_layers_train_under_one_replica(
    name, model_class, make_optimizer, without_strategy
):
    found = trained(model_class, make_optimizer, ONE_REPLICA[name]())
    tf.nest.map_structure(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-5),
        found,
        without_strategy,
    )


@pytest.mark.parametrize("name", ONE_REPLICA)
def test_d07_variables_train_under_one_replica(name):
    strategy = ONE_REPLICA[name]()
    with strategy.scope():
        variable = de.Variable(dim=3, name="v", initializer=0.5)
        optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(0.1))

    def step(ids):
        with tf.GradientTape() as tape:
            rows, trainable = de.embedding_lookup(
                variable, ids, return_trainable=True
            )
            loss = tf.reduce_sum(rows)
        gradients = tape.gradient(loss, [trainable])
        optimizer.apply_gradients(zip(gradients, [trainable], strict=True))

    run = tf.function(lambda ids: strategy.run(step, (ids,)))
    for _ in range(2):
        run(tf.constant([1, 2, 2], tf.int64))
    np.testing.assert_allclose(
        variable.lookup([1, 2])[:, 0], [0.3, 0.1], rtol=1e-5
    )


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("kind", ["table", "layer", "variable"])
def test_d07_other_strategies_are_refused_with_the_alternative(name, kind):
    make = {
        "table": lambda: embedra.Table(2, name="user"),
        "layer": lambda: embedra.layers.Embedding(2, name="user"),
        "variable": lambda: de.Variable(dim=2, name="user"),
    }[kind]
    # A strategy of servers can be entered in graphs only.
    graph = contextlib.nullcontext()
    if name == "servers":
        graph = tf.Graph().as_default()
    with (
        graph,
        REFUSED[name]().scope(),
        pytest.raises(NotImplementedError, match="embedra run -n 2") as caught,
    ):
        make()
    assert "Table 'user" in str(caught.value)
    assert ("/job:ps" in str(caught.value)) == (name == "servers")


@pytest.mark.distributed
def test_d07_several_workers_of_a_strategy_are_refused():
    code = """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
import embedra
with strategy.scope():
    embedra.layers.Embedding(2, name="user")
"""
    result = run_embedra(
        *["-n", 2, "--engine", "tf", sys.executable, "-c", code]
    )
    assert result.returncode == 1
    message = "cannot be made under a CollectiveAllReduceStrategy of 2 replicas"
    assert message in result.stderr, result.stderr
    assert "embedra run -n 2 train.py" in result.stderr
