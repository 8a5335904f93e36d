"""Models that tests export, and how what is loaded is compared with them."""

import keras
import numpy as np
import tensorflow as tf

from embedra.layers import Embedding
from embedra.saved_model import export


IDS = np.array([[5, 0, -9], [7, 5, 2**62], [1, -(2**63), 2**63 - 1]])
SEEN = np.array([5, 7, 0, 2**62, -(2**63), 3])
NEW = 10**9


def trained(layer, ids=SEEN):
    """A layer whose table has rows for ids, that differ from initial ones."""
    layer(ids, training=True)
    for table in layer.table_group.tables:
        for records in table.export_chunks():
            rows = np.sin(np.arange(records.rows.size)).reshape(
                records.rows.shape
            )
            table.import_records(records._replace(rows=rows))
    return layer


def reload(model, folder, **options):
    return tf.saved_model.load(export(model, folder, **options).path)


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, tf.RaggedTensor):
        for mine, theirs in zip(
            one.nested_row_splits, other.nested_row_splits, strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
        one, other = one.flat_values, other.flat_values
    assert one.dtype == other.dtype
    tolerance = 1e-2 if one.dtype.size == 2 else 1e-6
    np.testing.assert_allclose(
        tf.cast(one, tf.float32), tf.cast(other, tf.float32), atol=tolerance
    )


def dense_model(**options):
    ids = keras.Input((None,), dtype="int64", name="ids")
    layer = trained(Embedding(3, name="table", **options))
    return keras.Model(ids, layer(ids))
