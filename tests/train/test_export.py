"""Export of a checkpoint of a TF1 graph."""

import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra import train

from .clicks import Model, logits_of


v1 = tf.compat.v1

SERVED = [0, 2, 77]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a checkpoint, and what the model says of `SERVED`."""
    folder = str(tmp_path_factory.mktemp("model"))
    with tf.Graph().as_default():
        model = Model()
        with train.monitored_session(checkpoint_dir=folder) as session:
            for _ in range(4):
                session.run(model.train)
    with tf.Graph().as_default():
        probabilities = tf.sigmoid(outputs(tf.constant(SERVED, tf.int64)))
        with train.monitored_session(
            checkpoint_dir=folder, save_checkpoint_secs=None
        ) as session:
            expected = session.run(probabilities)
    return folder, expected


def outputs(ids):
    users = de.get_variable("users", dim=2, initializer=0.1, trainable=False)
    v1.train.get_or_create_global_step()
    return logits_of(users, ids)


def signature(name="probability"):
    ids = v1.placeholder(tf.int64, [None], name="user")
    probability = tf.sigmoid(outputs(ids), name=name)
    return v1.saved_model.predict_signature_def(
        {"user": ids}, {name: probability}
    )


def serve(path, key="serving_default"):
    loaded = tf.saved_model.load(path)
    return loaded.signatures[key](user=tf.constant(SERVED, tf.int64))


@pytest.mark.parametrize("given", ["folder", "checkpoint"])
def test_exported_model_says_what_the_checkpoint_does(trained, tmp_path, given):
    folder, expected = trained
    checkpoint = folder if given == "folder" else f"{folder}/model.ckpt-4"
    path = train.export(str(tmp_path), checkpoint, signature)
    assert path.startswith(str(tmp_path))
    found = serve(path)["probability"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # The row of an id that training never saw is not that of one it has.
    assert np.ptp(found) > 0


def test_several_signatures_are_exported(trained, tmp_path):
    folder, expected = trained

    def signatures():
        with v1.variable_scope("", reuse=v1.AUTO_REUSE):
            first = signature("first")
            return {
                "serving_default": first,
                "other": signature("second"),
            }, None

    path = train.export_all(str(tmp_path), folder, signatures, as_text=True)
    for key, name in (("serving_default", "first"), ("other", "second")):
        np.testing.assert_allclose(serve(path, key)[name], expected, rtol=1e-5)


def test_only_the_chief_exports(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("EMBEDRA_RANK", "1")
    monkeypatch.setenv("EMBEDRA_WORLD_SIZE", "2")
    assert train.export(str(tmp_path), trained[0], signature) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "eval"}, r"mode 'infer' alone.*\['eval'\]"),
        ({"clear_devices": False}, "clear_devices=False"),
        ({"strip_default_attrs": False}, "strip_default_attrs=False"),
    ],
    ids=["mode", "devices", "attributes"],
)
def test_what_is_not_exported_is_an_error(
    trained, tmp_path, arguments, message
):
    with pytest.raises(ValueError, match=message):
        train.export(str(tmp_path), trained[0], signature, **arguments)


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (None, TypeError, "predict_signature_def"),
        ({}, TypeError, "predict_signature_def"),
        ({"a": 1}, TypeError, "predict_signature_def"),
        (({}, "op"), ValueError, "main op is not exported"),
    ],
    ids=["none", "empty", "number", "main_op"],
)
def test_function_that_returns_no_signature_is_an_error(
    trained, tmp_path, returned, error, message
):
    with pytest.raises(error, match=message):
        train.export_all(str(tmp_path), trained[0], lambda: returned)
    assert list(tmp_path.iterdir()) == []


def test_missing_checkpoint_is_an_error(tmp_path):
    for path in (tmp_path, tmp_path / "model.ckpt-1"):
        with pytest.raises(FileNotFoundError, match="no checkpoint at"):
            train.export(str(tmp_path), path, signature)


def test_checkpoint_of_another_model_is_explained(trained, tmp_path):
    def other(table="users"):
        ids = v1.placeholder(tf.int64, [None])
        users = de.get_variable(table, dim=2)
        with v1.variable_scope("other"):
            value = logits_of(users, ids)
        return v1.saved_model.predict_signature_def({"user": ids}, {"o": value})

    with pytest.raises(ValueError, match="other/weights is not in it"):
        train.export(str(tmp_path), trained[0], other)
    with pytest.raises(ValueError, match="Table 'people' is not in checkpoint"):
        train.export(str(tmp_path), trained[0], lambda: other("people"))
    assert list(tmp_path.iterdir()) == []
    with tf.Graph().as_default():
        v1.get_variable("other", (2,))
        v1.train.get_or_create_global_step()
        with pytest.raises(ValueError, match="not one of this model.*other"):
            train.monitored_session(checkpoint_dir=trained[0])
