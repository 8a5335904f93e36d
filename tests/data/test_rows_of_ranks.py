"""Every row exactly once: over ranks, epochs, and iterators that go on."""

import numpy as np
import pytest
import tensorflow as tf

from embedra.data import Dataset, ParquetDataset, read_csv, read_table
from embedra.data._containers import ParquetContainer
from embedra.data._files import find_files
from embedra.data._plan import Plan, Share


@pytest.fixture
def files(write):
    """Four files of unequal size, with seven row groups; rows 0 to 99."""
    sizes, start, paths = (31, 5, 47, 17), 0, []
    for number, size in enumerate(sizes):
        rows = np.arange(start, start + size)
        paths.append(write(f"{number}.parquet", group=20, x=rows))
        start += size
    return paths


def rows(data):
    return [int(x) for batch in data for x in batch["x"]]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("shuffle", [False, 30], ids=["in_order", "shuffled"])
def test_p04_ranks_share_all_rows_once(files, ranks, shuffle):
    shares = [
        rows(ParquetDataset(files, 6, None, ranks, rank, shuffle=shuffle))
        for rank in range(ranks)
    ]
    sizes = {len(share) for share in shares}
    assert max(sizes) - min(sizes) <= 1
    assert sorted(sum(shares, [])) == list(range(100))


@pytest.mark.parametrize("ranks", [1, 4, 7, 99, 120])
@pytest.mark.parametrize("shuffle", [False, True], ids=["in_order", "shuffled"])
def test_p04_plans_of_any_number_of_ranks(files, ranks, shuffle):
    containers = [ParquetContainer(file) for file in find_files(files)]
    first = [0, 31, 36, 83]
    found, sizes = [], set()
    for rank in range(ranks):
        plan = Plan(containers, Share(ranks, rank), shuffle=shuffle, seed=2)
        share = [
            first[part.container] + 20 * part.unit + row
            for part in plan.parts(epoch=5)
            for row in range(part.start, part.stop)
        ]
        assert len(share) == plan.rows()
        sizes.add(len(share))
        found += share
    assert max(sizes) - min(sizes) <= 1
    assert sorted(found) == list(range(100))
    assert (found == list(range(100))) == (not shuffle)


READERS = {
    "parquet": lambda files, _: ParquetDataset(files, 6),
    "shuffled": lambda files, _: ParquetDataset(files, 6, shuffle=20),
    "names": lambda files, _: Dataset.from_parquet(files).batch(6),
    "table": lambda *_: read_table({"x": np.arange(100)}, 6),
    "csv": lambda _, path: read_csv(path, 6),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_p04_each_rank_of_a_job_reads_its_share(
    files, tmp_path, monkeypatch, reader, ranks
):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["x", *map(str, range(100))]))
    found = []
    for rank in range(ranks):
        monkeypatch.setenv("EMBEDRA_RANK", str(rank))
        monkeypatch.setenv("EMBEDRA_WORLD_SIZE", str(ranks))
        found.append(rows(READERS[reader](files, path)))
    assert {len(share) for share in found} <= {100 // ranks, 100 // ranks + 1}
    assert sorted(sum(found, [])) == list(range(100))


def test_rank_of_a_job_reads_all_rows_if_told_to(files, monkeypatch):
    monkeypatch.setenv("EMBEDRA_RANK", "1")
    monkeypatch.setenv("EMBEDRA_WORLD_SIZE", "2")
    assert rows(ParquetDataset(files, 6, None, 1, 0)) == list(range(100))
    assert len(rows(ParquetDataset(files, 6, partition_count=1))) == 100


@pytest.mark.parametrize(
    ("count", "index"), [(2, 2), (2, -1), (2, "1"), (3, None), (None, 1)]
)
def test_rank_that_does_not_exist_is_refused(files, count, index):
    with pytest.raises(
        ValueError,
        match=f"partition_index={index!r}|partition_index={index}",
    ):
        ParquetDataset(files, 6, None, count, index)


def test_epochs_differ_and_can_be_had_again(files):
    data = ParquetDataset(files, 8, shuffle=True, seed=3)
    first, second = rows(data), rows(data)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second
    again = ParquetDataset(files, 8, shuffle=True, seed=3)
    again.epoch = 1
    assert rows(again) == second
    assert rows(again.repeat(2))[:100] != second
    other = ParquetDataset(files, 8, shuffle=True, seed=4)
    assert rows(other) != first


def test_small_windows_still_shuffle_row_groups(files):
    data = ParquetDataset(files, 10, shuffle=10)
    order = rows(data)
    assert sorted(order) == list(range(100))
    assert sorted(order[:10]) != list(range(10))


@pytest.mark.parametrize("passed", [1, 13, 18, 40])
@pytest.mark.parametrize("shuffle", [False, 30], ids=["in_order", "shuffled"])
def test_skip_over_epochs_reads_on_at_the_next_row(files, passed, shuffle):
    def data():
        return ParquetDataset(files, 8, shuffle=shuffle).repeat(2)

    expected = [batch["x"].numpy().tolist() for batch in data()][passed:]
    skipped = data().skip(passed)
    assert int(skipped.cardinality()) == len(expected)
    assert [batch["x"].numpy().tolist() for batch in skipped] == expected


PIPELINES = {
    "repeat_map_prefetch": lambda data, f: data.repeat(2).map(f).prefetch(3),
    "map_repeat": lambda data, f: data.map(f).repeat(2),
    "map_repeat_prefetch": lambda data, f: data.map(f).repeat(2).prefetch(3),
}


# An epoch has 13 batches, of which all are made ahead from the tenth on.
@pytest.mark.parametrize("taken", [4, 10, 13])
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_iterator_goes_on_from_a_checkpoint(
    files, tmp_path, taken, pipeline, on_error
):
    def data():
        source = ParquetDataset(files, 8, shuffle=30, on_error=on_error)
        return PIPELINES[pipeline](source, lambda row: row["x"])

    iterator = iter(data())
    before = [next(iterator).numpy() for _ in range(taken)]
    path = tf.train.Checkpoint(iterator=iterator).save(tmp_path / "state")
    expected = [batch.numpy() for batch in iterator]
    other = iter(data())
    tf.train.Checkpoint(iterator=other).restore(path)
    rest = [batch.numpy() for batch in other]
    np.testing.assert_array_equal(
        np.concatenate(rest), np.concatenate(expected)
    )
    assert len(np.concatenate([*before, *rest])) == 200


def test_iterators_at_the_same_time_do_not_disturb_each_other(files):
    data = ParquetDataset(files, 9)
    # More than are kept open at a time.
    together = tf.data.Dataset.zip((data,) * 7)
    for batches in together:
        for batch in batches[1:]:
            np.testing.assert_array_equal(batch["x"], batches[0]["x"])


def test_dataset_outlives_the_one_it_was_made_of(files):
    assert len(rows(ParquetDataset(files, 8).repeat(2).skip(1))) == 192


def test_remainder_is_dropped(files):
    data = ParquetDataset(files, 8, drop_remainder=True)
    assert data.element_spec["x"].shape == [8]
    assert len(rows(data)) == 96
    assert int(data.cardinality()) == 12


def test_p07_spec_is_complete_wherever_the_dataset_goes(files):
    spec = {"x": tf.TensorSpec([None], tf.int64)}
    data = ParquetDataset(files, 8)
    assert data.repeat().element_spec == spec
    assert int(data.repeat().cardinality()) == tf.data.INFINITE_CARDINALITY
    assert int(data.cardinality()) == 13
    joined = tf.data.Dataset.from_tensor_slices([0, 1]).interleave(
        lambda _: ParquetDataset(files, 8)
    )
    assert joined.element_spec == spec
    assert sorted(rows(joined)) == sorted(2 * list(range(100)))
    named = ParquetDataset(tf.data.Dataset.from_tensor_slices(files), 8)
    assert named.element_spec == spec
    assert rows(named) == list(range(100))


def test_p07_in_a_graph_of_tf1(files):
    with tf.Graph().as_default():
        data = ParquetDataset(files, 50)
        iterator = tf.compat.v1.data.make_one_shot_iterator(data)
        batch = iterator.get_next()["x"]
        assert batch.dtype == tf.int64
        with tf.compat.v1.Session() as session:
            values = [session.run(batch) for _ in range(2)]
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(batch)
    assert np.concatenate(values).tolist() == list(range(100))
