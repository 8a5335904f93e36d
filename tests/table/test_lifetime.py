"""A table's memory goes with the table, whatever still holds its handle."""

import gc
import time

import pytest
import tensorflow as tf

from embedra import Table, _ops


def _is_closed(handle: tf.Tensor) -> bool:
    try:
        _ops.table_size([handle])
    except tf.errors.FailedPreconditionError:
        return True
    return False


def test_using_the_handle_of_a_deleted_table_names_it():
    table = Table(2, name="short_lived")
    table.assign([1, 2], [[1.0, 2.0], [3.0, 4.0]])
    handle = table.resource_handle
    assert int(_ops.table_size([handle])[0]) == 2
    del table
    gc.collect()
    with pytest.raises(
        tf.errors.FailedPreconditionError, match="'short_lived' was deleted"
    ):
        _ops.table_size([handle])


@pytest.mark.filterwarnings("error")
def test_a_table_may_be_collected_while_a_graph_is_built():
    table = Table(2, name="in_graph")
    handle = table.resource_handle
    with tf.Graph().as_default():
        del table
        gc.collect()
    deadline = time.monotonic() + 30
    while not _is_closed(handle):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_function_that_uses_a_table_keeps_it_alive():
    look_up = tf.function(Table(2, name="kept", initializer=0.5).lookup)
    keys = tf.constant([1], tf.int64)
    look_up(keys)
    gc.collect()
    assert look_up(keys).numpy().tolist() == [[0.5, 0.5]]


def test_a_signature_outlives_the_loaded_saved_model(tmp_path):
    module = tf.Module()
    module.table = Table(2, name="exported", initializer=0.0)
    module.table.assign([7], [[1.0, 2.0]])
    module.serve = tf.function(
        lambda keys: {"rows": module.table.lookup(keys)},
        input_signature=[tf.TensorSpec([None], tf.int64, name="keys")],
    )
    tf.saved_model.save(module, tmp_path, signatures=module.serve)
    signature = tf.saved_model.load(tmp_path).signatures["serving_default"]
    gc.collect()
    rows = signature(keys=tf.constant([7], tf.int64))["rows"]
    assert rows.numpy().tolist() == [[1.0, 2.0]]
