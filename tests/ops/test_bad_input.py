"""Errors name the table, what was expected and what was given."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import _ops
from ops.calls import lookup, pooled_lookup


InvalidArgument = tf.errors.InvalidArgumentError


@pytest.fixture
def user():
    return _ops.anonymous_table(name="user", dim=4)


def zeros(*shape):
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "dim"),
        ({"dim": 2, "initializer": "ones"}, "initializer"),
        (
            {
                "dim": 2,
                "initializer": "uniform",
                "initializer_parameters": [0.0],
            },
            "'item'",
        ),
        ({"dim": 2, "initializer_parameters": [1.0, 2.0, 3.0]}, "'item'"),
        ({"dim": 2, "initial_capacity": -1}, "initial_capacity"),
        ({"dim": 2, "dtype": "float64"}, "dtype"),
    ],
)
def test_bad_tables_are_refused(options, message):
    with pytest.raises((InvalidArgument, ValueError), match=message):
        _ops.anonymous_table(name="item", **options)


def test_another_width_or_dtype_names_both(user):
    with pytest.raises(InvalidArgument, match=r"'user'.*dim=4.*dim=5"):
        lookup([user], [[1]], dims=[5])
    with pytest.raises(InvalidArgument, match=r"'user'.*float.*bfloat16"):
        lookup([user], [[1]], dims=[4], dtype="bfloat16")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"dim": 3}, r"'t'.*dim=2.*dim=3"),
        ({"dim": 2, "dtype": "float16"}, r"'t'.*dtype=float.*dtype=half"),
    ],
)
def test_a_named_table_cannot_be_reused_in_another_form(other, message):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        first = _ops.table(shared_name="t", name="t", dim=2)
        session.run(_ops.table_size([first]))
        second = _ops.table(shared_name="t", name="t", **other)
        with pytest.raises(InvalidArgument, match=message):
            session.run(_ops.table_size([second]))


def test_named_tables_are_shared_by_name():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tables = [
            _ops.table(shared_name=name, name="t", dim=2) for name in "aab"
        ]
        session.run(lookup(tables[:1], [[1, 2]], dims=[2]).rows)
        sizes = [session.run(_ops.table_size([table])) for table in tables]
    assert sizes == [[2], [2], [0]]


def test_default_rows_must_be_rows(user):
    with pytest.raises(
        InvalidArgument, match=r"'user'.*`default_rows`.*\[4\].*\[3\]"
    ):
        lookup([user], [[1]], dims=[4], insert=False, default=[1, 2, 3])


def test_keys_must_be_int64(user):
    with pytest.raises((InvalidArgument, TypeError, ValueError)):
        lookup([user], [tf.constant([1.5])], dims=[4])


def test_rows_must_fit_the_keys(user):
    with pytest.raises(
        InvalidArgument, match=r"'user'.*`rows`.*\[2,4\].*\[2,3\]"
    ):
        _ops.table_assign([user], [[1, 2]], [zeros(2, 3)], dims=[4])
    with pytest.raises(
        InvalidArgument, match=r"'user'.*`deltas`.*\[2,4\].*\[1,4\]"
    ):
        _ops.table_accumulate([user], [[1, 2]], [zeros(1, 4)], dims=[4])


def test_gradients_must_fit_the_positions(user):
    with pytest.raises(
        InvalidArgument, match=r"'user'.*`grads`.*\[2,4\].*\[3,4\]"
    ):
        _ops.table_update(
            [user], [[0, 1]], [zeros(3, 4)], 0.1, 1, optimizer="sgd"
        )
    with pytest.raises(InvalidArgument, match=r"'user'.*`positions`.*rank 1"):
        _ops.table_accumulate_gradients(user, [[0]], zeros(1, 4))


def test_unknown_optimizers_are_refused(user):
    with pytest.raises(InvalidArgument, match=r"rmsprop.*'lamb'"):
        _ops.table_update([user], [[]], [zeros(0, 4)], 0.1, 1, optimizer="lamb")


def test_scalars_must_be_scalars(user):
    with pytest.raises(InvalidArgument, match=r"`step`.*scalar.*\[1\]"):
        _ops.table_set_step(user, [1])
    with pytest.raises(InvalidArgument, match=r"`capacity`.*scalar"):
        _ops.table_reserve(user, [1])


@pytest.mark.parametrize(
    "splits", [[], [0], [1, 2], [0, 3], [0, 2, 1, 2], [0, -1, 2]]
)
def test_row_splits_must_cover_the_keys(user, splits):
    with pytest.raises(InvalidArgument, match=r"'user'.*`row_splits`.*2"):
        pooled_lookup([user], [[1, 2]], [np.array(splits, np.int64)], dims=[4])


def test_weights_must_fit_the_keys(user):
    with pytest.raises(
        InvalidArgument, match=r"'user'.*`weights`.*\[2\].*\[3\]"
    ):
        pooled_lookup([user], [[1, 2]], [[0, 2]], [zeros(3)], dims=[4])


def test_slots_must_exist(user):
    _ops.table_set_slots(user, ["m"], [4], [0.0])
    with pytest.raises(InvalidArgument, match=r"'user'.*'v'.*m:4"):
        _ops.table_read_records(user, [0], ["v"], dim=4)
    with pytest.raises(InvalidArgument, match=r"'user'.*'m' of width 1.*m:4"):
        _ops.table_write_records(
            user,
            [0],
            zeros(1, 4),
            [zeros(1, 1)],
            ["m"],
            dim=4,
            slot_widths=[1],
        )


def test_slots_must_have_the_width_of_rows_or_one(user):
    with pytest.raises(InvalidArgument, match="'user'"):
        _ops.table_set_slots(user, ["m"], [3], [0.0])


def test_imported_records_must_fit(user):
    none = np.zeros(0, np.int64)
    with pytest.raises(InvalidArgument, match=r"'user'.*`rows`.*\[2,4\]"):
        _ops.table_import(user, [1, 2], zeros(2, 5), zeros(0, 0), none, none)
    with pytest.raises(InvalidArgument, match=r"'user'.*`slots`.*\[2,0\]"):
        _ops.table_import(user, [1, 2], zeros(2, 4), zeros(2, 3), none, none)
    with pytest.raises(InvalidArgument, match=r"'user'.*`frequencies`"):
        _ops.table_import(user, [1, 2], zeros(2, 4), zeros(0, 0), [1], none)


def test_export_needs_a_valid_cursor_and_chunk(user):
    for cursor, chunk in [(-1, 5), (0, 0)]:
        with pytest.raises(InvalidArgument, match=r"'user'.*Received"):
            _ops.table_export(user, cursor, chunk, dtype="float32", dim=4)


def test_the_initializer_must_be_known(user):
    with pytest.raises(InvalidArgument, match=r"truncated_normal.*'he'"):
        _ops.table_set_initializer(user, "user", "he", [1.0], 0)


def test_a_resource_of_another_kind_is_refused():
    variable = tf.Variable(1.0)
    with pytest.raises(InvalidArgument):
        _ops.table_size([variable.handle])
