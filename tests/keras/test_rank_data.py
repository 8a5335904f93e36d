"""Data and metrics of a rank, by themselves; with others: tests/distribute."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
from embedra.distribute import RankBatch, SingleCommunicator, empty_batch
from embedra.keras._keras_data import Adapted, split_for_validation
from embedra.keras._rank_data import (
    is_rank_data,
    rank_data,
    rows_of,
)
from embedra.keras._rank_metrics import over_ranks, same_logs


def test_keras_still_makes_datasets_of_arrays():
    x = {"a": np.arange(5.0), "b": np.arange(10).reshape(5, 2)}
    (x, y, weights), held_out = split_for_validation((x, np.ones(5), None), 0.4)
    adapted = Adapted(x, y, weights, batch_size=2, class_weight={1: 3.0})
    features, labels, weights = next(iter(adapted.dataset))
    assert features["b"].shape == (2, 2)
    assert weights.numpy().tolist() == [3.0, 3.0]
    assert labels.shape == (2,)
    assert adapted.batches == 2, "of an epoch"
    assert len(held_out[1]) == 2


def test_datasets_are_told_of_the_epochs_of_a_py_dataset():
    class Pairs(keras.utils.PyDataset):
        told = ()

        def __len__(self):
            return 1

        def __getitem__(self, index):
            return np.full((2, 3), index), np.ones((2, 1))

        def on_epoch_begin(self):
            self.told += ("begin",)

        def on_epoch_end(self):
            self.told += ("end",)

    pairs = Pairs()
    adapted = Adapted(pairs)
    adapted.begin_epoch()
    adapted.end_epoch()
    assert pairs.told == ("begin", "end")


SPECS = {
    "dense": tf.TensorSpec([8, 3], tf.float32),
    "any width": tf.TensorSpec([None, None], tf.int64),
    "words": tf.TensorSpec([None], tf.string),
    "scalar": tf.TensorSpec([], tf.float32),
    "ragged": tf.RaggedTensorSpec([None, None], tf.int64),
    "deep": tf.RaggedTensorSpec([None, None, None, 2], tf.float32, 2, tf.int32),
    "sparse": tf.SparseTensorSpec([None, 9], tf.float32),
}


@pytest.mark.parametrize("name", SPECS)
def test_batches_without_rows_are_like_others(name):
    spec = SPECS[name]
    empty = empty_batch(spec)
    if name != "dense":
        assert spec.is_compatible_with(empty)
    assert rows_of((empty,)) == (1 if name == "scalar" else 0)


def test_batches_of_unknown_kinds_are_refused():
    with pytest.raises(TypeError, match="batches of no rows"):
        empty_batch(tf.TensorSpec(None, tf.float32))


def test_data_say_which_batches_are_theirs():
    given = tf.data.Dataset.from_tensor_slices(np.arange(5)).batch(2)
    data = rank_data(given.map(lambda x: (x,)), 3, SingleCommunicator())
    assert is_rank_data(data)
    assert not is_rank_data(given)
    assert len(data) == 3
    batches = [batch for present, (batch,) in data if present]
    assert tf.concat(batches, 0).numpy().tolist() == [0, 1, 2, 3, 4]
    unknown = given.filter(lambda _: True)
    present = [
        bool(b.present)
        for b in rank_data(unknown, None, SingleCommunicator()).take(5)
    ]
    assert present == [True, True, True, False, False]
    assert isinstance(data.element_spec, RankBatch)


class Doubled(SingleCommunicator):
    """As if another rank had the same."""

    size = 2

    def _all_reduce(self, values, reduction, bucket_bytes, label):
        del bucket_bytes, label
        return [2 * v if reduction == "sum" else v for v in values]

    def _all_gather_v(self, value, label, any_label):
        del label, any_label
        return tf.concat([value, value], 0), tf.constant([1, 1], tf.int64)


def test_metrics_are_of_all_ranks_for_a_while():
    mean, grouped = keras.metrics.Mean(), hb.metrics.GroupedAUC()
    mean.update_state([1.0, 2.0])
    grouped.update_state([0, 1], [0.1, 0.9], groups=[3, 3])
    with over_ranks([mean, grouped], Doubled()):
        assert float(mean.count) == 4.0
        assert float(mean.result()) == 1.5
        assert float(grouped.result()) == 1.0
        assert len(grouped._store.read().groups) == 4
    assert float(mean.count) == 2.0
    assert len(grouped._store.read().groups) == 2


def test_logs_that_are_the_same_stay_so():
    logs = {"loss": 0.1, "rows": 3, "note": "text"}
    same_logs(logs, Doubled())
    assert logs == {"loss": 0.1, "rows": 3, "note": "text"}


def test_xla_is_no_business_of_one_process():
    model = hb.keras.Model()
    model.compile("sgd", "mse", jit_compile=True)
    assert model.jit_compile is True
