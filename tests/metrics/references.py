"""Metrics in NumPy and float64, by their definitions."""

import numpy as np


def exact_auc(labels, predictions, weights=None):
    """Share of pairs that are in order; ties count half. NaN without pairs."""
    labels = np.asarray(labels, np.float64)
    predictions = np.asarray(predictions, np.float64)
    weights = np.ones_like(labels) if weights is None else np.asarray(weights)
    positive, negative = weights * labels, weights * (1 - labels)
    difference = predictions[:, None] - predictions[None, :]
    wins = (difference > 0) + 0.5 * (difference == 0)
    pairs = positive.sum() * negative.sum()
    return positive @ wins @ negative / pairs if pairs else np.nan


def exact_gauc(labels, predictions, groups, weights=None):
    """Mean of the AUC of groups, by their weight."""
    labels, predictions, groups = map(np.asarray, (labels, predictions, groups))
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights)
    total = size = 0.0
    for group in np.unique(groups):
        own = groups == group
        auc = exact_auc(labels[own], predictions[own], weights[own])
        if not np.isnan(auc):
            total += auc * weights[own].sum()
            size += weights[own].sum()
    return total / size if size else 0.0
