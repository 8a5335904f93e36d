"""AUC, in TF1 graphs and in Keras, against TensorFlow's and the definition."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra import metrics
from metrics.references import exact_auc


v1 = tf.compat.v1

METHODS = ["trapezoidal", "careful_interpolation", "minoring", "majoring"]
CURVES = list(itertools.product(["ROC", "PR"], METHODS))


def clicks(rng, count=400):
    predictions = rng.random(count).astype(np.float32)
    # Also at thresholds, and at both ends.
    predictions[:8] = [0.0, 1.0, 0.0, 1.0, 1 / 199, 100 / 199, 0.5, 0.5]
    labels = (rng.random(count) < predictions).astype(np.int64)
    return labels, predictions


def run_in_graph(metric, batches, **arguments):
    """The values after each batch, and the value at the end."""
    with tf.Graph().as_default(), v1.Session() as session:
        labels = v1.placeholder(tf.int64, [None])
        predictions = v1.placeholder(tf.float32, [None])
        weights = v1.placeholder_with_default(np.float32(1.0), None)
        value, update = metric(
            labels, predictions, weights=weights, **arguments
        )
        session.run(v1.local_variables_initializer())
        feeds = (labels, predictions, weights)
        updates = [
            session.run(update, dict(zip(feeds, batch, strict=False)))
            for batch in batches
        ]
        return updates, session.run(value)


@pytest.mark.parametrize(("curve", "method"), CURVES)
def test_v1_values_are_those_of_tensorflow(rng, curve, method):
    labels, predictions = clicks(rng)
    weights = rng.random(400).astype(np.float32)
    batches = [
        (labels[:150], predictions[:150], weights[:150]),
        (labels[150:], predictions[150:], weights[150:]),
    ]
    arguments = {"curve": curve, "summation_method": method}
    found = run_in_graph(metrics.auc, batches, **arguments)
    expected = run_in_graph(v1.metrics.auc, batches, **arguments)
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-6)
    np.testing.assert_allclose(found[1], expected[1], rtol=2e-6)


@pytest.mark.parametrize("label", [0, 1])
def test_v1_value_of_one_class_is_that_of_tensorflow(rng, label):
    batch = (np.full(10, label), rng.random(10).astype(np.float32))
    found = run_in_graph(metrics.auc, [batch])
    assert found == run_in_graph(v1.metrics.auc, [batch])


def test_v1_thresholds_and_shapes_may_be_others(rng):
    labels, predictions = clicks(rng)
    with tf.Graph().as_default(), v1.Session() as session:
        value, update = metrics.auc(
            labels[:, None], predictions, num_thresholds=5000, name="ctr"
        )
        session.run(v1.local_variables_initializer())
        session.run(update)
        found = session.run(value)
        assert value.op.name == "ctr/value"
    expected = exact_auc(labels, predictions)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_v1_metric_is_in_collections_and_its_counts_in_metric_variables():
    with tf.Graph().as_default():
        value, update = metrics.auc(
            [0, 1], [0.0, 1.0], None, 200, ["values"], ["updates"]
        )
        assert v1.get_collection("values") == [value]
        assert v1.get_collection("updates") == [update]
        (counts,) = v1.get_collection(v1.GraphKeys.METRIC_VARIABLES)
        assert counts in v1.local_variables()
        assert not v1.global_variables()
        with pytest.raises(TypeError, match="as a list.*'values'"):
            metrics.auc([0], [0.0], metrics_collections="values")


@pytest.mark.parametrize("prediction", [-0.1, 1.1, np.nan])
def test_predictions_out_of_range_are_an_error(prediction):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"predictions must be in \[0, 1\]"
    ):
        run_in_graph(metrics.auc, [([0], [prediction])])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"predictions must be in \[0, 1\]"
    ):
        metrics.AUC().update_state([0], [prediction])


@pytest.mark.parametrize(
    "arguments",
    [{"curve": "DET"}, {"summation_method": "left"}, {"num_thresholds": 1}],
    ids=lambda arguments: next(iter(arguments)),
)
def test_arguments_out_of_range_are_named(arguments):
    name, value = next(iter(arguments.items()))
    with pytest.raises(ValueError, match=f"`{name}` must.*{value}"):
        metrics.AUC(**arguments)
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match=f"`{name}` must.*{value}"),
    ):
        metrics.auc([0], [0.0], **arguments)


def test_another_number_of_labels_is_an_error():
    with pytest.raises(ValueError, match=r"`labels`.*\(3,\).*\(2,\)"):
        metrics.AUC().update_state([0, 1, 0], [0.1, 0.2])


def test_v1_metrics_point_eager_users_to_keras():
    with pytest.raises(RuntimeError, match="embedra.metrics.AUC"):
        metrics.auc([0], [0.0])
    with pytest.raises(RuntimeError, match="keras.metrics.Mean"):
        metrics.mean([0.0])


@pytest.mark.parametrize("curve", ["ROC", "PR"])
def test_keras_values_are_those_of_keras(rng, curve):
    labels, predictions = clicks(rng)
    weights = rng.random(400)
    ours = metrics.AUC(num_thresholds=200, curve=curve)
    theirs = keras.metrics.AUC(num_thresholds=200, curve=curve)
    for metric in (ours, theirs):
        metric.update_state(labels[:99], predictions[:99], weights[:99])
        metric.update_state(labels[99:], predictions[99:], weights[99:])
    np.testing.assert_allclose(ours.result(), theirs.result(), rtol=1e-5)


def test_roc_area_is_off_by_at_most_half_the_pairs_that_share_a_bucket(rng):
    labels, predictions = clicks(rng)
    metric = metrics.AUC(num_thresholds=50)
    metric.update_state(labels, predictions)
    negatives, positives = metric.counts.numpy()
    shared = negatives @ positives / negatives.sum() / positives.sum()
    error = abs(float(metric.result()) - exact_auc(labels, predictions))
    assert error < shared / 2 + 1e-6
    assert shared > 0.01


def test_default_thresholds_are_close_to_the_definition(rng):
    labels, predictions = clicks(rng)
    metric = metrics.AUC()
    metric.update_state(labels, predictions)
    expected = exact_auc(labels, predictions)
    np.testing.assert_allclose(metric.result(), expected, atol=1e-4)


def test_counts_are_exact_beyond_what_float32_holds():
    metric = metrics.AUC(num_thresholds=2)
    metric.counts.assign(np.full((2, 3), 2.0**25))
    for _ in range(3):
        metric.update_state([1], [0.5])
    assert metric.counts.numpy()[1, 1] == 2.0**25 + 3


def test_logits_give_what_their_probabilities_give(rng):
    logits = rng.normal(size=100).astype(np.float32)
    labels = rng.integers(0, 2, 100)
    of_logits = metrics.AUC(from_logits=True)
    of_logits.update_state(labels, logits)
    plain = metrics.AUC()
    plain.update_state(labels, tf.sigmoid(logits))
    assert of_logits.result() == plain.result()


def test_merged_metric_is_that_of_all_batches(rng):
    labels, predictions = clicks(rng)
    parts = [metrics.AUC(name=f"rank_{i}") for i in range(3)]
    whole = metrics.AUC()
    for i, part in enumerate(parts):
        part.update_state(labels[i::3], predictions[i::3])
    whole.update_state(labels, predictions)
    parts[0].merge_state(parts[1:])
    assert parts[0].result() == whole.result()


def test_metric_resets_and_is_rebuilt_from_its_config():
    metric = metrics.AUC(50, "PR", "minoring", from_logits=True, name="pr")
    metric.update_state([1, 0], [0.5, 0.4])
    metric.reset_state()
    assert not metric.counts.numpy().any()
    config = keras.saving.serialize_keras_object(metric)
    rebuilt = keras.saving.deserialize_keras_object(config)
    assert rebuilt.get_config() == metric.get_config()


def test_metric_works_in_fit_and_names_its_logs(rng):
    model = keras.Sequential([keras.layers.Dense(1, "sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=[metrics.AUC()])
    features, labels = rng.random((64, 3)), rng.integers(0, 2, 64)
    history = model.fit(
        features, labels, validation_data=(features, labels), verbose=0
    )
    expected = exact_auc(labels, model.predict(features, verbose=0)[:, 0])
    found = history.history["val_auc"][0]
    np.testing.assert_allclose(found, expected, atol=1e-3)
    # What `mode="auto"` of Keras's callbacks asks.
    assert metrics.AUC()._direction == "up"
