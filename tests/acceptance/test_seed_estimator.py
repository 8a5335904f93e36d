"""The examples of HybridBackend's Estimator API, imports aside.

Sections 1.2 to 1.5 of its guide to high-level APIs, as they stand. What they
leave to their reader is in the fixtures.
"""

import numpy as np
import pytest

import embedra as hb
import embedra.compat.v1 as tf
import embedra.dynamic_embedding as de


numeric_fields = ["price"]
categorical_fields = ["user", "item"]


def model_fn(features, labels, mode, params):
    del params
    prices = [tf.cast(features[f], tf.float32) for f in numeric_fields]
    rows = [
        de.embedding_lookup_sparse(
            de.get_variable(f, dim=2, initializer=0.1),
            features[f],
            None,
            combiner="mean",
        )
        for f in categorical_fields
    ]
    deep = tf.concat([*rows, tf.stack(prices, axis=1)], axis=1)
    weights = tf.get_variable("weights", (deep.shape[1], 1))
    logits = tf.squeeze(tf.matmul(deep, weights), axis=1)
    scores = tf.sigmoid(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"score": scores})
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    train_op = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = hb.DynamicEmbeddingOptimizer(
            tf.train.AdagradOptimizer(learning_rate=0.5)
        )
        step = tf.train.get_or_create_global_step()
        train_op = optimizer.minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
        eval_metric_ops={"auc": tf.metrics.auc(labels, scores)},
    )


def input_fn():
    ids = np.random.default_rng(0).integers(0, 20, (200, 2))
    features = {
        "price": ids[:, 0] % 3,
        "user": tf.sparse.from_dense(ids),
        "item": tf.sparse.from_dense(ids[:, :1] + 100),
    }
    labels = (ids[:, 1] % 2).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(20)


@pytest.fixture
def train_spec():
    return tf.estimator.TrainSpec(input_fn, max_steps=10)


@pytest.fixture
def eval_spec():
    return tf.estimator.EvalSpec(input_fn)


def _on_export():
    inputs = {}
    for f in numeric_fields:
        inputs[f] = tf.placeholder(dtype=tf.int64, shape=[None], name=f)
    for f in categorical_fields:
        # Feed sparse placeholders using `tf.SparseTensorValue`
        inputs[f] = tf.sparse_placeholder(dtype=tf.int64, name=f)
    return tf.estimator.export.ServingInputReceiver(inputs, inputs)


def test_training_and_evaluation(train_spec, eval_spec):
    model = hb.estimator.Estimator(model_fn=model_fn)
    model.train_and_evaluate(train_spec, eval_spec, eval_every_n_iter=1000)

    steps = [int(v["global_step"]) for v in model.eval_history]
    assert steps == [1, 10]
    first, last = model.eval_history
    assert last["auc"] > max(first["auc"], 0.7)


def test_exporting_to_saved_model(tmp_path):
    export_dir_base = str(tmp_path / "models")
    estimator = hb.estimator.Estimator(model_fn=model_fn)
    estimator.train(input_fn)

    path = estimator.export_saved_model(export_dir_base, _on_export)

    sparse = tf.SparseTensorValue([[0, 0], [1, 0]], [3, 4], [2, 2])
    with tf.Graph().as_default() as graph, tf.Session() as session:
        model = tf.saved_model.load(session, ["serve"], path)
        signature = model.signature_def["serving_default"]
        served = session.run(
            signature.outputs["score"].name,
            {
                graph.get_tensor_by_name("price:0"): [1, 2],
                **{
                    tf.SparseTensor(
                        *(
                            graph.get_tensor_by_name(f"{f}/{part}:0")
                            for part in ("indices", "values", "shape")
                        )
                    ): sparse
                    for f in categorical_fields
                },
            },
        )

    def request():
        sparse_tensors = {
            f: tf.SparseTensor(*sparse) for f in categorical_fields
        }
        features = {"price": [1, 2], **sparse_tensors}
        return tf.data.Dataset.from_tensors(features)

    expected = [one["score"] for one in estimator.predict(request)]
    np.testing.assert_allclose(served, expected, rtol=1e-5)
    assert set(signature.inputs) == {"price", "user", "item"}


def test_wraps_an_existing_estimator(train_spec, eval_spec):
    class MyEstimator(tf.estimator.Estimator):
        pass

    estimator = hb.wraps(MyEstimator)(model_fn=model_fn)

    assert isinstance(estimator, MyEstimator)
    metrics, _ = estimator.train_and_evaluate(train_spec, eval_spec)
    assert metrics["global_step"] == 10


def test_customized_estimators():
    @hb.wraps
    class MyEstimator(tf.estimator.Estimator):
        def evaluate(self, *args, **kwargs):
            found = super().evaluate(*args, **kwargs)
            return {**found, "mine": True}

    estimator = MyEstimator(model_fn=model_fn)

    estimator.train(input_fn, steps=1)
    assert estimator.evaluate(input_fn)["mine"]
