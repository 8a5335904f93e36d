"""The cluster of TensorFlow servers that `TF_CONFIG` names."""

import tensorflow as tf

from embedra.scopes import context

from ._strategies import check_strategy


def join_cluster() -> tf.distribute.Strategy:
    """Starts TensorFlow's server of this rank, and its collectives.

    Returns:
        A strategy that is never entered. It is TensorFlow's public way to do
        so, and is to be kept for as long as they are used.

    Raises:
        RuntimeError: If there is no cluster, or it is too late to join it.
        NotImplementedError: Under a strategy of several replicas.
    """
    check_strategy("A communicator of TensorFlow")
    cluster = context.cluster_spec
    if cluster is None:
        msg = (
            "TensorFlow's collectives need TF_CONFIG, which names all workers. "
            "`embedra run --engine tf -n 4 train.py` sets it."
        )
        raise RuntimeError(msg)
    implementations = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=implementations.RING
    )
    try:
        return tf.distribute.MultiWorkerMirroredStrategy(
            communication_options=options
        )
    except RuntimeError as error:
        msg = (
            "TensorFlow's collectives must start before any of its operations "
            f"runs ({error}). Call embedra.distribute.communicator() in the "
            "first lines of the program, or use MPI: `embedra run -n 4 "
            "train.py`."
        )
        raise RuntimeError(msg) from None


def check_not_tf1() -> None:
    """Raises in graphs of TF1, whose sessions know nothing of the cluster."""
    if not tf.compat.v1.executing_eagerly_outside_functions():
        msg = (
            "TensorFlow's collectives work eagerly and in a tf.function, not "
            "in TF1 graphs. Use MPI: `embedra run -n 4 train.py`."
        )
        raise NotImplementedError(msg)
