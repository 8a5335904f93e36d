"""What new rows are drawn from can be asked for as well as set."""

import numpy as np
import pytest

from embedra import _ops


PARAMETERS = {
    "constant": [0.5],
    "uniform": [-1.0, 2.0],
    "normal": [0.0, 0.25],
    "truncated_normal": [1.0, 0.5],
}


def answered(handle):
    name, kind, parameters, seed = (
        output.numpy() for output in _ops.table_initializer(handle)
    )
    return name.decode(), kind.decode(), parameters.tolist(), int(seed)


@pytest.mark.parametrize("kind", PARAMETERS)
def test_a_table_says_what_it_was_made_with(kind):
    handle = _ops.anonymous_table(
        name="user",
        dim=2,
        initializer=kind,
        initializer_parameters=PARAMETERS[kind],
        seed=-7,
    )
    assert answered(handle) == ("user", kind, PARAMETERS[kind], -7)


@pytest.mark.parametrize("kind", PARAMETERS)
def test_a_table_says_what_was_set(kind):
    handle = _ops.anonymous_table(name="user", dim=2, seed=1)
    _ops.table_set_initializer(
        handle, "other", kind, PARAMETERS[kind], np.int64(2**62)
    )
    assert answered(handle) == ("other", kind, PARAMETERS[kind], 2**62)


def test_a_table_that_is_set_to_an_answer_draws_the_same_rows():
    first, second = (
        _ops.anonymous_table(
            name=name,
            dim=2,
            initializer="uniform",
            initializer_parameters=[0.0, 1.0],
            seed=seed,
        )
        for name, seed in (("a", 1), ("b", 2))
    )

    def row(handle):
        return (
            _ops.table_lookup(
                [handle],
                [handle],
                [np.array([5], np.int64)],
                [np.zeros(0, np.float32)],
                dims=[2],
                dtype="float32",
                insert=False,
            )
            .rows[0]
            .numpy()
        )

    assert not np.array_equal(row(first), row(second))
    _ops.table_set_initializer(second, *_ops.table_initializer(first))
    np.testing.assert_array_equal(row(first), row(second))
