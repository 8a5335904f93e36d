"""Embedra with ranks: exchanges against bare MPI, and the step on N ranks.

Started by mpirun. All ranks run it.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from mpi4py import MPI

import embedra
from drivers import tensorflow_setup as setup, workload
from drivers.embedra_layers import make_mlp, make_optimizer
from drivers.protocol import parse_arguments
from drivers.ranks import RankDriver
from embedra import _ops
from embedra._ops import _communication_gradients
from embedra.distribute import Communicator, communicator, owned


CALLS = 20
SMALL_BYTES = 1024
HEADER_BYTES = 128


def exchange_case(arguments: Any) -> None:
    """all_to_all_v in a `tf.function`, and mpi4py's Alltoallv, of two sizes.

    A run is `CALLS` exchanges; each sends as many bytes to all ranks together.
    """
    driver = RankDriver()
    comm = communicator("mpi")
    for name, count in (("large", arguments.bytes), ("small", SMALL_BYTES)):
        rows = count // 4 // comm.size
        splits = tf.fill([comm.size], tf.constant(rows, tf.int64))
        values = tf.random.stateless_normal([rows * comm.size], [1, 2])
        add_op(driver, name, comm, values, splits)
        add_bare(driver, name, values.numpy())
    driver.serve()


def add_op(
    driver: RankDriver,
    name: str,
    comm: Communicator,
    values: tf.Tensor,
    splits: tf.Tensor,
) -> None:
    """Adds exchanges by the op, one after the other in one function."""

    @tf.function
    def exchange(values: tf.Tensor) -> tf.Tensor:
        for _ in range(CALLS):
            values, _ = comm.all_to_all_v(values, splits)
        return tf.shape(values)

    exchange(values)
    driver.measure(f"{name}_op", lambda _: int(exchange(values)[0]))


def add_bare(driver: RankDriver, name: str, values: np.ndarray) -> None:
    """Adds the same exchanges by mpi4py, from one array to another."""
    world = driver.world
    received = np.empty_like(values)
    counts = [len(values) // world.size] * world.size

    def exchange(_: int) -> int:
        for _ in range(CALLS):
            world.Alltoallv(
                [values, counts, MPI.FLOAT], [received, counts, MPI.FLOAT]
            )
        return len(received)

    driver.measure(f"{name}_bare", exchange)


class RankStep:
    """The click model's step, on this rank's part of each batch."""

    def __init__(self, arguments: Any) -> None:
        self.features = arguments.features
        self.tables = embedra.layers.EmbeddingCollection(
            {
                str(f): embedra.layers.Embedding(
                    workload.DIM, name=f"feature_{f}", seed=1
                )
                for f in range(self.features)
            }
        )
        self.mlp = make_mlp()
        self.mlp.build((None, self.features * workload.DIM))
        self.optimizer = embedra.DynamicEmbeddingOptimizer(
            make_optimizer(arguments.optimizer)
        )
        self.run = tf.function(self.step)

    def step(self, ids: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """Makes a step and returns the loss of this rank's part."""
        columns = tf.unstack(ids, axis=1)
        with tf.GradientTape() as tape:
            found = self.tables(
                {str(f): column for f, column in enumerate(columns)},
                training=True,
            )
            rows = tf.concat(list(found.values()), axis=1)
            loss = setup.bce(labels, self.mlp(rows))
        variables = self.tables.trainable_variables
        variables = variables + self.mlp.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    def fill(self, keys: int) -> None:
        """Creates `keys` records in each table, on their ranks."""
        for f in range(self.features):
            layer = self.tables.embeddings[str(f)]
            for chunk in workload.key_chunks(f, keys):
                ranks = layer.table.communicator
                if ranks is not None:
                    chunk = chunk[owned(chunk, ranks).numpy()]
                layer.table.lookup(tf.constant(chunk), insert=True)


def step_case(arguments: Any) -> None:
    """The step of a global batch of 4,096, on as many ranks as there are."""
    keras.utils.set_random_seed(1)
    driver = RankDriver()
    rank, size = driver.world.rank, driver.world.size
    model = RankStep(arguments)
    per_rank = workload.BATCH // size
    own = slice(rank * per_rank, (rank + 1) * per_rank)
    batches = [
        (ids[own], labels[own])
        for ids, labels in setup.click_batches(
            arguments.keys, arguments.features, arguments.batches
        )
    ]
    model.run(*batches[0])
    model.fill(arguments.keys)
    if size > 1:
        sent, least = bytes_of_step(model, batches[0])
        driver.fact("sent_bytes", driver.world.allreduce(sent))
        driver.fact("least_bytes", driver.world.allreduce(least))
    for batch in batches:
        model.run(*batch)
    driver.measure(
        "step", lambda i: float(model.run(*batches[i % len(batches)]))
    )
    driver.serve()


def bytes_of_step(
    model: RankStep, batch: tuple[tf.Tensor, tf.Tensor]
) -> tuple[int, int]:
    """Counts what this rank sends to others for its lookups in a step.

    Returns:
        The bytes, those of headers and counts too; and the least there could
        be: distinct keys of others, their rows, and gradients of these.
    """
    comm = communicator("mpi")
    send = _ops.all_to_all_v
    sent = 0

    def counted(
        handle: Any, values: Any, splits: Any, *others: Any, **settings: Any
    ) -> Any:
        nonlocal sent
        sent += (comm.size - 1) * (HEADER_BYTES + 8 * len(splits))
        for value, split in zip(values, splits, strict=True):
            away = int(tf.reduce_sum(split) - split[comm.rank])
            width = int(np.prod(value.shape[1:]))
            sent += away * width * value.dtype.size
        return send(handle, values, splits, *others, **settings)

    _ops.all_to_all_v = _communication_gradients.all_to_all_v = counted
    try:
        model.step(*batch)
    finally:
        _ops.all_to_all_v = _communication_gradients.all_to_all_v = send
    least = 0
    for column in batch[0].numpy().T:
        keys = np.unique(column)
        away = int(np.count_nonzero(~owned(keys, comm).numpy()))
        # Row and gradient: owners send the one, this rank the other; over all
        # ranks it comes to the same.
        least += away * (8 + 2 * 4 * workload.DIM)
    return sent, least


def main() -> None:
    """Runs the case named on the command line."""
    cases = {"exchange": exchange_case, "step": step_case}
    arguments = parse_arguments(list(cases))
    setup.use_threads(arguments.threads)
    cases[arguments.case](arguments)


if __name__ == "__main__":
    main()
