"""TFRecord files under the same fields as others."""

import re
from dataclasses import replace

import pytest
import tensorflow as tf

from embedra.data import DataError, Field, read_tfrecord


def rows(data, name="x"):
    parts = [batch[name] for batch in data]
    if parts and isinstance(parts[0], tf.RaggedTensor):
        return [row for part in parts for row in part.to_list()]
    return [value for part in parts for value in part.numpy().tolist()]


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "rows.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for i in range(5):
            feature = {
                "x": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                "l": tf.train.Feature(
                    int64_list=tf.train.Int64List(value=range(i))
                ),
                "p": tf.train.Feature(
                    float_list=tf.train.FloatList(value=[i, 1])
                ),
            }
            if i % 2:
                feature["s"] = tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[b"odd"])
                )
            example = tf.train.Example(
                features=tf.train.Features(feature=feature)
            )
            writer.write(example.SerializeToString())
    return path


def test_tfrecords_under_fields(records):
    fields = [
        Field("x", "int32"),
        Field("l", "int64", ragged_rank=1),
        Field("p", "float32", shape=[2]),
        Field("s", "string", default="even"),
    ]
    data = read_tfrecord(records, 2, fields)
    assert data.element_spec["x"] == tf.TensorSpec([None], tf.int32)
    assert data.element_spec["p"].shape == [None, 2]
    assert rows(data) == [0, 1, 2, 3, 4]
    assert rows(data, "l") == [list(range(i)) for i in range(5)]
    assert rows(data, "p") == [[i, 1] for i in range(5)]
    assert rows(data, "s") == [b"even", b"odd", b"even", b"odd", b"even"]
    shares = [
        rows(
            read_tfrecord(
                records, 2, fields, partition_count=2, partition_index=rank
            )
        )
        for rank in range(2)
    ]
    assert shares == [[0, 2, 4], [1, 3]]


@pytest.mark.parametrize(
    ("length", "last"), [("right", [0, 1, 2]), ("left", [1, 2, 3])]
)
def test_tfrecord_lists_padded_and_cut(records, length, last):
    field = Field("l", "int64", shape=[3], length=length, default=-1)
    found = rows(read_tfrecord(records, 2, [field]), "l")
    assert found[4] == last
    assert found[1] == ([0, -1, -1] if length == "right" else [-1, -1, 0])


def test_tfrecord_features_that_are_missing(records):
    masked = Field("s", "string", mask=True)
    data = read_tfrecord(records, 2, [masked, Field("n", "int64", default=7)])
    assert rows(data, "s_present") == [False, True, False, True, False]
    assert rows(data, "s") == [b"", b"odd", b"", b"odd", b""]
    assert rows(data, "n") == [7] * 5
    with pytest.raises(tf.errors.OpError, match="rows.tfrecord.*row 0.*null"):
        rows(read_tfrecord(records, 2, [Field("s", "string")]), "s")


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (Field("l", "int64"), "record 3: feature 'l' has 2 values"),
        (Field("l", "float32", ragged_rank=1), "record 1: .*l.*don't match"),
        (Field("p", "float32", shape=[3]), "'p' has 2 values, expected .3."),
    ],
)
def test_tfrecord_examples_that_do_not_fit(records, field, reason):
    fields = [Field("x", "int64"), replace(field, default=0)]
    with pytest.raises(tf.errors.OpError, match=f"rows.tfrecord.*{reason}"):
        rows(read_tfrecord(records, 2, fields))
    data = read_tfrecord(records, 2, fields, on_error="skip")
    left = rows(data)
    assert data.report.skipped_rows == 5 - len(left) > 0
    assert any(re.search(reason, found) for found in data.report.reasons)


def test_records_that_are_no_examples(tmp_path):
    path = tmp_path / "rows.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in (b"\xff\xfe", tf.train.Example().SerializeToString()):
            writer.write(record)
    fields = [Field("x", "int64", default=3)]
    message = "rows.tfrecord.*record 1: is no tf.train.Example"
    with pytest.raises(tf.errors.OpError, match=message):
        rows(read_tfrecord(path, 2, fields))
    data = read_tfrecord(path, 2, fields, on_error="skip")
    assert rows(data) == [3]
    assert data.report.skipped_rows == 1


def test_tfrecord_that_is_damaged(records):
    records.write_bytes(records.read_bytes()[:-20])
    fields = [Field("x", "int64")]
    with pytest.raises(
        tf.errors.OpError, match=r"rows.tfrecord.*cannot be read: after record"
    ):
        rows(read_tfrecord(records, 2, fields))
    data = read_tfrecord(records, 2, fields, on_error="skip")
    assert rows(data) == [0, 1, 2, 3]
    assert "rows.tfrecord" in data.report.summary()


def test_tfrecords_are_shuffled_and_go_on(records, tmp_path):
    def data():
        fields = [Field("x", "int64")]
        return read_tfrecord(records, 2, fields, shuffle=True, seed=3).repeat(3)

    expected = rows(data())
    assert sorted(expected) == sorted(3 * list(range(5)))
    assert expected[:5] != expected[5:10]
    iterator = iter(data())
    before = [x for _ in range(4) for x in next(iterator)["x"].numpy()]
    path = tf.train.Checkpoint(iterator=iterator).save(tmp_path / "state")
    other = iter(data())
    tf.train.Checkpoint(iterator=other).restore(path)
    assert [*before, *rows(other)] == expected


def test_tfrecord_fields_must_say_what_they_are(records):
    with pytest.raises(DataError, match="name the fields"):
        read_tfrecord(records)
    with pytest.raises(ValueError, match="'x': a field of a TFRecord has a"):
        read_tfrecord(records, 1, [Field("x")])
