"""One process of a cluster that trains and evaluates; given a folder.

Parameter servers serve until they are ended. Workers share tables and weights.
The chief writes what it evaluated to the folder.
"""

import json
import sys

import numpy as np
import tensorflow as tf

import embedra as hb
import embedra.dynamic_embedding as de
from embedra import estimator as lib


v1 = tf.compat.v1

STEPS = 40


def model_fn(features, labels, mode):
    device = "/job:ps/task:0" if mode == "train" and hb.context.target else ""
    user = de.get_variable("user", dim=2, devices=[device], initializer=0.5)
    score = tf.reduce_sum(de.embedding_lookup(user, features["user"]), axis=1)
    loss = tf.reduce_mean((score - labels) ** 2)
    train_op = None
    if mode == "train":
        optimizer = hb.train.GradientDescentOptimizer(0.5)
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
    return lib.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    ids = np.arange(8)
    data = ({"user": ids}, (ids % 2).astype(np.float32))
    return tf.data.Dataset.from_tensors(data).repeat()


def main(folder):
    estimator = lib.Estimator(
        model_fn, folder, lib.RunConfig(save_checkpoints_secs=None)
    )
    metrics, _ = estimator.train_and_evaluate(
        lib.TrainSpec(input_fn, max_steps=STEPS),
        lib.EvalSpec(input_fn, steps=1),
        eval_every_n_iter=10,
    )
    if hb.context.is_chief:
        again = estimator.evaluate(input_fn, steps=1)
        assert again == metrics
        found = {name: float(value) for name, value in metrics.items()}
        with open(f"{folder}/metrics.json", "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1])
