"""Exports of what functions make of placeholders."""

from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
import embedra.compat.v1 as tf1


IDS = np.array([[1, 2], [3, 9]])


class Receiver(NamedTuple):
    features: dict
    receiver_tensors: dict


@pytest.fixture
def model():
    class Network(hb.keras.Model):
        def __init__(self):
            super().__init__()
            self.users = hb.layers.Embedding(4, combiner="sum", name="users")
            self.score = keras.layers.Dense(1)

        def call(self, inputs):
            return self.score(self.users(inputs["user"]))

    model = Network()
    model.compile("adam", "mse")
    model.fit({"user": IDS[:1]}, np.ones((1, 1)), verbose=0)
    return model


def dense():
    return {"user": tf1.placeholder(tf.int64, [None, 2], name="user")}


def sparse():
    user = tf1.sparse_placeholder(tf.int64, [None, None], name="user")
    return {"user": user}


def ragged():
    return {"user": tf1.ragged.placeholder(tf.int64, 1, (), name="user")}


def defined(model, inputs):
    outputs = {"score": model(inputs), "first": model(inputs)[:1]}
    return tf1.saved_model.predict_signature_def(inputs, outputs)


KINDS = pytest.mark.parametrize(
    ("make", "feed"),
    [
        (dense, tf.constant),
        (sparse, tf.sparse.from_dense),
        (ragged, tf.RaggedTensor.from_tensor),
    ],
    ids=["dense", "sparse", "ragged"],
)


def exported(model, folder, fn):
    """Exports what a function says; returns the loaded object."""
    return tf.saved_model.load(model.export_saved_model(folder, fn).path)


@KINDS
def test_the_model_is_called_on_placeholders(make, feed, model, tmp_path):
    loaded = exported(model, tmp_path, make)
    expected = model.predict({"user": IDS}, verbose=0)
    served = loaded.serve({"user": feed(IDS)})
    np.testing.assert_allclose(served, expected, rtol=1e-5)


@KINDS
def test_outputs_are_those_of_a_signature_def(make, feed, model, tmp_path):
    loaded = exported(model, tmp_path, lambda: defined(model, make()))
    expected = model.predict({"user": IDS}, verbose=0)
    served = loaded.serve({"user": feed(IDS)})
    assert set(served) == {"score", "first"}
    np.testing.assert_allclose(served["score"], expected, rtol=1e-5)
    np.testing.assert_allclose(served["first"], expected[:1], rtol=1e-5)


def test_several_signature_defs_are_served_by_name(model, tmp_path):
    def fn():
        return {
            "serving_default": defined(model, dense()),
            "of_sparse": defined(model, sparse()),
        }

    loaded = exported(model, tmp_path, fn)
    assert set(loaded.signatures) == {"serving_default", "of_sparse"}
    of_sparse = loaded.signatures["of_sparse"]
    assert set(of_sparse.structured_input_signature[1]) == {
        "user_values",
        "user_indices",
        "user_dense_shape",
    }


def test_features_of_a_receiver_go_to_the_model(model, tmp_path):
    def fn():
        ids = tf1.placeholder(tf.string, [None], name="ids")
        user = tf.strings.to_number(tf.strings.split(ids), tf.int64)
        return Receiver({"user": user}, {"ids": ids})

    loaded = exported(model, tmp_path, fn)
    served = loaded.serve({"ids": tf.constant(["1 2", "3 9"])})
    expected = model.predict({"user": IDS}, verbose=0)
    np.testing.assert_allclose(served, expected, rtol=1e-5)


def test_a_function_with_a_signature_may_be_returned(model, tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.int64)])
    def double(ids):
        return 2 * model({"user": ids}, training=False)

    loaded = exported(model, tmp_path, lambda: double)
    expected = 2 * model.predict({"user": IDS}, verbose=0)
    np.testing.assert_allclose(loaded.serve(IDS), expected, rtol=1e-5)


def test_a_model_that_is_not_built_is_built_by_it(tmp_path):
    class Late(hb.keras.Model):
        def __init__(self):
            super().__init__()
            self.score = keras.layers.Dense(1)

        def call(self, inputs):
            return self.score(inputs)

    model = Late()

    def fn():
        inputs = {"x": tf1.placeholder(tf.float32, [None, 3])}
        outputs = {"score": model(inputs["x"])}
        return tf1.saved_model.predict_signature_def(inputs, outputs)

    loaded = exported(model, tmp_path, fn)
    x = np.ones((2, 3), np.float32)
    served = loaded.serve({"x": x})["score"]
    np.testing.assert_allclose(served, model(x), rtol=1e-5)


def test_an_export_changes_no_table(model, tmp_path):
    model.export_saved_model(tmp_path, lambda: defined(model, dense()))
    assert model.users.size() == 2


def test_tensors_that_are_no_placeholders_are_refused(model, tmp_path):
    with pytest.raises(ValueError, match=r"is no placeholder.*signature_def"):
        model.export_saved_model(
            tmp_path, lambda: {"score": model(dense()) + 1.0}
        )


def test_placeholders_of_any_shape_are_refused_by_name(model, tmp_path):
    with pytest.raises(ValueError, match=r"'user' may have any shape.*shape="):
        model.export_saved_model(
            tmp_path,
            lambda: {"user": tf1.sparse_placeholder(tf.int64, name="user")},
        )
