"""Batches: sizes, order, parts, and going on in the middle."""

import numpy as np
import pytest

from embedra.data import Block, ClickReader, Columns


ROWS = 1000


@pytest.fixture
def reader(tmp_path):
    path = tmp_path / "log.csv"
    lines = (f"{i % 2},{i},{i}\n" for i in range(ROWS))
    path.write_text("click,place,ad\n" + "".join(lines))
    return ClickReader(path, "csv", Columns("click", ("place",), ("ad",)))


def places(batches):
    return [batch.numeric[:, 0].astype(int).tolist() for batch in batches]


def test_batches_are_full_but_for_the_last(reader):
    sizes = [len(batch) for batch in reader.batches(64)]
    assert sizes == [64] * 15 + [40]


def test_order_of_the_file_is_kept_without_a_seed(reader):
    assert sum(places(reader.batches(64)), []) == list(range(ROWS))


@pytest.mark.parametrize("buffer_rows", [10, 100, 10_000])
def test_shuffling_keeps_every_row_once(reader, buffer_rows):
    order = sum(
        places(reader.batches(64, seed=3, shuffle_rows=buffer_rows)), []
    )
    assert order != list(range(ROWS))
    assert sorted(order) == list(range(ROWS))


def test_same_seed_gives_same_batches_and_others_differ(reader):
    first = places(reader.batches(64, seed=(3, 0)))
    assert first == places(reader.batches(64, seed=(3, 0)))
    assert first != places(reader.batches(64, seed=(3, 1)))


def test_skip_goes_on_in_the_middle(reader):
    whole = places(reader.batches(64, seed=3))
    assert places(reader.batches(64, seed=3, skip=5)) == whole[5:]


def test_parts_split_the_rows(reader):
    train = sum(places(reader.batches(64, part="train", held_out=0.2)), [])
    held = sum(places(reader.batches(64, part="held_out", held_out=0.2)), [])
    assert sorted(train + held) == list(range(ROWS))
    assert abs(len(held) - 200) < 20


def test_dataset_names_features_and_types_them(reader):
    features, labels = next(iter(reader.dataset(8)))
    assert list(features) == ["place", "ad"]
    assert features["place"].dtype == "float32"
    assert features["ad"].dtype == "int64"
    assert features["ad"].shape == labels.shape == (8,)


def test_dataset_can_be_iterated_again(reader):
    data = reader.dataset(100)
    assert [len(list(data)), len(list(data))] == [10, 10]


def test_concatenate_keeps_the_order_of_blocks():
    def block(value):
        return Block(
            np.full((1, 0), 0, np.float32),
            np.full((1, 1), value, np.int64),
            np.zeros(1, np.float32),
        )

    joined = Block.concatenate([block(1), block(2)])
    assert joined.categorical.tolist() == [[1], [2]]
