"""tf_keras `Embedding` layers: static tables, sparse updates.

The legacy optimizers update only the rows of a batch; the new-style ones and
Keras 3 update the whole table, which takes ten times as long.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from drivers import tensorflow_setup as setup, workload
from drivers.protocol import Driver, parse_arguments


def make_optimizer(name: str) -> Any:
    """The legacy tf_keras optimizer."""
    legacy = tf_keras.optimizers.legacy
    kinds = {"adam": legacy.Adam, "adagrad": legacy.Adagrad}
    return kinds[name](workload.LEARNING_RATE[name])


def step_case(arguments: Any) -> None:
    """The training step; ids are taken modulo the table's rows."""
    tf_keras.utils.set_random_seed(1)
    embeddings = [
        tf_keras.layers.Embedding(arguments.keys, workload.DIM)
        for _ in range(arguments.features)
    ]
    for embedding in embeddings:
        embedding.build(None)
    mlp = tf_keras.Sequential(
        [tf_keras.layers.Dense(n, "relu") for n in workload.HIDDEN]
        + [tf_keras.layers.Dense(1)]
    )
    mlp.build((None, arguments.features * workload.DIM))
    variables = [e.embeddings for e in embeddings] + mlp.trainable_variables
    optimizer = make_optimizer(arguments.optimizer)

    def step(ids: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        columns = tf.unstack(tf.math.floormod(ids, arguments.keys), axis=1)
        with tf.GradientTape() as tape:
            rows = [
                layer(c) for layer, c in zip(embeddings, columns, strict=True)
            ]
            loss = setup.bce(labels, mlp(tf.concat(rows, axis=1)))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    driver = Driver()
    batches = setup.click_batches(
        arguments.keys, arguments.features, arguments.batches
    )
    compiled = tf.function(step)
    setup.first_step(driver, compiled, *batches[0])
    setup.add_step(driver, "step", compiled, batches)
    driver.serve()


def pooling_case(arguments: Any) -> None:
    """Multi-hot sum pooling with `tf.nn.embedding_lookup_sparse`."""
    start = tf.random.stateless_normal(
        [arguments.keys, workload.BAG_DIM], [1, 2], stddev=0.05
    )
    table = tf.Variable(start)
    optimizer = make_optimizer(arguments.optimizer)
    signature = [tf.SparseTensorSpec([None, None], tf.int64)]

    def pool(ids: tf.SparseTensor) -> tf.Tensor:
        return tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")

    def forward(ids: tf.SparseTensor) -> tf.Tensor:
        return tf.reduce_sum(pool(ids))

    def train(ids: tf.SparseTensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(pool(ids)))
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])
        return loss

    driver = Driver()
    batches = [
        ((batch % arguments.keys).to_sparse(),)
        for batch in setup.bag_batches(arguments.keys, arguments.batches)
    ]
    forward_step = tf.function(forward, input_signature=signature)
    train_step = tf.function(train, input_signature=signature)
    setup.first_step(driver, train_step, *batches[0])
    setup.add_step(driver, "forward", forward_step, batches)
    setup.add_step(driver, "train", train_step, batches)
    driver.serve()


def main() -> None:
    """Runs the case named on the command line."""
    cases = {"step": step_case, "pooling": pooling_case}
    arguments = parse_arguments(list(cases))
    setup.use_threads(arguments.threads)
    cases[arguments.case](arguments)


if __name__ == "__main__":
    main()
