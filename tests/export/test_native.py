"""native_ops=True keeps whole tables, and what trains them."""

import keras
import pytest
import tensorflow as tf

from embedra.layers import Embedding
from embedra.saved_model import export

from .models import IDS, assert_same, dense_model, reload, trained


SPEC = tf.TensorSpec([None, None], tf.int64)


class Scorer(keras.Model):
    def __init__(self):
        super().__init__()
        self.items = trained(Embedding(3, name="items", combiner="sum"))
        self.dense = keras.layers.Dense(1)

    def call(self, inputs, training=None):
        return self.dense(self.items(inputs["item"], training=training))


def test_functional_models(tmp_path):
    model = dense_model()
    exported = export(model, tmp_path / "model", native_ops=True)
    assert exported.tables == ()
    ids = tf.constant(IDS)
    loaded = tf.saved_model.load(exported.path)
    expected = model(ids, training=False)
    assert_same(loaded.serve(ids), expected)
    answer = loaded.signatures["serving_default"](ids=ids)
    assert_same(answer["output_0"], expected)


@pytest.mark.parametrize("kind", ["dense", "ragged", "sparse"])
def test_subclass_models(kind, tmp_path):
    model = Scorer()
    ids = tf.constant(IDS)
    if kind == "ragged":
        ids = tf.RaggedTensor.from_tensor(ids)
    if kind == "sparse":
        ids = tf.sparse.from_dense(ids)
    inputs = {"item": ids}
    expected = model(inputs, training=False)
    model.compile("adam", "mse")
    spec = {"item": tf.type_spec_from_value(ids)}
    loaded = reload(model, tmp_path / "model", signature=spec, native_ops=True)
    assert_same(loaded.serve(inputs), expected)


def test_loaded_variables_are_those_that_serve(tmp_path):
    model = Scorer()
    inputs = {"item": tf.constant(IDS)}
    expected = model(inputs, training=False)
    spec = {"item": SPEC}
    path = export(
        model, tmp_path / "model", signature=spec, native_ops=True
    ).path
    loaded = tf.saved_model.load(path)
    shapes = [v.shape.as_list() for v in loaded.trainable_variables]
    assert shapes == [[0, 3], [3, 1], [1]]
    loaded.trainable_variables[1].assign(2 * model.dense.kernel)
    assert_same(loaded.serve(inputs), 2 * expected)
    # Each is written once.
    written = tf.train.list_variables(f"{path}/variables/variables")
    assert sum("VARIABLE_VALUE" in name for name, _ in written) == 2


@pytest.mark.parametrize("make", [Embedding, tf.Module])
def test_layers_and_modules(make, tmp_path):
    layer = trained(Embedding(3))
    owner = layer
    if make is tf.Module:
        owner = tf.Module()
        owner.layer = layer

    def rows(ids):
        return layer(ids, training=False)

    signature = {"rows": (rows, SPEC)}
    loaded = reload(
        owner, tmp_path / "model", signature=signature, native_ops=True
    )
    ids = tf.constant(IDS)
    assert_same(loaded.rows(ids), layer(ids, training=False))


def test_tables_need_an_owner(tmp_path):
    layer = Embedding(3)

    def rows(ids):
        return layer(ids, training=False)

    signature = {"rows": (rows, SPEC)}
    for model, message in ((rows, "owns its tables"), (Scorer(), "not own")):
        with pytest.raises(ValueError, match=message):
            export(model, tmp_path / "m", signature=signature, native_ops=True)
    with pytest.raises(ValueError, match="Pass `signature`"):
        export(Scorer(), tmp_path / "m", native_ops=True)
    assert not list(tmp_path.iterdir())
