"""Embedra: the training step, `fit`, pooling, and growth with table size.

The step is what the guide tells users of many features to write: a functional
Keras model of an `EmbeddingCollection`, and a Keras optimizer that knows of
tables. The other cases are of plain layers and optimizers.
"""

from __future__ import annotations

import itertools
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from drivers import tensorflow_setup as setup, workload
from drivers.protocol import Driver, parse_arguments
from embedra import DynamicEmbeddingOptimizer
from embedra.layers import Embedding, EmbeddingCollection


EPOCHS_IN_A_FIT = 3


def make_optimizer(name: str) -> keras.optimizers.Optimizer:
    """A stock Keras 3 optimizer."""
    kinds = {"adam": keras.optimizers.Adam, "adagrad": keras.optimizers.Adagrad}
    return kinds[name](workload.LEARNING_RATE[name])


def make_mlp() -> keras.Sequential:
    """The dense part of the click model."""
    hidden = [keras.layers.Dense(n, "relu") for n in workload.HIDDEN]
    return keras.Sequential([*hidden, keras.layers.Dense(1)])


def make_click_model(features: int) -> tuple[keras.Model, list[Any]]:
    """A table for each feature, concatenated into the MLP."""
    ids = keras.Input((features,), dtype="int64", name="ids")
    layers = [
        Embedding(workload.DIM, name=f"feature_{f}") for f in range(features)
    ]
    rows = [layer(ids[:, f]) for f, layer in enumerate(layers)]
    logits = make_mlp()(keras.layers.Concatenate()(rows))
    return keras.Model(ids, logits), layers


def make_collection_model(features: int) -> tuple[keras.Model, list[Any]]:
    """The same model, its tables looked up together."""
    ids = keras.Input((features,), dtype="int64", name="ids")
    layers = {
        f"feature_{f}": Embedding(workload.DIM, name=f"feature_{f}")
        for f in range(features)
    }
    inputs = {name: ids[:, f] for f, name in enumerate(layers)}
    rows = EmbeddingCollection(layers)(inputs)
    logits = make_mlp()(keras.layers.Concatenate()(list(rows.values())))
    return keras.Model(ids, logits), list(layers.values())


def make_table_optimizer(name: str) -> keras.optimizers.Optimizer:
    """A Keras 3 optimizer that updates all tables at once."""
    return DynamicEmbeddingOptimizer(make_optimizer(name))


def make_step(model: keras.Model, optimizer: Any) -> Any:
    """One training step as a `tf.function`."""

    def step(inputs: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = setup.bce(labels, model(inputs, training=True))
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    return tf.function(step)


def fill(layers: list[Any], keys: int, space: int = 0) -> None:
    """Creates `keys` records, with their slots, in each layer's table."""
    for f, layer in enumerate(layers):
        for chunk in workload.key_chunks(space + f, keys):
            layer.table.lookup(tf.constant(chunk), insert=True)
        if (size := int(layer.table.size())) != keys:
            msg = f"Table {f} holds {size} keys, expected {keys}."
            raise RuntimeError(msg)


def add_mlp(driver: Driver, optimizer_name: str, features: int) -> None:
    """Adds the dense part alone: forward, both gradients, and its update."""
    mlp = make_mlp()
    mlp.build((None, features * workload.DIM))
    optimizer = make_optimizer(optimizer_name)
    random = np.random.default_rng(workload.SEED)
    shape = (workload.BATCH, features * workload.DIM)
    inputs = tf.constant(random.normal(0.0, 0.05, shape), tf.float32)
    [(_, labels)] = setup.click_batches(1000, features, 1)

    def step(rows: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(rows)
            loss = setup.bce(targets, mlp(rows))
        variables = mlp.trainable_variables
        d_rows, *gradients = tape.gradient(loss, [rows, *variables])
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        # The embeddings need the gradient of the rows, so it is computed.
        with tf.control_dependencies([d_rows]):
            return tf.identity(loss)

    setup.add_step(driver, "mlp", tf.function(step), [(inputs, labels)])


def add_fit(
    driver: Driver, model: keras.Model, optimizer: Any, step: Any, batches: Any
) -> None:
    """Adds `fit` and a loop over the raw step, on the same data set."""
    ids = tf.stack([batch[0] for batch in batches])
    labels = tf.stack([batch[1] for batch in batches])
    data = tf.data.Dataset.from_tensor_slices((ids, labels))
    data = data.repeat(EPOCHS_IN_A_FIT).prefetch(2)
    model.compile(optimizer, keras.losses.BinaryCrossentropy(from_logits=True))

    def fit(_: int) -> float:
        history = model.fit(data, epochs=1, verbose=0)
        return float(history.history["loss"][-1])

    def loop(_: int) -> float:
        loss = tf.constant(0.0)
        for inputs, targets in data:
            loss = step(inputs, targets)
        return float(loss)

    driver.fact("fit_steps", EPOCHS_IN_A_FIT * len(batches))
    fit(0)
    driver.measure("fit", fit, warm=False)
    driver.measure("loop", loop, warm=False)


def step_case(arguments: Any) -> None:
    """The 26-table step, its MLP alone, and `fit` against the raw loop."""
    keras.utils.set_random_seed(1)
    driver = Driver()
    batches = setup.click_batches(
        arguments.keys, arguments.features, arguments.batches
    )
    model, layers = make_collection_model(arguments.features)
    optimizer = make_table_optimizer(arguments.optimizer)
    step = make_step(model, optimizer)
    setup.first_step(driver, step, *batches[0])
    fill(layers, arguments.keys)
    setup.add_step(driver, "step", step, batches)
    add_mlp(driver, arguments.optimizer, arguments.features)
    add_fit(driver, model, optimizer, step, batches)
    driver.serve()


def growth_case(arguments: Any) -> None:
    """The step with ids drawn evenly, and by Zipf, from all keys."""
    keras.utils.set_random_seed(1)
    driver = Driver()
    model, layers = make_click_model(arguments.features)
    step = make_step(model, make_optimizer(arguments.optimizer))
    draws = {
        name: setup.click_batches(
            arguments.keys,
            arguments.features,
            arguments.batches,
            uniform=name == "uniform",
        )
        for name in ("uniform", "zipf")
    }
    for name, batches in draws.items():
        distinct = [
            len(np.unique(ids[:, f]))
            for ids, f in itertools.product(
                [ids.numpy() for ids, _ in batches], range(arguments.features)
            )
        ]
        driver.fact(f"{name}_distinct_ids_per_table", np.mean(distinct))
    setup.first_step(driver, step, *draws["uniform"][0])
    fill(layers, arguments.keys)
    for name, batches in draws.items():
        setup.add_step(driver, name, step, batches)
    driver.serve()


def pooling_case(arguments: Any) -> None:
    """Multi-hot sum pooling: forward, and with gradient and update."""
    layer = Embedding(workload.BAG_DIM, combiner="sum", name="bags")
    optimizer = make_optimizer(arguments.optimizer)
    signature = [tf.RaggedTensorSpec([None, None], tf.int64)]

    def forward(ids: tf.RaggedTensor) -> tf.Tensor:
        return tf.reduce_sum(layer(ids, training=False))

    def train(ids: tf.RaggedTensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(ids, training=True)))
        variables = layer.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    driver = Driver()
    ragged = setup.bag_batches(arguments.keys, arguments.batches)
    layer.build((None, None))
    batches = [(batch,) for batch in ragged]
    forward_step = tf.function(forward, input_signature=signature)
    train_step = tf.function(train, input_signature=signature)
    setup.first_step(driver, train_step, *batches[0])
    fill([layer], arguments.keys, workload.BAG_SPACE)
    setup.add_step(driver, "forward", forward_step, batches)
    setup.add_step(driver, "train", train_step, batches)
    driver.serve()


def main() -> None:
    """Runs the case named on the command line."""
    cases = {
        "step": step_case,
        "growth": growth_case,
        "pooling": pooling_case,
    }
    arguments = parse_arguments(list(cases))
    setup.use_threads(arguments.threads)
    cases[arguments.case](arguments)


if __name__ == "__main__":
    main()
