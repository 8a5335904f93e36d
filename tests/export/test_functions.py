"""Functions are exported with the lookups in them, or refused."""

import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra.layers import Embedding
from embedra.saved_model import StockOpsError, export

from .models import IDS, SEEN, assert_same, reload, trained


@pytest.mark.parametrize("devices", [None, ["CPU:0", "CPU:0"]], ids=str)
def test_functions_that_look_up(devices, tmp_path):
    user = de.Variable(dim=2, name="user", devices=devices, initializer=0.25)
    user.upsert(SEEN, np.arange(12.0).reshape(6, 2))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64)])
    def lookups(ids):
        sparse = tf.sparse.from_dense(ids)
        return {
            "rows": de.embedding_lookup(user, ids),
            "pooled": de.embedding_lookup_sparse(user, sparse, None),
            "safe": de.safe_embedding_lookup_sparse(user, sparse),
            "direct": user.lookup(ids),
            "table": user.tables[0].lookup(ids, default=2.0),
        }

    expected = lookups(tf.constant(IDS))
    size = int(user.size())
    loaded = reload(
        lookups, tmp_path / "model", signature={"serving_default": lookups}
    )
    # In inference mode no lookup makes rows; here the default mode is TRAIN.
    answer = loaded.serve(tf.constant(IDS))
    if devices is not None:
        expected.pop("table"), answer.pop("table")
    assert set(answer) == set(expected)
    for name, value in expected.items():
        assert_same(answer[name], value)
    assert int(user.size()) == size


def test_control_flow_in_a_function(tmp_path):
    user = de.Variable(dim=2, name="user", initializer=0.25)

    def rows(ids):
        if tf.size(ids) > 2:
            return de.embedding_lookup(user, ids) + 1.0
        return de.embedding_lookup(user, ids)

    spec = tf.TensorSpec([None], tf.int64)
    loaded = reload(
        rows, tmp_path / "model", signature={"serving_default": (rows, spec)}
    )
    assert loaded.serve(tf.constant([1, 2, 3], tf.int64))[0, 0] == 1.25
    assert loaded.serve(tf.constant([1], tf.int64))[0, 0] == 0.25


def test_autograph_leaves_embedra_alone(tmp_path, caplog):
    user = de.Variable(dim=2, name="user", initializer=0.25)

    def rows(ids):
        return de.embedding_lookup(user, ids)

    spec = tf.TensorSpec([None], tf.int64)
    # TensorFlow's logger tells nobody else what it logs.
    logger = tf.get_logger()
    logger.addHandler(caplog.handler)
    try:
        export(rows, tmp_path / "m", signature={"rows": (rows, spec)})
    finally:
        logger.removeHandler(caplog.handler)
    assert "AutoGraph" not in caplog.text


@pytest.mark.parametrize("before", [True, False])
def test_tf_functions_inside_are_refused(before, tmp_path):
    layer = trained(Embedding(3))

    @tf.function
    def inner(ids):
        return layer(ids, training=False)

    spec = tf.TensorSpec([None], tf.int64)
    if before:
        inner.get_concrete_function(spec)

    def outer(ids):
        return inner(ids) + 1.0

    signature = {"serving_default": (outer, spec)}
    with pytest.raises(StockOpsError, match="Leave out that tf.function"):
        export(outer, tmp_path / "model", signature=signature)
    assert not list(tmp_path.iterdir())
    # Nothing of the attempt is left in the function.
    ids = tf.constant(SEEN)
    assert_same(inner(ids), layer(ids, training=False))


def test_changes_of_tables_are_refused(tmp_path):
    table = Embedding(3).table

    def change(ids):
        table.remove(ids)
        return table.lookup(ids)

    spec = tf.TensorSpec([None], tf.int64)
    with pytest.raises(StockOpsError, match="EmbedraTableRemove"):
        export(change, tmp_path / "m", signature={"change": (change, spec)})
