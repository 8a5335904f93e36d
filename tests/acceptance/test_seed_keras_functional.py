"""The example with which functional Keras models began, imports aside.

What it leaves to its reader (the model, the data, what is served) comes first;
`train` has the lines of the example as they stood, but for their layout.
"""

import argparse

import keras
import numpy as np
import pytest
import tensorflow

import embedra as hb
import embedra.compat.v1 as tf


class RankingModel(keras.Model):
    def __init__(self, args):
        super().__init__()
        self.tables = {
            name: hb.layers.Embedding(args.dim, combiner="mean", name=name)
            for name in args.categorical
        }
        self.tower = keras.layers.Dense(8, activation="relu")
        self.score = keras.layers.Dense(1, activation="sigmoid")

    def call(self, inputs):
        rows = [table(inputs[name]) for name, table in self.tables.items()]
        numbers = keras.ops.cast(inputs["number"], "float32")
        features = keras.ops.concatenate([*rows, numbers], axis=1)
        return self.score(self.tower(features))


def input_dataset(args, filenames, batch_size):
    (seed,) = filenames
    generator = np.random.default_rng(seed)
    rows = batch_size * args.train_max_steps
    ids = {n: generator.integers(0, 50, (rows, 2)) for n in args.categorical}
    labels = (ids["user"][:, :1] % 2).astype(np.float32)
    features = {**ids, "number": generator.random((rows, 1))}
    dataset = tf.data.Dataset.from_tensor_slices((features, labels))
    return dataset.batch(batch_size)


def loss_func(y_true, y_pred):
    return tf.reduce_mean(tf.keras.losses.binary_crossentropy(y_true, y_pred))


def placeholders(args):
    inputs = {
        name: tf.placeholder(dtype=tf.int64, shape=[None, 2], name=name)
        for name in args.categorical
    }
    inputs["number"] = tf.placeholder(tf.float64, shape=[None, 1])
    return inputs


@pytest.fixture
def args(tmp_path):
    return argparse.Namespace(
        dim=4,
        categorical=["user", "item"],
        train_batch_size=32,
        eval_batch_size=64,
        train_max_steps=20,
        eval_max_steps=5,
        epochs=1,
        output_dir=str(tmp_path / "output"),
    )


def train(args, predict_fn):
    train_filenames, val_filenames = [0], [1]
    opt = tf.train.GradientDescentOptimizer(learning_rate=2.0)

    train_dataset = input_dataset(args, train_filenames, args.train_batch_size)
    val_dataset = input_dataset(args, val_filenames, args.eval_batch_size)

    features, labels = tf.data.make_one_shot_iterator(train_dataset).get_next()
    model_output = RankingModel(args)(features)

    dcnv2_in_keras = tf.keras.Model(inputs=[features], outputs=model_output)
    dcnv2_in_keras.compile(
        loss=loss_func,
        metrics=[tf.keras.metrics.AUC()],
        optimizer=opt,
        target_tensors=labels,
        clipnorm=1.0,
        clipvalue=1.0,
    )

    history = dcnv2_in_keras.fit(
        x=None,
        y=None,
        epochs=args.epochs,
        validation_data=val_dataset,
        batch_size=args.train_batch_size,
        validation_steps=args.eval_max_steps,
        steps_per_epoch=args.train_max_steps,
        checkpoint_dir=args.output_dir,
        keep_checkpoint_max=2,
        monitor="val_auc",
        mode="max",
        save_best_only=True,
    )

    exported = dcnv2_in_keras.export_saved_model(
        args.output_dir, lambda: predict_fn(args, dcnv2_in_keras)
    )
    return dcnv2_in_keras, history, exported


def test_the_example_trains_and_keeps_the_best(args):
    args.epochs = 3
    model, history, _ = train(args, lambda args, _: placeholders(args))
    assert isinstance(model, hb.keras.Model)
    assert history.epoch == [0, 1, 2]
    logs = history.history
    assert logs["loss"][-1] < logs["loss"][0]
    (name,) = (name for name in logs if name.startswith("val_auc"))
    best = tf.train.latest_checkpoint(args.output_dir)
    place = tf.train.load_variable(best, "epoch/.ATTRIBUTES/VARIABLE_VALUE")
    assert place == 1 + int(np.argmax(logs[name]))


def test_the_example_trains_as_one_that_is_given_the_data(args):
    args.epochs = 2
    model, history, _ = train(args, lambda args, _: placeholders(args))
    keras.utils.set_random_seed(20)
    dataset = input_dataset(args, [0], args.train_batch_size)
    inputs = {
        name: keras.Input(spec.shape[1:], dtype=spec.dtype.name, name=name)
        for name, spec in dataset.element_spec[0].items()
    }
    given = hb.keras.Model(inputs, RankingModel(args)(inputs))
    given.compile("sgd", loss_func, clipnorm=1.0, clipvalue=1.0)
    given.optimizer.learning_rate = 2.0
    expected = given.fit(dataset, epochs=2, verbose=0).history["loss"]
    np.testing.assert_allclose(history.history["loss"], expected, rtol=1e-5)


def test_the_example_exports_placeholders(args):
    model, _, exported = train(args, lambda args, _: placeholders(args))
    check_served(args, model, exported, lambda served: served)


def test_the_example_exports_what_it_makes_of_placeholders(args):
    def predict_fn(args, model):
        inputs = placeholders(args)
        outputs = {"score": model(inputs), "one": tf.ones([1])}
        return tf.saved_model.predict_signature_def(inputs, outputs)

    model, _, exported = train(args, predict_fn)
    check_served(args, model, exported, lambda served: served["score"])


def check_served(args, model, exported, score):
    # Checkpoints and exports lie in one folder.
    assert tf.train.latest_checkpoint(args.output_dir).endswith("ckpt-1")
    batch = next(iter(input_dataset(args, [2], 16)))[0]
    loaded = tensorflow.saved_model.load(exported.path)
    expected = model.predict(batch, verbose=0)
    np.testing.assert_allclose(score(loaded.serve(batch)), expected, rtol=1e-5)
    signature = loaded.signatures["serving_default"]
    assert set(signature.structured_input_signature[1]) == set(batch)
