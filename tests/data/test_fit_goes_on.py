"""`fit` that goes on in the middle of the rows of files."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.data import ParquetDataset, set_epoch
from embedra.keras._continued_data import continued


@pytest.fixture
def path(write, rng):
    return write(
        group=16, x=rng.random(100, np.float32), y=rng.random(100, np.float32)
    )


def dataset(path, mapped, repeated):
    data = ParquetDataset(path, 8, shuffle=40, drop_remainder=True)
    data = data.repeat() if repeated else data
    return data.map(lambda row: row) if mapped else data


def batches(data, count):
    found = []
    while len(found) < count:
        for batch in data:
            found.append(batch["x"].numpy())
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("mapped", [False, True], ids=["plain", "mapped"])
@pytest.mark.parametrize("repeated", [False, True], ids=["once", "repeated"])
@pytest.mark.parametrize("steps", [3, 6])
def test_data_go_on_at_the_next_row(path, mapped, repeated, steps):
    if not repeated:
        steps = 6 if steps == 6 else 4  # A pass has 12 batches.
    expected = batches(dataset(path, mapped, repeated), 5 * steps)
    for epoch in (1, 4):
        found = continued(dataset(path, mapped, repeated), steps, epoch)
        rest = batches(found.data, found.pass_over + steps)
        np.testing.assert_array_equal(
            rest[found.pass_over :],
            expected[epoch * steps :][:steps],
        )
        assert found.pass_over == 0 or mapped


def test_each_epoch_has_its_order_when_training_goes_on(path):
    data = dataset(path, mapped=True, repeated=False)
    expected = batches(data, 36)[24:]
    found = continued(dataset(path, True, False), None, 2)
    np.testing.assert_array_equal(batches(found.data, 12), expected)


def test_dataset_without_readers_has_no_epoch():
    assert not set_epoch(tf.data.Dataset.range(3).map(lambda x: x), 2)


def test_p07_fit_on_int64_ids(write):
    from embedra.keras import Model
    from embedra.layers import Embedding

    ids = np.arange(100) * 2**50
    path = write(group=16, id=ids, y=np.ones(100, np.float32))
    data = ParquetDataset(path, 8).map(lambda row: (row["id"], row["y"]))
    assert data.element_spec[0] == tf.TensorSpec([None], tf.int64)
    inputs = keras.Input([], name="id", dtype="int64")
    rows = Embedding(1, name="rows")
    model = Model(inputs, rows(inputs))
    model.compile("sgd", "mse")
    history = model.fit(data, epochs=2, verbose=0)
    assert history.epoch == [0, 1]
    assert int(rows.table.size()) == 100


def test_broken_training_ends_as_the_unbroken_one(path, tmp_path):
    from embedra.keras import Model

    def train(epochs, folder):
        keras.utils.set_random_seed(1)
        inputs = keras.Input([], name="x")
        dense = keras.layers.Dense(1)
        output = dense(keras.ops.expand_dims(inputs, -1))
        model = Model(inputs, output)
        model.compile(keras.optimizers.SGD(0.5), "mse")
        data = ParquetDataset(path, 8, shuffle=40)
        data = data.map(lambda row: (row["x"], row["y"]))
        model.fit(data, epochs=epochs, verbose=0, checkpoint_dir=folder)
        return dense.get_weights()

    whole = train(3, str(tmp_path / "whole"))
    train(1, str(tmp_path / "broken"))
    rest = train(3, str(tmp_path / "broken"))
    np.testing.assert_array_equal(whole[0], rest[0])
    np.testing.assert_array_equal(whole[1], rest[1])
