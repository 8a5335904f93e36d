"""Several iterators, restored ones among them, and epochs without rows."""

import threading

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from embedra.data import Field, ParquetDataset, read_csv
from embedra.data._source import Source


ROWS = 60


@pytest.fixture
def data(write):
    path = write(group=7, i=np.arange(ROWS))
    return ParquetDataset(path, 2, shuffle=20)


def rows(data):
    return [row for batch in data for row in batch["i"].numpy().tolist()]


@pytest.fixture
def begun(monkeypatch):
    """Counts streams that were begun."""
    counts = []
    batches = Source.batches

    def counted(self, epoch, first=0):
        counts.append((epoch, first))
        return batches(self, epoch, first)

    monkeypatch.setattr(Source, "batches", counted)
    return counts


def test_many_iterators_in_turn_are_not_read_anew_at_each_batch(data, begun):
    iterators = [iter(data) for _ in range(7)]
    found = [[] for _ in iterators]
    for _ in range(ROWS // 2):
        for one, iterator in zip(found, iterators, strict=True):
            one += next(iterator)["i"].numpy().tolist()
    assert all(sorted(one) == list(range(ROWS)) for one in found)
    # Seven, and some that were closed before it was clear how many there are.
    assert len(begun) < 7 * 4


def test_threads_at_one_place_each_have_its_batch(data):
    streams = data._lease.streams
    expected = [streams.take(1, 0, i)[0].tolist() for i in range(ROWS // 2)]
    found = [[] for _ in range(4)]
    # As iterators that were restored from one checkpoint: one token for all.
    barrier = threading.Barrier(len(found))

    def take(mine):
        for index in range(ROWS // 2):
            barrier.wait()
            mine.append(streams.take(1, 0, index)[0].tolist())

    threads = [threading.Thread(target=take, args=(one,)) for one in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one == expected for one in found)


def test_iterators_restored_from_one_checkpoint_read_the_same(data, tmp_path):
    iterator = iter(data.repeat().prefetch(1))
    for _ in range(5):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "c"))
    others = [iter(data.repeat().prefetch(1)) for _ in range(2)]
    for other in others:
        tf.train.Checkpoint(iterator=other).restore(path)
    for _ in range(ROWS):
        first, *rest = (next(i)["i"].numpy() for i in (iterator, *others))
        assert all((first == one).all() for one in rest)


@pytest.mark.parametrize("count", [0, -3])
def test_repeat_counts_as_that_of_tensorflow(data, count):
    repeated = data.repeat(count)
    assert int(repeated.cardinality()) == int(
        tf.data.Dataset.range(5).repeat(count).cardinality()
    )
    assert len(rows(repeated.take(ROWS))) == (0 if count == 0 else 2 * ROWS)


def test_repeat_ends_where_no_epoch_has_rows(write, tmp_path):
    text = tmp_path / "header.csv"
    text.write_text("i\n")
    assert not rows(read_csv(str(text), 2, [Field("i", "int64")]).repeat())
    path = write(i=pa.array([None, None], pa.int64()))
    assert not rows(ParquetDataset(path, 2, on_error="skip").repeat())
