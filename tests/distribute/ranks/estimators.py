"""Estimators of a job: trained, evaluated and exported by all ranks."""

import json
import pathlib
import sys

import estimator_models as models
import numpy as np
import pytest

import embedra as hb
import embedra.compat.v1 as tf
from embedra.distribute import gather_values, job_communicator


ranks = job_communicator()
RANK, SIZE = ranks.rank, ranks.size
folder = pathlib.Path(sys.argv[1])


def told(value):
    return gather_values(ranks, value, label="test")


def input_fn(**arguments):
    return models.input_fn(RANK, SIZE, **arguments)


def numbers(metrics):
    return {name: float(value) for name, value in metrics.items()}


# Trained, saved, evaluated, and gone on with.
estimator = models.make(folder / "trained", save_checkpoints_steps=5)
estimator.train(input_fn(), max_steps=7)
estimator = models.make(folder / "trained")
estimator.train(input_fn(), max_steps=9)
metrics = numbers(estimator.evaluate(input_fn()))
assert told(metrics) == [metrics] * SIZE
assert sorted(pathlib.Path(folder, "trained", "eval").iterdir()) != []
if RANK == 0:
    (folder / "metrics.json").write_text(json.dumps(metrics))


# Each rank predicts what it asks for.


def asked():
    rows = {
        "user": models.USERS[: RANK + 1],
        "word": models.WORDS[: RANK + 1],
        "age": models.AGES[: RANK + 1],
    }
    return tf.data.Dataset.from_tensors(rows)


clicks = [float(one["click"]) for one in estimator.predict(asked)]
first = told(clicks)
assert [len(one) for one in first] == list(range(1, SIZE + 1))
np.testing.assert_allclose([one[0] for one in first], first[0][0], rtol=1e-5)

# The data of one rank are at their end before those of another.
uneven = models.make(folder / "uneven")
uneven.train(input_fn(batches=5 - 2 * RANK))
assert int(uneven.get_variable_value("global_step")) == 5

# A hook of one rank ends training on all.


class Stop(tf.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        del run_values
        if RANK == 1:
            run_context.request_stop()


stopped = models.make(folder / "stopped")
stopped.train(input_fn(), hooks=[Stop()])
assert int(stopped.get_variable_value("global_step")) == 1

# Evaluated on the way, and the best exported.
both = models.make(folder / "both")
found, exports = both.train_and_evaluate(
    hb.estimator.TrainSpec(input_fn(), max_steps=4),
    hb.estimator.EvalSpec(
        input_fn(),
        steps=None,
        exporters=[hb.estimator.BestExporter("best", models.receiver)],
    ),
    eval_every_n_iter=3,
)
assert [int(one["global_step"]) for one in both.eval_history] == [1, 4]
assert told(numbers(found)) == [numbers(found)] * SIZE
assert (folder / "both" / "export" / "best").exists()
assert exports == [None] or RANK == 0
by_time = models.make(folder / "by_time", save_checkpoints_steps=2)
by_time.train_and_evaluate(
    hb.estimator.TrainSpec(input_fn(batches=3)),
    hb.estimator.EvalSpec(input_fn(), steps=1, throttle_secs=0),
)
assert [int(one["global_step"]) for one in by_time.eval_history] == [2, 3]

# Canned models, and one folder for all ranks where none is given.
fc = hb.feature_column
user = fc.categorical_column_with_embedding("user", tf.int64)
canned = tf.estimator.DNNLinearCombinedClassifier(
    linear_feature_columns=[user, fc.numeric_column("age")],
    dnn_feature_columns=[fc.embedding_column(user, 4)],
    dnn_hidden_units=[4],
    batch_norm=True,
)
assert told(canned.model_dir) == [canned.model_dir] * SIZE
canned.train(input_fn(batches=3 * RANK))
keys = canned.get_variable_value("linear/linear_model/user/weights/keys")
rows = np.arange(3 * models.BATCH).reshape(3, SIZE, -1)[:, 1:].reshape(-1)
assert sorted(keys) == sorted(set(models.USERS[rows]))
averages = [n for n in canned.get_variable_names() if "/moving_" in n]
assert averages
for name in averages:
    assert np.isfinite(canned.get_variable_value(name)).all(), name

# Weights that ranks train apart are told.


def apart(features, labels, mode):
    weight = tf.get_variable("weight", ())
    loss = tf.reduce_mean((features["age"] * weight - labels) ** 2)
    step = tf.train.get_global_step()
    import tensorflow

    plain = tensorflow.compat.v1.train.GradientDescentOptimizer(0.5)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=plain.minimize(loss, step)
    )


with pytest.raises(RuntimeError, match="'weight' are not the same on all"):
    models.make(folder / "apart", apart).train(input_fn(), steps=3)

print("passed")
