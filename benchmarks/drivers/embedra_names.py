"""Embedra: the step with `de.` names, with Keras layers, and a collection.

All are in one process, on tables of their own.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

import embedra.dynamic_embedding as de
from drivers import tensorflow_setup as setup, workload
from drivers.embedra_layers import (
    fill,
    make_click_model,
    make_collection_model,
    make_mlp,
    make_optimizer,
    make_step,
    make_table_optimizer,
)
from drivers.protocol import Driver, parse_arguments


def make_names_step(features: int, optimizer_name: str) -> tuple[Any, Any]:
    """One training step as a `tf.function`, and its variables."""
    tables = [
        de.get_variable(f"names_{f}", dim=workload.DIM, initializer="uniform")
        for f in range(features)
    ]
    mlp = make_mlp()
    mlp.build((None, features * workload.DIM))
    optimizer = de.DynamicEmbeddingOptimizer(make_optimizer(optimizer_name))

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, features], tf.int64),
            tf.TensorSpec([None, 1], tf.float32),
        ]
    )
    def step(ids: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            looked_up = [
                de.embedding_lookup(table, ids[:, f], return_trainable=True)
                for f, table in enumerate(tables)
            ]
            rows = tf.concat([rows for rows, _ in looked_up], axis=1)
            loss = setup.bce(labels, mlp(rows))
        trainables = [trainable for _, trainable in looked_up]
        variables = [*trainables, *mlp.trainable_variables]
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    return step, tables


def names_case(arguments: Any) -> None:
    """The 26-table step in three ways."""
    keras.utils.set_random_seed(1)
    driver = Driver()
    batches = setup.click_batches(
        arguments.keys, arguments.features, arguments.batches
    )
    step, tables = make_names_step(arguments.features, arguments.optimizer)
    setup.first_step(driver, step, *batches[0])
    for f, table in enumerate(tables):
        for chunk in workload.key_chunks(f, arguments.keys):
            table.tables[0].lookup(tf.constant(chunk), insert=True)
    model, layers = make_click_model(arguments.features)
    layers_step = make_step(model, make_optimizer(arguments.optimizer))
    layers_step(*batches[0])
    fill(layers, arguments.keys)
    model, layers = make_collection_model(arguments.features)
    collection_step = make_step(
        model, make_table_optimizer(arguments.optimizer)
    )
    collection_step(*batches[0])
    fill(layers, arguments.keys)
    setup.add_step(driver, "names", step, batches)
    setup.add_step(driver, "layers", layers_step, batches)
    setup.add_step(driver, "collection", collection_step, batches)
    before = step.experimental_get_tracing_count()
    for size in (1, 7, 100):
        step(batches[0][0][:size], batches[0][1][:size])
    driver.fact("retraces", step.experimental_get_tracing_count() - before)
    driver.serve()


def main() -> None:
    """Runs the case named on the command line."""
    arguments = parse_arguments(["names"])
    setup.use_threads(arguments.threads)
    names_case(arguments)


if __name__ == "__main__":
    main()
