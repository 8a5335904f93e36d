"""TensorFlow Recommenders-Addons 0.8.1 on TensorFlow 2.16 and tf_keras.

One table per feature and a legacy optimizer: the fastest way to use it. (With
a new-style tf_keras optimizer its graph has 44,020 nodes and the step takes
three times as long.) The suite sets TF_USE_LEGACY_KERAS=1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow_recommenders_addons import dynamic_embedding as de

from drivers import resident, tensorflow_setup as setup, workload
from drivers.protocol import Driver, parse_arguments


CPU = ["/CPU:0"]
SLOT_START = {"adam": 0.0, "adagrad": 0.1}


def make_optimizer(name: str) -> Any:
    """A TFRA optimizer around the legacy tf_keras one."""
    legacy = tf_keras.optimizers.legacy
    kinds = {"adam": legacy.Adam, "adagrad": legacy.Adagrad}
    optimizer = kinds[name](workload.LEARNING_RATE[name])
    return de.DynamicEmbeddingOptimizer(optimizer)


def slot_tables(shadow: Any) -> Iterator[Any]:
    """The table of each optimizer slot of a shadow variable."""
    slots = shadow._optimizer_vars
    slots = slots.as_list() if hasattr(slots, "as_list") else slots.value
    for slot in slots:
        yield getattr(slot, "params", slot)


def fill(
    table: Any, space: int, keys: int, dim: int, value: float | None = None
) -> None:
    """Writes `keys` rows of random numbers, or of `value`, in large chunks."""
    shape = (workload.CHUNK, dim)
    if value is None:
        random = np.random.default_rng(space)
        rows = tf.constant(random.normal(0.0, 0.05, shape), tf.float32)
    else:
        rows = tf.fill(shape, value)

    def write(chunk: tf.Tensor, values: tf.Tensor) -> None:
        table.upsert(chunk, values)

    signature = [
        tf.TensorSpec([None], tf.int64),
        tf.TensorSpec([None, dim], tf.float32),
    ]
    compiled = tf.function(write, input_signature=signature)
    for chunk in workload.key_chunks(space, keys):
        compiled(tf.constant(chunk), rows[: len(chunk)])


def fill_with_slots(
    embedding: Any, space: int, keys: int, dim: int, optimizer: str
) -> None:
    """Fills the rows and every optimizer slot."""
    shadow = getattr(embedding, "shadow", embedding)
    fill(shadow.params, space, keys, dim)
    for table in slot_tables(shadow):
        fill(table, space, keys, dim, SLOT_START[optimizer])


def step_case(arguments: Any) -> None:
    """The training step over one table for each feature."""
    tf_keras.utils.set_random_seed(1)
    embeddings = [
        de.keras.layers.Embedding(
            workload.DIM,
            name=f"feature_{f}",
            devices=CPU,
            initializer=tf_keras.initializers.RandomNormal(stddev=0.05),
        )
        for f in range(arguments.features)
    ]
    mlp = tf_keras.Sequential(
        [tf_keras.layers.Dense(n, "relu") for n in workload.HIDDEN]
        + [tf_keras.layers.Dense(1)]
    )
    mlp.build((None, arguments.features * workload.DIM))
    optimizer = make_optimizer(arguments.optimizer)

    def step(ids: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        columns = tf.unstack(ids, axis=1)
        with tf.GradientTape() as tape:
            rows = [
                layer(c) for layer, c in zip(embeddings, columns, strict=True)
            ]
            loss = setup.bce(labels, mlp(tf.concat(rows, axis=1)))
        variables = [e.shadow for e in embeddings] + mlp.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    driver = Driver()
    batches = setup.click_batches(
        arguments.keys, arguments.features, arguments.batches
    )
    compiled = tf.function(step)
    setup.first_step(driver, compiled, *batches[0])
    for f, embedding in enumerate(embeddings):
        fill_with_slots(
            embedding, f, arguments.keys, workload.DIM, arguments.optimizer
        )
    setup.add_step(driver, "step", compiled, batches)
    driver.serve()


def pooling_case(arguments: Any) -> None:
    """Multi-hot sum pooling with `embedding_lookup_sparse`."""
    table = de.get_variable(
        "bags",
        dim=workload.BAG_DIM,
        initializer=tf_keras.initializers.RandomNormal(stddev=0.05),
        devices=CPU,
    )
    shadow = de.shadow_ops.ShadowVariable(table, name="bags_shadow")
    optimizer = make_optimizer(arguments.optimizer)
    signature = [tf.SparseTensorSpec([None, None], tf.int64)]

    def pool(ids: tf.SparseTensor, name: str) -> tf.Tensor:
        return de.embedding_lookup_sparse(
            shadow, ids, None, combiner="sum", name=name
        )

    def forward(ids: tf.SparseTensor) -> tf.Tensor:
        return tf.reduce_sum(pool(ids, "forward"))

    def train(ids: tf.SparseTensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(pool(ids, "train")))
        gradients = tape.gradient(loss, [shadow])
        optimizer.apply_gradients(zip(gradients, [shadow], strict=True))
        return loss

    driver = Driver()
    ragged = setup.bag_batches(arguments.keys, arguments.batches)
    batches = [(batch.to_sparse(),) for batch in ragged]
    forward_step = tf.function(forward, input_signature=signature)
    train_step = tf.function(train, input_signature=signature)
    setup.first_step(driver, train_step, *batches[0])
    fill_with_slots(
        shadow,
        workload.BAG_SPACE,
        arguments.keys,
        workload.BAG_DIM,
        arguments.optimizer,
    )
    setup.add_step(driver, "forward", forward_step, batches)
    setup.add_step(driver, "train", train_step, batches)
    driver.serve()


def memory_case(arguments: Any) -> None:
    """Resident bytes of one table with the slot tables that Adam needs."""
    names = ["rows", "first_moments", "second_moments"]
    warm = de.get_variable("warm", dim=workload.DIM, devices=CPU)
    fill(warm, 0, workload.CHUNK, workload.DIM)
    before = resident.settled_bytes()
    tables = [de.get_variable(n, dim=workload.DIM, devices=CPU) for n in names]
    for table in tables:
        fill(table, 0, arguments.keys, workload.DIM)
    driver = Driver()
    grown = resident.settled_bytes() - before
    driver.fact("bytes_per_key", grown / arguments.keys)
    driver.serve()


def main() -> None:
    """Runs the case named on the command line."""
    cases = {
        "step": step_case,
        "pooling": pooling_case,
        "memory": memory_case,
    }
    arguments = parse_arguments(list(cases))
    setup.use_threads(arguments.threads)
    cases[arguments.case](arguments)


if __name__ == "__main__":
    main()
