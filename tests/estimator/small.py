"""A small model of one table and a weight, and its input."""

import numpy as np
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra import estimator as lib


v1 = tf.compat.v1

IDS = 20


def model_fn(features, labels, mode, params):
    params = {"rate": 0.1, "table": {}} | (params or {})
    user = de.get_variable("user", dim=2, **params["table"])
    rows = de.embedding_lookup(user, features["user"])
    weight = v1.get_variable("weight", (2,), initializer=v1.ones_initializer())
    score = tf.linalg.matvec(rows, weight)
    if mode == lib.ModeKeys.PREDICT:
        return lib.EstimatorSpec(mode, {"score": score, "row": rows})
    optimizer = de.DynamicEmbeddingOptimizer(
        v1.train.AdamOptimizer(params["rate"])
    )
    loss = tf.reduce_mean((score - labels) ** 2)
    train_op = None
    if mode == lib.ModeKeys.TRAIN:
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
    return lib.EstimatorSpec(
        mode,
        {"score": score},
        loss,
        train_op,
        {
            "error": v1.metrics.mean_absolute_error(labels, score),
            # How many keys there are in the graph of an evaluation.
            "keys": (user.size(), tf.no_op()),
        },
    )


def input_fn(batches=3, start=0):
    """Gives an input function: ids of a batch of four, and their parity."""

    def give():
        ids = (start + np.arange(4 * batches, dtype=np.int64)) % IDS
        labels = (ids % 2).astype(np.float32)
        return tf.data.Dataset.from_tensor_slices(
            ({"user": ids}, labels)
        ).batch(4)

    return give


def features_fn(*ids):
    """Gives an input function of features alone, in one batch."""
    return lambda: {"user": tf.constant(ids, tf.int64)}


def batches_of(*ids):
    """Gives an input function of features alone that ends."""
    return lambda: tf.data.Dataset.from_tensor_slices(
        {"user": np.array(ids, np.int64)}
    ).batch(2)


def make(folder, model=model_fn, params=None, warm_start_from=None, **config):
    """Makes an estimator that writes little."""
    config = {
        "save_checkpoints_secs": None,
        "save_summary_steps": None,
        "log_step_count_steps": None,
        "checkpoint_save_graph_def": False,
    } | config
    if "save_checkpoints_steps" in config:
        del config["save_checkpoints_secs"]
    return lib.Estimator(
        model,
        str(folder),
        lib.RunConfig(**config),
        params,
        warm_start_from,
    )


def records(path):
    """Returns rows, slots and counters of the keys in a checkpoint."""
    read = tf.train.load_checkpoint(path).get_tensor
    columns = [
        read(f"user/{name}").tolist()
        for name in ("keys", "rows", "slots", "frequencies", "last_steps")
    ]
    return {key: others for key, *others in zip(*columns, strict=True)}
