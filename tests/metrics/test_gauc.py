"""Grouped AUC, in TF1 graphs and in Keras, against its definition."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra import metrics
from metrics.references import exact_auc, exact_gauc


v1 = tf.compat.v1


def impressions(rng, count=300, users=20):
    groups = rng.integers(0, users, count) * (2**58)
    # Coarse, so that there are ties.
    predictions = np.round(rng.random(count), 1).astype(np.float32)
    labels = rng.integers(0, 2, count)
    # A user that clicks all, and one that clicks nothing.
    labels[groups == 0] = 1
    labels[groups == 2**58] = 0
    return labels, predictions, groups


@pytest.mark.parametrize("batch", [1, 7, 300])
def test_groups_may_be_spread_over_batches(rng, batch):
    labels, predictions, groups = impressions(rng)
    metric = metrics.GroupedAUC()
    for start in range(0, 300, batch):
        part = slice(start, start + batch)
        metric.update_state(
            labels[part], predictions[part], groups=groups[part]
        )
    expected = exact_gauc(labels, predictions, groups)
    np.testing.assert_allclose(metric.result(), expected, rtol=1e-6)


def test_v1_value_is_that_of_all_batches(rng):
    labels, predictions, groups = impressions(rng)
    with tf.Graph().as_default(), v1.Session() as session:
        inputs = [
            v1.placeholder(tf.float32, [None]),
            v1.placeholder(tf.float32, [None]),
            v1.placeholder(tf.int64, [None]),
        ]
        value, update = metrics.gauc(*inputs)
        session.run(v1.local_variables_initializer())
        assert session.run(value) == 0.0
        columns = (labels, predictions, groups)
        for start in range(0, 300, 90):
            batch = [column[start : start + 90] for column in columns]
            found = session.run(update, dict(zip(inputs, batch, strict=True)))
            np.testing.assert_allclose(found, exact_gauc(*batch), rtol=1e-6)
            expected = exact_gauc(*(c[: start + 90] for c in columns))
            found = session.run(value)
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        # What an evaluation begins with.
        session.run(v1.local_variables_initializer())
        assert session.run(value) == 0.0
        assert len(v1.get_collection(v1.GraphKeys.METRIC_VARIABLES)) == 3


def test_v1_without_indicators_is_the_auc_of_all(rng):
    labels, predictions, _ = impressions(rng)
    with tf.Graph().as_default(), v1.Session() as session:
        _, update = metrics.gauc(labels, predictions)
        session.run(v1.local_variables_initializer())
        found = session.run(update)
    expected = exact_auc(labels, predictions)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_scores_may_differ_by_less_than_float32_tells():
    scores = 1.0 + np.array([3.0, 1.0, 2.0]) * 1e-12
    with tf.Graph().as_default(), v1.Session() as session:
        _, update = metrics.gauc([1, 0, 1], scores, [7, 7, 7])
        session.run(v1.local_variables_initializer())
        assert session.run(update) == 1.0


def test_weights_and_soft_labels_count(rng):
    labels, predictions, groups = impressions(rng, 60, 4)
    labels = rng.random(60)
    weights = rng.random(60)
    metric = metrics.GroupedAUC()
    metric.update_state(labels, predictions, weights, groups)
    expected = exact_gauc(labels, predictions, groups, weights)
    np.testing.assert_allclose(metric.result(), expected, rtol=1e-6)


def test_groups_may_be_strings(rng):
    labels, predictions, groups = impressions(rng)
    metric = metrics.GroupedAUC()
    metric.update_state(labels, predictions, groups=groups.astype(str))
    expected = exact_gauc(labels, predictions, groups)
    np.testing.assert_allclose(metric.result(), expected, rtol=1e-6)


def test_value_without_a_pair_is_zero():
    metric = metrics.GroupedAUC()
    assert metric.result() == 0.0
    metric.update_state([1, 0], [0.5, 0.4], groups=[1, 2])
    assert metric.result() == 0.0


def test_predictions_may_be_logits_but_no_nan():
    metric = metrics.GroupedAUC()
    metric.update_state([1, 0], [-4.0, -5.0], groups=[1, 1])
    assert metric.result() == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="predictions"):
        metric.update_state([1, 0], [np.nan, 0.0], groups=[1, 1])
    assert metric.result() == 1.0


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (None, ValueError, "needs the group of each example"),
        ([0.5, 0.5], TypeError, "integers or strings.*float32"),
        ([1], ValueError, "`groups` must have one value for each"),
    ],
    ids=["none", "floats", "too_few"],
)
def test_wrong_groups_are_an_error(groups, error, message):
    with pytest.raises(error, match=message):
        metrics.GroupedAUC().update_state([1, 0], [0.5, 0.4], groups=groups)


def test_metric_counts_in_functions_and_forgets_when_reset(rng):
    metric = metrics.GAUC()

    @tf.function
    def count(labels, predictions, groups):
        metric.update_state(labels, predictions, groups=groups)
        return metric.result()

    for _ in range(2):
        labels, predictions, groups = impressions(rng)
        metric.reset_state()
        found = count(labels, predictions, groups)
        expected = exact_gauc(labels, predictions, groups)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_merged_metric_is_that_of_all_batches(rng):
    labels, predictions, groups = impressions(rng)
    parts = [metrics.GroupedAUC() for _ in range(3)]
    for i, part in enumerate(parts):
        part.update_state(labels[i::3], predictions[i::3], groups=groups[i::3])
    parts[0].merge_state(parts[1:])
    expected = exact_gauc(labels, predictions, groups)
    np.testing.assert_allclose(parts[0].result(), expected, rtol=1e-6)


def test_metric_is_rebuilt_from_its_config():
    metric = metrics.GroupedAUC("users")
    config = keras.saving.serialize_keras_object(metric)
    rebuilt = keras.saving.deserialize_keras_object(config)
    assert (rebuilt.name, rebuilt.dtype) == ("users", metric.dtype)


def test_mean_and_accuracy_are_those_of_tensorflow():
    with tf.Graph().as_default(), v1.Session() as session:
        updates = [
            metrics.mean([1.0, 2.0, 6.0], [1.0, 1.0, 0.0])[1],
            metrics.accuracy([1, 0, 1], [1, 1, 1])[1],
            metrics.accuracy([1, 0, 1], [1, 1, 1], [0.0, 1.0, 0.0])[1],
        ]
        session.run(v1.local_variables_initializer())
        found = session.run(updates)
    np.testing.assert_allclose(found, [1.5, 2 / 3, 0.0], rtol=1e-6)
