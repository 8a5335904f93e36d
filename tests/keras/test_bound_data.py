"""Models that are made of the symbolic tensors of a dataset."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
from embedra.data import make_one_shot_iterator


ROWS = 32


def dataset(batch_size=8, seed=0):
    generator = np.random.default_rng(seed)
    user = generator.integers(0, 9, ROWS)
    tags = generator.integers(0, 9, (ROWS, 3)) * generator.integers(
        0, 2, (ROWS, 3)
    )
    features = {
        "user": user,
        "tags": tf.RaggedTensor.from_tensor(tags, padding=0),
        "items": tf.sparse.from_dense(tags),
        "ad": np.array([b"a", b"b"])[user % 2],
        "number": generator.random((ROWS, 1)),
    }
    click = (user[:, None] % 2).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((features, (click, 1 - click)))
    return data.batch(batch_size)


def score(features):
    rows = [
        hb.layers.Embedding(2, combiner="sum", name=f"table_{name}")(ids)
        for name, ids in features.items()
        if name != "number"
    ]
    if "number" in features:
        rows.append(keras.ops.cast(features["number"], "float32"))
    return keras.layers.Dense(1)(keras.ops.concatenate(rows, axis=1))


def bound(chosen=("user", "tags", "items", "ad", "number"), **options):
    features, (click, _) = make_one_shot_iterator(dataset()).get_next()
    features = {name: features[name] for name in chosen}
    model = hb.keras.Model(inputs=[features], outputs=score(features))
    options = {"target_tensors": click} | options
    model.compile("sgd", "mse", **options)
    return model


def test_dense_ragged_sparse_and_string_features_train():
    losses = bound().fit(epochs=3, verbose=0).history["loss"]
    assert losses[2] < losses[0]


def test_every_epoch_reads_the_data_anew():
    model = bound()
    model.fit(epochs=2, verbose=0)
    assert int(model.optimizer.iterations) == 2 * ROWS // 8
    model.fit(epochs=3, steps_per_epoch=2, verbose=0)
    assert int(model.optimizer.iterations) == 2 * ROWS // 8 + 3 * 2


def test_fewer_steps_than_asked_for_warn_as_in_keras():
    with pytest.warns(UserWarning, match="ran out of data"):
        bound().fit(steps_per_epoch=100, verbose=0)


@pytest.mark.parametrize("names", [["tags", "user"], ["user", "items"]])
def test_a_part_of_the_features_is_chosen_by_name_everywhere(names):
    model = bound(names)
    history = model.fit(validation_data=dataset(seed=1), verbose=0).history
    # The structure of these batches is that of the model itself.
    inputs = {n: v for n, v in next(iter(dataset(ROWS, 1)))[0].items()}
    inputs = {name: inputs[name] for name in names}
    click = next(iter(dataset(ROWS, 1)))[1][0]
    expected = model.evaluate(inputs, click, batch_size=ROWS, verbose=0)
    assert history["val_loss"][0] == pytest.approx(expected, rel=1e-5)
    assert model.evaluate(dataset(seed=1), verbose=0) == pytest.approx(
        expected, rel=1e-5
    )
    np.testing.assert_allclose(
        model.predict(dataset(seed=1), verbose=0),
        model(inputs, training=False),
        rtol=1e-5,
    )


def test_targets_may_be_computed_and_are_so_once():
    features, (click, other) = make_one_shot_iterator(dataset()).get_next()
    model = hb.keras.Model(features, score(features))
    model.compile("sgd", "mse", target_tensors=[10 * click + other])
    history = model.fit(validation_data=dataset(), verbose=0).history
    data = dataset().map(lambda x, y: (x, 10 * y[0] + y[1]))
    twin = keras.Model(model.input, model.output)
    twin.compile("sgd", "mse")
    expected = twin.evaluate(data, verbose=0)
    assert history["val_loss"][0] == pytest.approx(expected, rel=1e-5)


def test_evaluate_and_predict_without_data_use_the_dataset():
    model = bound()
    features, (click, _) = next(iter(dataset(ROWS)))
    expected = model(features, training=False)
    np.testing.assert_allclose(model.predict(verbose=0), expected, rtol=1e-5)
    loss = np.mean((expected - click) ** 2)
    assert model.evaluate(verbose=0) == pytest.approx(loss, rel=1e-5)


def test_a_training_with_checkpoints_goes_on(tmp_path):
    losses = bound().fit(epochs=3, verbose=0).history["loss"]
    keras.utils.set_random_seed(20240607)
    bound().fit(epochs=1, verbose=0, checkpoint_dir=tmp_path)
    history = bound().fit(epochs=3, verbose=0, checkpoint_dir=tmp_path)
    assert history.epoch == [1, 2]
    np.testing.assert_allclose(history.history["loss"], losses[1:], rtol=1e-5)


def test_a_model_without_a_loss_needs_no_targets():
    class Penalty(keras.layers.Layer):
        def call(self, inputs):
            self.add_loss(keras.ops.mean(inputs**2))
            return inputs

    features, _ = make_one_shot_iterator(dataset()).get_next()
    model = hb.keras.Model(features, Penalty()(score(features)))
    model.compile("sgd")
    assert model.fit(epochs=2, verbose=0).epoch == [0, 1]


def test_data_that_are_given_come_first():
    model = bound(["user"])
    x, y = {"user": np.arange(4)}, np.ones((4, 1))
    model.fit(x, y, epochs=1, verbose=0)
    assert int(model.optimizer.iterations) == 1


def test_fit_without_data_says_which_input_is_of_no_dataset():
    user = keras.Input((), dtype="int64", name="user")
    model = hb.keras.Model(user, score({"user": user}))
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"`x` is None.*input 'user' of model"):
        model.fit()


@pytest.mark.parametrize("method", ["fit", "evaluate"])
def test_missing_targets_are_named(method):
    model = bound(target_tensors=None)
    with pytest.raises(ValueError, match=f"`{method}`.*no `target_tensors`"):
        getattr(model, method)(x=None)
    assert model.predict(verbose=0).shape == (ROWS, 1)


def test_targets_of_another_batch_are_named():
    _, (click, _) = make_one_shot_iterator(dataset()).get_next()
    with pytest.raises(ValueError, match=r"target '.*another batch.*'tags'"):
        bound(["tags"], target_tensors=click)


@pytest.mark.parametrize(
    "target",
    [np.ones((8, 1)), tf.ones((8, 1)), keras.Input((1,), name="label")],
    ids=["array", "tensor", "input"],
)
def test_targets_of_no_dataset_are_refused(target):
    with pytest.raises(ValueError, match=r"target '.*is of no dataset"):
        bound(["user"], target_tensors=target)


def test_a_refused_compile_changes_nothing():
    model = bound(["user"])
    with pytest.raises(ValueError, match="of no dataset"):
        model.compile("adam", "mae", target_tensors=np.ones((8, 1)))
    assert isinstance(model.optimizer, keras.optimizers.SGD)
    model.fit(verbose=0)


def test_a_subclass_is_of_no_dataset():
    class Late(hb.keras.Model):
        def call(self, inputs):
            return inputs["number"]

    features, (click, _) = make_one_shot_iterator(dataset()).get_next()
    model = Late(name="late")
    model({"number": features["number"]})
    with pytest.raises(ValueError, match="'late' was not made of inputs"):
        model.compile("sgd", "mse", target_tensors=click)


def test_targets_without_inputs_are_refused():
    with pytest.raises(ValueError, match="targets.*Give both, or none"):
        bound(["user"]).fit(None, np.ones((8, 1)))


def weighted(use_weights, weights_as=None):
    """Two numbers, labels and weights, and a model that is one of them."""
    generator = np.random.default_rng(1)
    x = generator.random((16, 2)).astype(np.float32)
    y = generator.random((16, 1)).astype(np.float32)
    weights = np.repeat(np.float32([0, 1, 5, 1]), 4)
    data = tf.data.Dataset.from_tensor_slices((x, y, weights)).batch(4)
    features, labels, third = make_one_shot_iterator(data).get_next()
    made = keras.layers.Dense(1, kernel_initializer="ones")(features)
    inputs = features
    if weights_as == "input":
        inputs = [features, third]
        made = made * keras.ops.expand_dims(third, 1)
    model = hb.keras.Model(inputs, made)
    model.compile(
        keras.optimizers.SGD(0.1),
        "mse",
        weighted_metrics=["mae"] if use_weights else None,
        target_tensors=labels,
    )
    return model, (x, y, weights)


def test_a_third_element_weighs_examples_as_in_keras():
    model, (x, y, weights) = weighted(use_weights=True)
    same = keras.models.clone_model(model)
    same.compile(keras.optimizers.SGD(0.1), "mse", weighted_metrics=["mae"])
    data = tf.data.Dataset.from_tensor_slices((x, y, weights)).batch(4)
    history = model.fit(validation_data=data, epochs=2, verbose=0).history
    expected = same.fit(data, validation_data=data, epochs=2, verbose=0).history
    for name, values in expected.items():
        assert history[name] == pytest.approx(values)
    found, plain = model.evaluate(verbose=0), same.evaluate(data, verbose=0)
    assert found == pytest.approx(plain)
    unweighted = same.evaluate(x, y, batch_size=4, verbose=0)
    assert found != pytest.approx(unweighted)
    # Batches of no weight change nothing, those of the others do.
    np.testing.assert_allclose(model.layers[-1].kernel, same.layers[-1].kernel)


def test_a_third_element_that_is_an_input_weighs_nothing():
    model, (x, y, weights) = weighted(use_weights=False, weights_as="input")
    losses = model.evaluate(verbose=0)
    predictions = model.predict(verbose=0)
    assert losses == pytest.approx(np.mean((predictions - y) ** 2), rel=1e-5)


@pytest.mark.parametrize("targets", [[], {}], ids=str)
def test_empty_targets_are_refused(targets):
    with pytest.raises(ValueError, match="there is none in it"):
        bound(["user"], target_tensors=targets)
