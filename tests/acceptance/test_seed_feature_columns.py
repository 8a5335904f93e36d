"""The seed's example of embedding columns, as it stands."""

import dataclasses
import types

import numpy as np
import pytest

import embedra as hb
import embedra.compat.v1 as tf


@dataclasses.dataclass
class Field:
    name: str
    dtype: str


FIELDS = [Field("user", "int64"), Field("word", "string")]


class Network:
    """A model function with the example's lines in it."""

    def __init__(self, dims):
        spec = types.SimpleNamespace(embedding_dims=dims)
        self._args = types.SimpleNamespace(data_spec=spec)

    def mode_fn(self, features, labels, mode, params):
        categorical_fields = params["categorical_fields"]
        # From the seed, but for the indentation.
        embedding_columns = [
            tf.feature_column.embedding_column(
                tf.feature_column.categorical_column_with_embedding(
                    fs.name, dtype=tf.as_dtype(fs.dtype)
                ),
                dimension=self._args.data_spec.embedding_dims[fs.name],
                initializer=tf.random_uniform_initializer(-1e-3, 1e-3),
            )
            for fs in categorical_fields
        ]
        with (
            hb.embedding_scope(),
            tf.device("/cpu:0"),
            tf.variable_scope(
                "embedding",
                partitioner=tf.fixed_size_partitioner(hb.context.world_size),
            ),
        ):
            deep_features = [
                tf.feature_column.input_layer(features, [c])
                for c in embedding_columns
            ]
        # From here on as models go.
        logits = tf.reduce_sum(tf.concat(deep_features, axis=1), axis=1)
        loss = None
        if mode != "infer":
            loss = tf.reduce_mean((labels - logits) ** 2)
        train_op = None
        if mode == "train":
            optimizer = tf.train.AdagradOptimizer(0.2)
            step = tf.train.get_or_create_global_step()
            train_op = optimizer.minimize(loss, global_step=step)
        return hb.estimator.EstimatorSpec(
            mode, predictions=logits, loss=loss, train_op=train_op
        )


def batches():
    features = {"user": [7, 8, 7, 9], "word": ["a", "b", "a", ""]}
    labels = np.array([1.0, -1.0, 1.0, 0.5], np.float32)
    return tf.data.Dataset.from_tensors((features, labels)).repeat(40)


@pytest.fixture
def estimator(tmp_path):
    return hb.estimator.Estimator(
        model_fn=Network({"user": 8, "word": 4}).mode_fn,
        model_dir=str(tmp_path / "model"),
        params={"categorical_fields": FIELDS},
    )


def test_embedding_columns_train_evaluate_and_predict(estimator):
    estimator.train(batches, steps=40)
    assert estimator.evaluate(batches, steps=1)["loss"] < 1e-2
    first, second, *_ = estimator.predict(batches)
    assert np.isclose(first, 1.0, atol=0.2)
    assert np.isclose(second, -1.0, atol=0.2)


def test_tables_are_in_checkpoints_by_scope_and_column(estimator):
    estimator.train(batches, steps=1)
    names = estimator.get_variable_names()
    prefix = "embedding/input_layer"
    for field, dim in (("user", 8), ("word", 4)):
        table = f"{prefix}/{field}_embedding/embedding_weights"
        assert f"{table}/rows" in names
        rows = estimator.get_variable_value(f"{table}/rows")
        # "" in a dense feature is no word.
        assert rows.shape == (3 if field == "user" else 2, dim)
