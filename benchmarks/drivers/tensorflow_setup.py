"""What the TensorFlow drivers have in common."""

from __future__ import annotations

import time
from typing import Any

import tensorflow as tf

from drivers import workload
from drivers.protocol import Driver


__all__ = [
    "add_step",
    "bag_batches",
    "bce",
    "click_batches",
    "first_step",
    "use_threads",
]


def use_threads(threads: int) -> None:
    """Limits TensorFlow to `threads` threads inside and between ops."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def click_batches(
    keys: int, features: int, batches: int, *, uniform: bool = False
) -> list[tuple[tf.Tensor, tf.Tensor]]:
    """The click batches as pairs of tensors, ids and labels."""
    drawn = workload.clicks(
        keys, features=features, batches=batches, uniform=uniform
    )
    return [
        (tf.constant(ids), tf.constant(labels))
        for ids, labels in zip(drawn.ids, drawn.labels, strict=True)
    ]


def bag_batches(keys: int, batches: int) -> list[tf.RaggedTensor]:
    """The multi-hot batches as ragged tensors."""
    return [
        tf.RaggedTensor.from_row_splits(
            tf.constant(batch.ids), tf.constant(batch.row_splits)
        )
        for batch in workload.bags(keys, batches=batches)
    ]


def bce(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Mean binary cross-entropy of logits."""
    return tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    )


def first_step(driver: Driver, step: Any, *inputs: Any) -> None:
    """Makes the first call of a `tf.function` and records what it cost."""
    start = time.perf_counter()
    float(step(*inputs))
    driver.fact("first_step_seconds", time.perf_counter() - start)
    graph = step.get_concrete_function(*inputs).graph
    inner = graph.as_graph_def().library.function
    nodes = len(graph.get_operations()) + sum(len(f.node_def) for f in inner)
    driver.fact("graph_nodes", nodes)


def add_step(
    driver: Driver, name: str, step: Any, batches: list[tuple[Any, ...]]
) -> None:
    """Adds the measure of a step that returns its loss, cycling batches.

    All batches are run once first, so that no turn meets cold code.
    """
    losses = [float(step(*batch)) for batch in batches]
    driver.fact(f"{name}_first_losses", losses[:3])

    def run(i: int) -> float:
        return float(step(*batches[i % len(batches)]))

    driver.measure(name, run)
