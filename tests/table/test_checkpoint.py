"""A table by itself in checkpoints and SavedModels."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.saved_model import registration

from embedra.table import Slot, Table
from numerics import assert_allclose


def _table(name="t", dim=2, **kwargs):
    table = Table(dim, name=name, **kwargs)
    table.set_slots([Slot("momentum", dim, 0.5)])
    return table


def test_tensorflow_still_has_the_registry_that_tables_need():
    # If this fails, TensorFlow has moved: see embedra/table/_registration.py.
    assert registration.get_registered_saver_name(_table()) == "embedra.Table"
    assert registration.get_registered_class("embedra.Table") is Table


def test_checkpoint_restores_all_of_a_table(tmp_path):
    table = _table()
    table.lookup(np.arange(10), insert=True)
    path = tf.train.Checkpoint(table=table).save(str(tmp_path / "ckpt"))
    other = _table("other")
    other.assign([77], [[1, 1]])
    status = tf.train.Checkpoint(table=other).restore(path)
    status.assert_consumed()
    assert other.size() == 10
    assert other.slots == table.slots
    # Keys seen or not start alike from then on.
    assert_allclose(other.lookup(range(99)), table.lookup(range(99)), rtol=0)


@pytest.mark.parametrize("count", [0, 65_536, 65_537])
def test_sizes_around_a_chunk(tmp_path, count):
    table = _table()
    table.lookup(np.arange(count), insert=True)
    path = tf.train.Checkpoint(table=table).save(str(tmp_path / "ckpt"))
    table.clear()
    table.assign([-1], [[1, 1]])
    tf.train.Checkpoint(table=table).restore(path).assert_consumed()
    assert table.size() == count


def test_missing_table_is_reported(tmp_path):
    path = tf.train.Checkpoint(old=_table()).save(str(tmp_path / "ckpt"))
    status = tf.train.Checkpoint(new=_table()).restore(path)
    with pytest.raises(AssertionError, match="Table 't'"):
        status.assert_existing_objects_matched()


def test_one_table_that_does_not_fit_leaves_all_alone(tmp_path):
    tables = {"a": _table("a"), "b": _table("b", dim=3)}
    tables["a"].assign([1], [[1, 1]])
    path = tf.train.Checkpoint(**tables).save(str(tmp_path / "ckpt"))
    others = {"a": _table("a"), "b": _table("b", dim=4)}
    with pytest.raises(ValueError, match="dim=3 in the file, 4"):
        tf.train.Checkpoint(**others).restore(path)
    assert others["a"].size() == 0


def test_saved_model_restores_a_table_with_its_slots(tmp_path):
    class Server(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = _table()
            self.table.lookup(np.arange(70_000), insert=True)

        @tf.function(input_signature=[tf.TensorSpec((None,), tf.int64)])
        def serve(self, keys):
            return self.table.lookup(keys)

    server = Server()
    tf.saved_model.save(server, str(tmp_path / "sm"))
    loaded = tf.saved_model.load(str(tmp_path / "sm"))
    keys = tf.range(100_000, dtype=tf.int64)
    assert_allclose(loaded.serve(keys), server.serve(keys), rtol=0)
    assert isinstance(loaded.table, Table)
    assert loaded.table.size() == 70_000
    assert loaded.table.slot_names == ("momentum",)


def test_saved_model_restores_in_a_graph(tmp_path):
    # As loaders without Python do it: by the traced restore function.
    table = _table(initializer=0.25)
    table.assign(range(5), np.ones((5, 2)))
    module = tf.Module()
    module.table = table
    module.serve = tf.function(
        table.lookup, input_signature=[tf.TensorSpec((None,), tf.int64)]
    )
    tf.saved_model.save(module, str(tmp_path / "sm"), module.serve)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(
            session, ["serve"], str(tmp_path / "sm")
        )
        signature = loaded.signature_def["serving_default"]
        (given,) = (t.name for t in signature.inputs.values())
        (answer,) = (t.name for t in signature.outputs.values())
        rows = session.run(answer, {given: [4, 5]})
    assert rows.tolist() == [[1, 1], [0.25, 0.25]]
