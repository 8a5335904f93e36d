"""AUC and log loss, against definitions."""

import numpy as np
import pytest

from embedra.cli._measures import measure


def test_auc_is_the_share_of_pairs_in_order(rng):
    labels = rng.integers(0, 2, 200).astype(np.float32)
    # Rounded, so that there are ties.
    scores = rng.random(200).round(1).astype(np.float32)
    clicks, others = scores[labels == 1], scores[labels == 0]
    above = (clicks[:, None] > others).mean()
    equal = (clicks[:, None] == others).mean()
    expected = above + equal / 2
    assert measure(labels, scores).auc == pytest.approx(expected)


def test_log_loss_is_the_mean_negative_log_likelihood():
    labels = np.array([1, 0], np.float32)
    scores = np.array([0.8, 0.4], np.float32)
    expected = -(np.log(0.8) + np.log(0.6)) / 2
    assert measure(labels, scores).log_loss == pytest.approx(expected)


def test_auc_of_one_class_is_undefined_and_certainty_costs_finitely():
    measured = measure(np.ones(2, np.float32), np.array([0, 1], np.float32))
    assert np.isnan(measured.auc)
    assert np.isfinite(measured.log_loss)
