"""What estimators of several ranks, and of one, train on in tests."""

import numpy as np

import embedra as hb
import embedra.compat.v1 as tf


ROWS, BATCH, STEPS = 96, 8, 12

_numbers = np.random.default_rng(3)
USERS = _numbers.integers(0, 30, ROWS)
WORDS = np.array(["a", "b", "c", "d"])[_numbers.integers(0, 4, ROWS)]
AGES = _numbers.random(ROWS).astype(np.float32)
CLICKS = (_numbers.random(ROWS) < 0.2 + 0.6 * (USERS % 2)).astype(np.float32)


def input_fn(rank=0, size=1, batches=STEPS):
    """Gives an input function: a rank's part of each batch."""
    part = BATCH // size

    def give():
        rows = np.arange(ROWS).reshape(-1, BATCH)[:batches]
        rows = rows[:, rank * part : (rank + 1) * part].reshape(-1)
        features = {"user": USERS[rows], "word": WORDS[rows], "age": AGES[rows]}
        data = tf.data.Dataset.from_tensor_slices((features, CLICKS[rows]))
        return data.batch(part)

    return give


def columns():
    fc = hb.feature_column
    user = fc.categorical_column_with_embedding("user", tf.int64)
    word = fc.categorical_column_with_embedding("word", tf.string)
    start = tf.random_uniform_initializer(-1.0, 1.0)
    return [
        fc.numeric_column("age"),
        fc.embedding_column(user, 3, initializer=start),
        fc.embedding_column(word, 2, initializer=start),
    ]


def model_fn(features, labels, mode, params):
    with tf.variable_scope("deep"), hb.embedding_scope():
        x = tf.feature_column.input_layer(features, columns())
        weights = tf.get_variable("weights", (x.shape[1], 1))
    logits = tf.squeeze(tf.matmul(x, weights), axis=1)
    click = tf.sigmoid(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"click": click})
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    train_op = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = params.get("optimizer", hb.train.AdagradOptimizer)(0.3)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
        eval_metric_ops={
            "auc": hb.metrics.auc(labels, click),
            "gauc": hb.metrics.gauc(labels, click, features["word"]),
            "click": tf.metrics.mean(click),
        },
    )


def make(folder, model=model_fn, params=None, **config):
    config = {
        "save_checkpoints_secs": None,
        "save_summary_steps": None,
        "log_step_count_steps": None,
    } | config
    if "save_checkpoints_steps" in config:
        del config["save_checkpoints_secs"]
    return hb.estimator.Estimator(
        model, str(folder), hb.estimator.RunConfig(**config), params
    )


def receiver():
    inputs = {
        "user": tf.placeholder(tf.int64, [None], name="user"),
        "word": tf.placeholder(tf.string, [None], name="word"),
        "age": tf.placeholder(tf.float32, [None], name="age"),
    }
    return hb.estimator.export.ServingInputReceiver(inputs, inputs)


def state(estimator):
    """Returns what a checkpoint holds: rows and slots by key, and weights."""
    found = {}
    value = estimator.get_variable_value
    for name in estimator.get_variable_names():
        if name.endswith("/keys"):
            table = name.removesuffix("/keys")
            order = np.argsort(value(name))
            for part in ("keys", "rows", "slots"):
                found[f"{table}/{part}"] = value(f"{table}/{part}")[order]
        elif name.startswith("deep/weights"):
            found[name] = value(name)
    return found
