"""The names of HybridBackend that read and transform rows."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

from embedra.data import (
    DataFrame,
    Dataset,
    Field,
    Iterator,
    ParquetDataset,
    RebatchDataset,
    SyncReplicasDataset,
    make_one_shot_iterator,
    read_parquet,
    read_table,
    unbatch_and_to_sparse,
)


def test_schema_tells_what_was_left_open(write):
    path = write(x=[1], l=[[1.5]], p=pa.array([[1, 2]], pa.list_(pa.int8(), 2)))
    assert ParquetDataset.read_schema(path) == [
        Field("x", "int64", ragged_rank=0),
        Field("l", "float64", ragged_rank=1),
        Field("p", "int8", shape=[2]),
    ]
    fields = ParquetDataset.read_schema(path, ["p"])
    data = ParquetDataset(path, 1, fields)
    assert next(iter(data))["p"].numpy().tolist() == [[1, 2]]


def test_names_of_hybridbackend(write):
    path = write(x=np.arange(10))
    rows = Dataset.from_parquet(path, fields=[DataFrame.Field("x", tf.int64)])
    assert [len(batch["x"]) for batch in rows.batch(4)] == [4, 4, 2]
    order = np.concatenate([b["x"] for b in rows.shuffle_batch(4, seed=1)])
    assert order.tolist() != list(range(10))
    assert sorted(order) == list(range(10))
    names = tf.data.Dataset.from_tensor_slices([path])
    data = names.apply(read_parquet(5))
    assert data.element_spec["x"].dtype == tf.int64
    assert int(data.cardinality()) == 2


def test_fields_are_mapped_batch_by_batch(write):
    path = write(x=np.arange(10))
    rows = Dataset.from_parquet(
        path,
        num_parallel_reads=tf.data.AUTOTUNE,
        field_map_fn=lambda batch: {"y": 2 * batch["x"]},
    )
    data = rows.batch(4, drop_remainder=True)
    assert data.element_spec == {"y": tf.TensorSpec([4], tf.int64)}
    assert [batch["y"].numpy().tolist()[0] for batch in data] == [0, 8]


def test_blocks_of_a_file_are_expanded(write):
    path = write(
        at=pa.array([[0, 0, 1], [0]]),
        user=pa.array([[7, 9], [5]]),
        item=pa.array([[1, 2, 3], [4]]),
    )
    rows = Dataset.from_parquet(
        path, key_idx_field_names=["at"], value_field_names=[["user"]]
    )
    batches = list(rows.batch(2))
    assert [batch["user"].numpy().tolist() for batch in batches] == [
        [7, 7],
        [9, 5],
    ]
    assert [batch["item"].numpy().tolist() for batch in batches] == [
        [1, 2],
        [3, 4],
    ]
    assert len(list(rows.batch(3, drop_remainder=True))) == 1
    with pytest.raises(ValueError, match="1 index columns, 0 lists"):
        Dataset.from_parquet(path, key_idx_field_names=["at"])


def test_what_cannot_be_had_says_what_to_use(write):
    path = write(x=np.arange(3))
    with pytest.raises(ValueError, match="very names"):
        Dataset.from_parquet(path, field_ignore_case=True)
    rows = Dataset.from_parquet(path)
    with pytest.raises(ValueError, match="set_epoch"):
        rows.shuffle_batch(2, reshuffle_each_iteration=False)
    data = rows.batch(2)
    with pytest.raises(ValueError, match="min_batch_size=2"):
        RebatchDataset(data, 3, min_batch_size=2)
    with pytest.raises(ValueError, match="on_error"):
        Iterator(data, ignored_exception_types=[ValueError])


def test_rows_one_by_one_and_sparse():
    columns = {"x": [1, 2], "l": [[3], [4, 5]], "m": [[[1, 2], []], [[3]]]}
    data = read_table(columns, 2).apply(unbatch_and_to_sparse())
    first, second = data
    assert (first["x"].numpy(), second["x"].numpy()) == (1, 2)
    assert second["l"].dense_shape.numpy().tolist() == [2]
    assert second["l"].values.numpy().tolist() == [4, 5]
    assert first["m"].indices.numpy().tolist() == [[0, 0], [0, 1]]
    batch = next(iter(read_table(columns, 1)))
    row = DataFrame.unbatch_and_to_sparse(batch)
    assert row["l"].values.numpy().tolist() == [3]


def test_rows_in_batches_of_another_size():
    data = read_table({"x": list(range(5))}, 2)
    other = RebatchDataset(data, 3, 3, drop_remainder=True)
    assert [batch["x"].numpy().tolist() for batch in other] == [[0, 1, 2]]


def test_end_of_data_is_agreed_on_by_fit_alone(monkeypatch):
    data = tf.data.Dataset.range(3)
    assert list(SyncReplicasDataset(data).as_numpy_iterator()) == [0, 1, 2]
    monkeypatch.setenv("EMBEDRA_RANK", "0")
    monkeypatch.setenv("EMBEDRA_WORLD_SIZE", "2")
    with pytest.raises(NotImplementedError, match="there are 2.*fit"):
        SyncReplicasDataset(data)


def test_iterator_gives_the_batch_in_a_graph():
    with tf.Graph().as_default():
        data = tf.data.Dataset.range(4).batch(2)
        batch = Iterator(make_one_shot_iterator(data), capacity=2).get_next()
        with tf.compat.v1.train.MonitoredSession(
            hooks=[Iterator.Hook()]
        ) as session:
            assert session.run(batch).tolist() == [0, 1]
            assert session.run(batch).tolist() == [2, 3]
