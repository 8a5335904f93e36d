"""The synthetic click log and its ideal AUC."""

import numpy as np
import pytest

from embedra.data import Block, ClickLog, ideal_auc, string_ids


@pytest.fixture(scope="module")
def rows():
    log = ClickLog(seed=4)
    parts = [log.batch(i, 2048) for i in range(40)]
    return (
        Block.concatenate([block for block, _ in parts]),
        np.concatenate([probabilities for _, probabilities in parts]),
    )


def auc(labels, scores):
    order = np.argsort(scores)
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    clicks = labels.sum()
    won = ranks[labels == 1].sum() - clicks * (clicks + 1) / 2
    return won / (clicks * (len(labels) - clicks))


def test_batch_is_the_same_wherever_it_is_made():
    block, probabilities = ClickLog(seed=4).batch(7, 128)
    again, same = ClickLog(seed=4).batch(7, 128)
    np.testing.assert_array_equal(block.categorical, again.categorical)
    np.testing.assert_array_equal(block.labels, again.labels)
    np.testing.assert_array_equal(probabilities, same)


def test_other_seeds_and_places_give_other_rows():
    block, _ = ClickLog(seed=4).batch(7, 128)
    for log, index in ((ClickLog(seed=5), 7), (ClickLog(seed=4), 8)):
        other, _ = log.batch(index, 128)
        assert (block.categorical != other.categorical).any()


def test_labels_follow_the_probabilities(rows):
    block, probabilities = rows
    error = np.sqrt((probabilities * (1 - probabilities)).sum())
    assert abs(block.labels.sum() - probabilities.sum()) < 4 * error


def test_ideal_auc_is_that_of_the_true_probabilities(rows):
    block, probabilities = rows
    ideal = ideal_auc(probabilities)
    assert 0.7 < ideal < 0.9
    assert abs(auc(block.labels, probabilities) - ideal) < 0.01


def test_ideal_auc_of_certain_labels_is_one():
    assert ideal_auc(np.array([0.0, 1.0, 1.0])) == pytest.approx(1.0)


def test_few_ids_make_most_of_the_rows_and_all_bits_are_used(rows):
    block, _ = rows
    ids, counts = np.unique(block.categorical[:, -1], return_counts=True)
    counts = np.sort(counts)[::-1]
    assert len(ids) > 5000
    assert counts[:100].sum() > 0.4 * counts.sum()
    assert (ids < 0).mean() == pytest.approx(0.5, abs=0.05)


def test_new_ids_appear_over_time():
    log = ClickLog(seed=4, vocabulary_sizes=(100, 100), growth=1000.0)
    early, _ = log.batch(0, 4096)
    late, _ = log.batch(50, 4096)
    born = ~np.isin(late.categorical[:, 0], early.categorical[:, 0])
    assert 0.03 < born.mean() < 0.2


def test_dataset_gives_the_same_batches():
    log = ClickLog(seed=4)
    data = list(log.dataset(64, batches=3, first=2))
    assert len(data) == 3
    block, _ = log.batch(3, 64)
    features, labels = data[1]
    np.testing.assert_array_equal(features["id_2"], block.categorical[:, 2])
    np.testing.assert_array_equal(labels, block.labels)


def test_string_ids_are_stable_and_differ():
    ids = string_ids(["68fd1e64", ""])
    assert ids.tolist() == [7920289447977470598, 1936946117179621456]
    assert string_ids([]).shape == (0,)
