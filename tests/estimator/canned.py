"""Canned models over a table and a number, and their input."""

import tensorflow as tf

from embedra import estimator as lib, feature_column as fc


v1 = tf.compat.v1

USER = fc.categorical_column_with_embedding("user", tf.int64)
AGE = fc.numeric_column("age")
IDS = [5, 10**12, 5, 7]
AGES = [0.1, 0.2, 0.3, 0.4]
BINARY = [0, 1, 1, 0]

QUIET = {
    "save_summary_steps": None,
    "log_step_count_steps": None,
    "checkpoint_save_graph_def": False,
}


def config(folder):
    return lib.RunConfig(model_dir=str(folder), tf_random_seed=3, **QUIET)


def inputs(labels=None, **features):
    """Gives an input function of one batch, as often as it is asked for."""
    features = {"user": IDS, "age": AGES} | features

    def give():
        named = {name: tf.constant(values) for name, values in features.items()}
        named["user"] = tf.cast(named["user"], tf.int64)
        return named if labels is None else (named, tf.constant(labels))

    return give


def batches(**features):
    """Gives an input function of features that ends."""
    return lambda: tf.data.Dataset.from_tensors(inputs(**features)())


def predicted(estimator, **features):
    """Returns predictions of one batch by name."""
    return next(
        estimator.predict(batches(**features), yield_single_examples=False)
    )


def embedding():
    return fc.embedding_column(USER, 3)


def linear(**kwargs):
    kwargs.setdefault("optimizer", v1.train.GradientDescentOptimizer(0.5))
    return lib.LinearClassifier([USER, AGE], **kwargs)


def deep(**kwargs):
    return lib.DNNClassifier([4, 2], [embedding(), AGE], **kwargs)


def combined(**kwargs):
    columns = {
        "linear_feature_columns": [USER, AGE],
        "dnn_feature_columns": [embedding(), AGE],
        "dnn_hidden_units": [4],
    }
    return lib.DNNLinearCombinedClassifier(**(columns | kwargs))
