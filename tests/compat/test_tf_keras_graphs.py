"""Graphs of TensorFlow 1 with models of tf_keras, by `embedra.compat.v1`."""

import contextlib

import numpy as np
import pytest
import tensorflow
import tf_keras

import embedra as hb
import embedra.compat.v1 as tf
from embedra import dynamic_embedding as de


ROWS, BATCH = 64, 16


@contextlib.contextmanager
def graph():
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(20)
        yield session


def dataset():
    generator = np.random.default_rng(0)
    user = generator.integers(0, 20, (ROWS, 2))
    features = {"user": user, "number": generator.random((ROWS, 1))}
    labels = (user[:, :1] % 2).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((features, labels))
    return data.batch(BATCH).repeat()


def score(features):
    rows = de.keras.legacy.layers.SquashedEmbedding(4, name="users")(
        features["user"]
    )
    number = tf_keras.layers.Lambda(lambda x: tf.cast(x, tf.float32))(
        features["number"]
    )
    joined = tf_keras.layers.Concatenate()([rows, number])
    return tf_keras.layers.Dense(1, activation="sigmoid")(joined)


def bound_model(opt):
    features, labels = tf.data.make_one_shot_iterator(dataset()).get_next()
    features = {
        name: tf_keras.Input(tensor=tensor, name=name)
        for name, tensor in features.items()
    }
    model = tf_keras.Model(inputs=features, outputs=score(features))
    model.compile(
        hb.DynamicEmbeddingOptimizer(opt),
        "binary_crossentropy",
        target_tensors=labels,
    )
    return model


def losses(model, epochs=3):
    steps = ROWS // BATCH
    history = model.fit(
        x=None, y=None, epochs=epochs, steps_per_epoch=steps, verbose=0
    )
    return history.history["loss"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.AdagradOptimizer(0.5),
        lambda: tf_keras.optimizers.legacy.Adagrad(0.5),
    ],
    ids=["tf.train", "tf_keras"],
)
def test_a_functional_model_on_an_iterator_trains(make):
    with graph():
        found = losses(bound_model(make()))
    assert found[0] > found[1] > found[2]


# tf_keras warns of what it does itself.
@pytest.mark.filterwarnings("ignore:`Model.state_updates`:UserWarning")
def test_a_saver_keeps_its_tables(tmp_path):
    with graph() as session:
        model = bound_model(tf.train.AdagradOptimizer(0.5))
        losses(model)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
        expected = model.evaluate(steps=ROWS // BATCH, verbose=0)
    assert dict(tf.train.list_variables(path))["users/rows"] == [20, 4]
    with graph() as session:
        model = bound_model(tf.train.AdagradOptimizer(0.5))
        model.evaluate(steps=1, verbose=0)  # initializes variables
        tf.train.Saver().restore(session, path)
        # The iterator is one batch ahead, and the data are repeated.
        found = model.evaluate(steps=ROWS // BATCH, verbose=0)
    assert found == pytest.approx(expected, rel=1e-5)


def eager_model(optimizer):
    inputs = {
        "user": tf_keras.Input((2,), dtype="int64", name="user"),
        "number": tf_keras.Input((1,), dtype="float64", name="number"),
    }
    model = tf_keras.Model(inputs, score(inputs))
    model.compile(
        hb.DynamicEmbeddingOptimizer(optimizer), "binary_crossentropy"
    )
    return model


def test_an_eager_model_keeps_checkpoints_and_exports(tmp_path):
    model = eager_model(tf_keras.optimizers.Adagrad(0.5, clipnorm=1.0))
    found = losses_of_data(model)
    assert found[0] > found[2]
    checkpoint = tensorflow.train.Checkpoint(
        model=model, optimizer=model.optimizer
    )
    path = checkpoint.save(str(tmp_path / "ckpt"))
    batch = next(iter(dataset()))[0]
    expected = model.predict(batch, verbose=0)
    losses_of_data(model)
    checkpoint.restore(path).assert_existing_objects_matched()
    np.testing.assert_allclose(model.predict(batch, verbose=0), expected)

    @tensorflow.autograph.experimental.do_not_convert
    def serve(features):
        return model(features, training=False)

    specs = {
        "user": tensorflow.TensorSpec([None, 2], tf.int64),
        "number": tensorflow.TensorSpec([None, 1], tf.float64),
    }
    exported = hb.saved_model.export(
        serve, tmp_path / "export", signature=specs
    )
    loaded = tensorflow.saved_model.load(exported.path)
    np.testing.assert_allclose(loaded.serve(batch), expected, rtol=1e-5)


def test_an_optimizer_of_tf1_trains_an_eager_model():
    found = losses_of_data(eager_model(tf.train.AdagradOptimizer(0.5)))
    assert found[0] > found[2]


def test_keras_files_load_and_saved_models_serve(tmp_path):
    ids = tf_keras.Input((2,), dtype="int64")
    rows = de.keras.legacy.layers.SquashedEmbedding(4, name="users")(ids)
    model = tf_keras.Model(ids, tf_keras.layers.Dense(1)(rows))
    known = np.array([[1, 2], [3, 1]])
    model.compile(
        hb.DynamicEmbeddingOptimizer(tf_keras.optimizers.Adagrad(0.5)), "mse"
    )
    model.fit(known, np.ones((2, 1)), verbose=0)
    expected = model.predict(known, verbose=0)
    model.save(tmp_path / "m.keras")
    again = tf_keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again.predict(known, verbose=0), expected)
    model.save(tmp_path / "m", save_format="tf")
    served = tensorflow.saved_model.load(str(tmp_path / "m"))
    answer = served(tensorflow.constant(known), training=False)
    np.testing.assert_allclose(answer, expected, rtol=1e-6)


def test_what_fit_of_keras_3_has_is_not_in_that_of_tf_keras(tmp_path):
    model = eager_model(tf_keras.optimizers.Adagrad(0.5))
    with pytest.raises(TypeError, match="checkpoint_dir"):
        model.fit(dataset(), steps_per_epoch=1, checkpoint_dir=str(tmp_path))
    with pytest.raises(TypeError, match="takes a class"):
        hb.wraps(model)


def losses_of_data(model):
    history = model.fit(
        dataset(), epochs=3, steps_per_epoch=ROWS // BATCH, verbose=0
    )
    return history.history["loss"]
