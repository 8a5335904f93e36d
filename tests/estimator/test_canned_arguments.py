"""Arguments and labels of canned models: what they take and refuse."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import estimator as lib, feature_column as fc

from .canned import (
    AGE,
    BINARY,
    QUIET,
    USER,
    combined,
    config,
    deep,
    inputs,
    linear,
    predicted,
)


v1 = tf.compat.v1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: linear(n_classes=1), ValueError, "n_classes"),
        (
            lambda: linear(label_vocabulary=["a"]),
            ValueError,
            "n_classes=2 different",
        ),
        (
            lambda: linear(label_vocabulary=["a", "a"]),
            ValueError,
            "n_classes=2 different",
        ),
        (lambda: linear(label_vocabulary="ab"), TypeError, "list of strings"),
        (lambda: linear(loss_reduction="none"), ValueError, "loss_reduction"),
        (lambda: linear(weight_column=3), TypeError, "weight_column"),
        (lambda: linear(optimizer="Adan"), ValueError, "'Adan'"),
        (lambda: linear(optimizer=0.1), TypeError, "Received: 0.1"),
        (lambda: linear(sparse_combiner="max"), ValueError, "'max'"),
        (lambda: lib.LinearClassifier([]), ValueError, "at least one column"),
        (lambda: lib.LinearClassifier(AGE), TypeError, "list of feature"),
        (lambda: lib.LinearClassifier(["age"]), TypeError, "list of feature"),
        (
            lambda: lib.LinearRegressor([AGE], label_dimension=0),
            ValueError,
            "label_dimension",
        ),
        (lambda: lib.DNNClassifier([], [AGE]), ValueError, "hidden_units"),
        (lambda: lib.DNNClassifier(4, [AGE]), ValueError, "hidden_units"),
        (lambda: lib.DNNClassifier([0], [AGE]), ValueError, "hidden_units"),
        (lambda: deep(dropout=1.0), ValueError, "`dropout`"),
        (lambda: deep(activation_fn="relu"), TypeError, "`activation_fn`"),
        (lambda: combined(dnn_hidden_units=None), ValueError, "dnn_hidden"),
        (lambda: combined(dnn_dropout=-1), ValueError, "dnn_dropout"),
        (lambda: combined(linear_optimizer="x"), ValueError, "linear_optim"),
        (lib.DNNLinearCombinedClassifier, ValueError, "at least one column"),
        (lambda: linear(n_classes=True), ValueError, "n_classes"),
        (lambda: linear(loss_reduction=["sum"]), ValueError, "loss_reduction"),
        (lambda: lib.DNNClassifier([True], [AGE]), ValueError, "hidden_units"),
        (lambda: lib.DNNClassifier([4], [USER]), ValueError, "must be dense"),
        (lambda: deep(dropout="half"), ValueError, "`dropout`"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("labels", "arguments", "message"),
    [
        (None, {}, "needs labels"),
        ([[0, 1]] * 4, {}, r"shape \(batch, 1\)"),
        (["a", "b", "a", "b"], {}, "label_vocabulary"),
        (BINARY, {"label_vocabulary": ["a", "b"]}, "must be strings"),
        (BINARY, {"weight_column": "word"}, "Feature 'word'"),
    ],
)
def test_labels_of_a_wrong_kind_are_refused(
    tmp_path, labels, arguments, message
):
    estimator = linear(config=config(tmp_path), **arguments)
    with pytest.raises(ValueError, match=message):
        estimator.train(inputs(labels, word=["a"] * 4), steps=1)
    assert estimator.latest_checkpoint() is None


@pytest.mark.parametrize(
    ("labels", "arguments", "message"),
    [
        ([0, 1, 2, 0], {}, "from 0 to 1"),
        ([0, 1, -1, 0], {}, "from 0 to 1"),
        ([0.0, 1.0, 1.5, 0.0], {}, "from 0 to 1"),
        ([0.0, 1.0, 1.5, 0.0], {"n_classes": 3}, "whole numbers"),
        (
            ["a", "b", "c", "b"],
            {"label_vocabulary": ["a", "b"]},
            "in label_vocabulary=",
        ),
    ],
)
def test_labels_of_no_class_end_training(tmp_path, labels, arguments, message):
    estimator = linear(config=config(tmp_path), **arguments)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        estimator.train(inputs(labels), steps=1)


def test_a_function_that_makes_no_optimizer_is_named(tmp_path):
    estimator = linear(config=config(tmp_path), optimizer=lambda: "Adam")
    with pytest.raises(TypeError, match="`optimizer` must be"):
        estimator.train(inputs(BINARY), steps=1)


def test_features_must_have_names(tmp_path):
    estimator = linear(config=config(tmp_path))
    with pytest.raises(TypeError, match="dict by name"):
        estimator.train(lambda: (tf.constant([1.0]), tf.constant([1])), steps=1)


def test_strings_are_no_numbers_to_learn(tmp_path):
    estimator = lib.LinearRegressor([USER], config=config(tmp_path))
    with pytest.raises(ValueError, match="Labels must be numbers"):
        estimator.train(inputs(["1", "2", "3", "4"]), steps=1)


@pytest.mark.parametrize(
    "give",
    [
        lambda: np.array(BINARY),
        lambda: BINARY,
        lambda: v1.placeholder_with_default(tf.constant(BINARY), None),
        lambda: tf.constant([[label] for label in BINARY], tf.float16),
    ],
    ids=["array", "list", "unknown_rank", "float16"],
)
def test_labels_may_be_of_any_dense_kind(tmp_path, give):
    estimator = linear(config=config(tmp_path))
    estimator.train(lambda: (inputs()(), give()), steps=1)
    bias = "linear/linear_model/bias_weights"
    assert estimator.get_variable_value(bias) == pytest.approx(0.0, abs=1e-6)


def test_two_classes_may_be_shared(tmp_path):
    estimator = linear(config=config(tmp_path))
    shares = np.array([0.1, 0.9, 1.0, 0.25], np.float32)
    estimator.train(inputs(shares), steps=2)
    found = estimator.evaluate(inputs(shares), steps=1)
    likely = predicted(estimator)["logistic"][:, 0]
    losses = -shares * np.log(likely) - (1 - shares) * np.log(1 - likely)
    assert found["average_loss"] == pytest.approx(losses.mean(), rel=1e-5)
    assert found["label/mean"] == pytest.approx(shares.mean())


def test_sizes_may_be_those_of_numpy(tmp_path):
    estimator = lib.DNNClassifier(
        np.array([4, 2]), [AGE], n_classes=np.int64(3), config=config(tmp_path)
    )
    estimator.train(inputs(BINARY), steps=1)
    assert estimator.get_variable_value("dnn/logits/kernel").shape == (2, 3)


@pytest.mark.parametrize(
    ("optimizer", "rate"), [("SGD", 0.2), (None, 30**-0.5)]
)
def test_a_linear_model_of_many_columns_learns_slower_by_default(
    tmp_path, optimizer, rate
):
    columns = [fc.numeric_column(f"x{i}") for i in range(30)]
    estimator = lib.LinearRegressor(
        columns, optimizer=optimizer, config=config(tmp_path)
    )
    zeros = {column.key: [0.0] for column in columns}
    labels = tf.float32.as_numpy_dtype([1.0])
    features = {"user": [1], "age": [0.0]} | zeros
    estimator.train(inputs(labels, **features), steps=1)
    # Ftrl's first step is that of Adagrad: 2 / sqrt(0.1 + 4) of the rate.
    slope = 2.0 if optimizer == "SGD" else 2 / 4.1**0.5
    bias = estimator.get_variable_value("linear/linear_model/bias_weights")
    assert bias == pytest.approx(rate * slope, rel=1e-4)


def test_the_mean_loss_of_examples_is_among_the_events(tmp_path):
    arguments = {**QUIET, "save_summary_steps": 1}
    estimator = linear(
        config=lib.RunConfig(model_dir=str(tmp_path), **arguments)
    )
    estimator.train(inputs(BINARY), steps=1)
    (path,) = map(str, tmp_path.glob("events*"))
    values = {
        value.tag: value.simple_value
        for event in v1.train.summary_iterator(path)
        for value in event.summary.value
    }
    assert values["loss"] == pytest.approx(4 * np.log(2))
    assert values["average_loss"] == pytest.approx(np.log(2))
