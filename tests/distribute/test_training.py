"""Tables split over ranks: N ranks on split data equal one on all data."""

import numpy as np
import pytest
import tensorflow as tf

from distribute.launching import (
    TWO_OR_THREE,
    check_passed,
    needs_mpi,
    run_ranks,
)
from embedra.distribute import SingleCommunicator, sharded_rows


@pytest.mark.distributed
@needs_mpi
@pytest.mark.parametrize("count", TWO_OR_THREE)
def test_ranks_train_as_one_does(count):
    check_passed(run_ranks(count, "training.py"), count)


def test_rows_come_in_the_order_of_the_keys_and_sum_their_gradients():
    values = tf.Variable([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    keys = tf.constant([[2, 0], [2, 2]], tf.int64)
    with tf.GradientTape() as tape:
        (rows,) = sharded_rows(
            SingleCommunicator(), [keys], lambda k: [tf.gather(values, k[0])]
        )
        loss = tf.reduce_sum(rows)
    np.testing.assert_array_equal(
        rows, [[[3, 30], [1, 10]], [[3, 30], [3, 30]]]
    )
    gradient = tf.convert_to_tensor(tape.gradient(loss, values))
    np.testing.assert_array_equal(gradient, [[1, 1], [0, 0], [3, 3]])


def test_unknown_wire_dtype_is_an_error():
    with pytest.raises(ValueError, match="wire_dtype='int8'"):
        sharded_rows(SingleCommunicator(), [], list, wire_dtype="int8")


def test_reader_must_give_rows_for_each_table():
    keys = [tf.constant([1], tf.int64)]
    with pytest.raises(ValueError, match=r"len\(read_rows\)=0"):
        sharded_rows(SingleCommunicator(), keys, lambda _: [])
