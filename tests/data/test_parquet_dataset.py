"""Parquet files as datasets: what each kind of column becomes."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import tensorflow as tf

from embedra.data import DataError, Field, ParquetDataset


def column(data, name):
    """A column of all batches, as Python values."""
    parts = [batch[name] for batch in data]
    if isinstance(parts[0], tf.RaggedTensor):
        return [row for part in parts for row in part.to_list()]
    return np.concatenate([part.numpy() for part in parts]).tolist()


def read(path, *fields, batch_size=7, **options):
    data = ParquetDataset(path, batch_size, fields or None, **options)
    name = fields[0].name if isinstance(fields[0], Field) else fields[0]
    return column(data, name)


KINDS = {
    **{f"int{n}": getattr(pa, f"int{n}")() for n in (8, 16, 32, 64)},
    **{f"uint{n}": getattr(pa, f"uint{n}")() for n in (8, 16, 32, 64)},
    **{f"float{n}": getattr(pa, f"float{n}")() for n in (16, 32, 64)},
}


@pytest.mark.parametrize("name", KINDS)
def test_numbers_keep_their_type(write, name):
    path = write(x=pa.array([0, 1, 100], KINDS[name]))
    data = ParquetDataset(path, 2)
    assert data.element_spec["x"] == tf.TensorSpec([None], name)
    assert column(data, "x") == [0, 1, 100]


def test_largest_integers_survive(write):
    path = write(
        u=pa.array([2**64 - 1], pa.uint64()), i=pa.array([-(2**63)], pa.int64())
    )
    assert read(path, "u") == [2**64 - 1]
    assert read(path, "i") == [-(2**63)]


def test_strings_bytes_and_dictionaries_become_strings(write):
    values = ["", "a", "\u00e9t\u00e9", "a\0"]
    raw = [text.encode() for text in values]
    path = write(
        text=pa.array(values),
        large=pa.array(values, pa.large_string()),
        binary=pa.array([*raw[:3], b"\xff\0"]),
        words=pa.array(values).dictionary_encode(),
    )
    for name in ("text", "large", "words"):
        assert read(path, name, batch_size=3) == raw
    assert read(path, "binary") == [*raw[:3], b"\xff\0"]


def test_booleans_and_times(write):
    path = write(
        yes=pa.array([True, False, True]),
        day=pa.array([datetime.date(1970, 1, n) for n in (1, 2, 3)]),
        time=pa.array([0, 1, 2], pa.timestamp("us", "UTC")),
    )
    data = ParquetDataset(path, 2)
    assert data.element_spec["yes"].dtype == tf.bool
    assert column(data, "yes") == [True, False, True]
    assert column(data, "day") == [0, 1, 2]
    assert column(data, "time") == [0, 1, 2]


def test_decimals_and_structs_are_refused_with_the_remedy(write):
    path = write(price=pa.array([decimal.Decimal("1.5")]))
    with pytest.raises(
        DataError, match=r"rows\.parquet: column 'price' .*decimal.*float64"
    ):
        ParquetDataset(path)
    path = write(both=pa.array([{"a": 1}]))
    with pytest.raises(DataError, match="column 'both' has type struct"):
        ParquetDataset(path)


def test_declared_types(write):
    path = write(i=pa.array([1, 2, 3]), f=pa.array([0.5, 1.5, 2.5]))
    assert read(path, Field("i", "float32")) == [1.0, 2.0, 3.0]
    assert read(path, Field("i", tf.int8)) == [1, 2, 3]
    assert read(path, Field("f", tf.float32)) == [0.5, 1.5, 2.5]
    with pytest.raises(DataError, match="'f' has type double, which is not"):
        ParquetDataset(path, 2, [Field("f", tf.int64)])


def test_number_too_large_for_its_declared_type_is_named(write):
    path = write(group=2, x=pa.array([1, 2, 3, 300, -1]))
    field = Field("x", tf.uint8)
    with pytest.raises(
        tf.errors.OpError,
        match="row group 1, row 1: column 'x' holds 300, which uint8",
    ):
        read(path, field)
    data = ParquetDataset(path, 3, [field], on_error="skip")
    assert column(data, "x") == [1, 2, 3]
    assert data.report.skipped_rows == 2
    assert data.report.rows == 3
    assert "row group 2, row 0: column 'x' holds -1" in data.report.summary()


def test_p01_nulls_at_edges_of_row_groups_take_the_default(write):
    values = [None, 1, 2, None, None, None, 3, 4, None]
    path = write(
        group=3,
        i=pa.array(values, pa.int64()),
        f=pa.array(values, pa.float32()),
        s=pa.array([v and str(v) for v in values]),
        none=pa.nulls(9, pa.int32()),
        nothing=pa.nulls(9),
    )
    assert read(path, Field("i", default=-7)) == [
        -7 if v is None else v for v in values
    ]
    assert read(path, Field("f", default=0.5))[:3] == [0.5, 1, 2]
    assert read(path, Field("s", default="?"))[:2] == [b"?", b"1"]
    assert read(path, Field("none", default=3)) == [3] * 9
    assert read(path, Field("nothing", "int64", default=3)) == [3] * 9


def test_p01_nulls_can_be_masked(write):
    path = write(x=pa.array([None, 2.0, None]))
    data = ParquetDataset(path, 2, [Field("x", mask=True)])
    assert data.element_spec["x_present"] == tf.TensorSpec([None], tf.bool)
    assert column(data, "x_present") == [False, True, False]
    assert column(data, "x") == [0, 2, 0]


@pytest.mark.parametrize(
    ("at", "group", "unit", "row"),
    [(0, 5, 0, 0), (4, 5, 0, 4), (5, 5, 1, 0), (69_999, None, 0, 69_999)],
)
def test_p01_undeclared_null_is_named(write, at, group, unit, row):
    values = np.arange(70_000 if group is None else 11)
    path = write(group=group, x=pa.array(values, mask=values == at))
    with pytest.raises(
        tf.errors.OpError,
        match=f"rows.parquet: row group {unit}, row {row}: column 'x' is null",
    ):
        read(path, "x", batch_size=8192)


LISTS = [[1, 2], [], None, [3], [], [4, 5, 6], None]


def test_p02_lists_become_ragged_and_null_lists_are_empty(write):
    words = [None if row is None else [str(v) for v in row] for row in LISTS]
    path = write(
        group=3,
        i=pa.array(LISTS, pa.list_(pa.int64())),
        f=pa.array(LISTS, pa.large_list(pa.float32())),
        s=pa.array(words, pa.list_(pa.string())),
        empty=pa.array([[]] * 7, pa.list_(pa.int64())),
    )
    data = ParquetDataset(path, 2)
    assert data.element_spec["s"] == tf.RaggedTensorSpec(
        [None, None], tf.string
    )
    expected = [row or [] for row in LISTS]
    assert column(data, "i") == expected
    assert column(data, "f") == expected
    assert column(data, "s") == [[b"%d" % v for v in row] for row in expected]
    assert column(data, "empty") == [[]] * 7
    splits = next(iter(data))["i"].row_splits
    assert splits.dtype == tf.int64
    assert splits.numpy().tolist() == [0, 2, 2]


def test_p02_lists_of_lists(write):
    rows = [[[1], []], [], None, [[2, 3], None, [4]]]
    path = write(x=pa.array(rows, pa.list_(pa.list_(pa.int32()))))
    data = ParquetDataset(path, 3)
    assert data.element_spec["x"].ragged_rank == 2
    assert column(data, "x") == [[[1], []], [], [], [[2, 3], [], [4]]]


def test_p02_null_within_a_list(write):
    path = write(x=pa.array([[1], [2, None], []]))
    assert read(path, Field("x", default=9)) == [[1], [2, 9], []]
    with pytest.raises(tf.errors.OpError, match="row 1: column 'x' is null"):
        read(path, "x")
    assert read(path, "x", on_error="skip") == [[1], []]


def test_p02_lists_padded_to_the_longest_of_the_batch(write):
    path = write(x=pa.array(LISTS, pa.list_(pa.int64())))
    field = Field("x", default=-1)
    data = ParquetDataset(path, 4, [field], to_dense=True)
    assert data.element_spec["x"] == tf.TensorSpec([None, None], tf.int64)
    first, second = (batch["x"].numpy().tolist() for batch in data)
    assert first == [[1, 2], [-1, -1], [-1, -1], [3, -1]]
    assert second == [[-1] * 3, [4, 5, 6], [-1] * 3]


def test_p09_fixed_lists_become_dense(write):
    pairs = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    path = write(
        fixed=pa.array(pairs, pa.list_(pa.float32(), 2)),
        any=pa.array(pairs, pa.list_(pa.float32())),
        square=pa.array([[[1, 2], [3, 4]]] * 3),
    )
    data = ParquetDataset(
        path,
        2,
        ["fixed", Field("any", shape=[2]), Field("square", shape=[2, 2])],
    )
    assert data.element_spec["fixed"] == tf.TensorSpec([None, 2], tf.float32)
    assert data.element_spec["square"].shape == [None, 2, 2]
    assert column(data, "fixed") == pairs
    assert column(data, "any") == pairs
    assert column(data, "square") == [[[1, 2], [3, 4]]] * 3


def test_p09_wrong_length_is_named_or_left_out(write):
    path = write(group=2, x=pa.array([[1, 2], [3, 4], [5], [6, 7], None]))
    field = Field("x", shape=[2])
    with pytest.raises(
        tf.errors.OpError,
        match=r"row group 1, row 0: column 'x' has 1 values, expected \[2\]",
    ):
        read(path, field)
    assert read(path, field, on_error="skip") == [[1, 2], [3, 4], [6, 7]]


def test_p09_wrong_inner_length_is_no_square(write):
    path = write(x=pa.array([[[1, 2], [3, 4]], [[1, 2, 3], [4]]]))
    field = Field("x", shape=[2, 2])
    assert read(path, field, on_error="skip") == [[[1, 2], [3, 4]]]


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        ("right", [[1, 2, 3], [5, -1, -1], [-1, -1, -1]]),
        ("left", [[2, 3, 4], [-1, -1, 5], [-1, -1, -1]]),
    ],
)
def test_p09_padded_and_cut_at_either_end(write, length, expected):
    path = write(x=pa.array([[1, 2, 3, 4], [5], None]))
    field = Field("x", shape=[3], length=length, default=-1)
    data = ParquetDataset(path, 2, [field], drop_remainder=True)
    assert data.element_spec["x"].shape == [2, 3]
    assert read(path, field) == expected


def test_transform_of_a_field_is_in_the_dataset(write):
    path = write(x=pa.array([1, 2, 3]))
    field = Field("x", transform=lambda x: tf.cast(x, tf.float32) / 2)
    data = ParquetDataset(path, 2, [field])
    assert data.element_spec["x"].dtype == tf.float32
    assert column(data, "x") == [0.5, 1.0, 1.5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": [0]}, "positive"),
        ({"shape": [2], "ragged_rank": 1}, "either ragged"),
        ({"length": "right"}, r"shape=\[n\]"),
        ({"length": "middle", "shape": [2]}, "'exact', 'right' or 'left'"),
        ({"mask": True, "shape": [2]}, "scalars"),
    ],
)
def test_fields_that_contradict_themselves_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Field("x", **arguments)


def test_depth_of_lists_that_was_not_asked_for_is_refused(write):
    path = write(x=pa.array([[1]]))
    with pytest.raises(DataError, match="'x' has type list.* 2 levels"):
        ParquetDataset(path, 1, [Field("x", ragged_rank=2)])
    with pytest.raises(DataError, match=r"rows of shape \[\]|0 levels"):
        ParquetDataset(path, 1, [Field("x", shape=[])])
