"""Canned models: classifiers and regressors over columns of tables."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import compat, estimator as lib, feature_column as fc

from .canned import (
    AGE,
    AGES,
    BINARY,
    IDS,
    USER,
    combined,
    config,
    deep,
    embedding,
    inputs,
    linear,
    predicted,
)


v1 = tf.compat.v1

CLASSIFIERS = [linear, deep, combined]
REGRESSORS = [
    lambda **kwargs: lib.LinearRegressor([USER, AGE], **kwargs),
    lambda **kwargs: lib.DNNRegressor([4], [embedding(), AGE], **kwargs),
    lambda **kwargs: lib.DNNLinearCombinedRegressor(
        linear_feature_columns=[USER, AGE],
        dnn_feature_columns=[embedding(), AGE],
        dnn_hidden_units=[4],
        **kwargs,
    ),
]
KINDS = ["linear", "dnn", "combined"]


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


@pytest.mark.parametrize(
    ("reduction", "share"),
    [("weighted_sum", 1.0), ("sum_over_batch_size", 0.25)],
)
def test_a_linear_model_of_one_table_trains_as_numpy_does(
    tmp_path, reduction, share
):
    estimator = lib.LinearClassifier(
        [USER],
        weight_column="weight",
        optimizer=v1.train.GradientDescentOptimizer(0.5),
        config=config(tmp_path),
        loss_reduction=reduction,
    )
    weight = np.array([1.0, 2.0, 0.5, 0.0], np.float32)
    estimator.train(inputs(BINARY, weight=weight), steps=3)

    rows, bias = dict.fromkeys(IDS, 0.0), 0.0
    for _ in range(3):
        logits = np.array([rows[i] for i in IDS]) + bias
        slopes = 0.5 * share * weight * (sigmoid(logits) - BINARY)
        for i, slope in zip(IDS, slopes, strict=True):
            rows[i] -= slope
        bias -= slopes.sum()

    table = "linear/linear_model/user/weights"
    keys = estimator.get_variable_value(f"{table}/keys").tolist()
    found = estimator.get_variable_value(f"{table}/rows")[:, 0]
    assert sorted(keys) == sorted(rows)
    np.testing.assert_allclose(found, [rows[i] for i in keys], rtol=1e-5)
    np.testing.assert_allclose(
        estimator.get_variable_value("linear/linear_model/bias_weights"),
        [bias],
        rtol=1e-5,
    )


def test_a_deep_model_predicts_as_its_weights_do_in_numpy(tmp_path):
    estimator = deep(config=config(tmp_path)).train(inputs(BINARY), steps=2)
    scope = "dnn/input_from_feature_columns/input_layer"
    table = f"{scope}/user_embedding/embedding_weights"
    value = estimator.get_variable_value
    rows = dict(
        zip(
            value(f"{table}/keys").tolist(),
            value(f"{table}/rows"),
            strict=True,
        )
    )
    ages = np.array(AGES, np.float32)[:, None]
    net = np.concatenate([ages, np.stack([rows[i] for i in IDS])], axis=1)
    for layer in ("hiddenlayer_0", "hiddenlayer_1", "logits"):
        net = net @ value(f"dnn/{layer}/kernel") + value(f"dnn/{layer}/bias")
        if layer != "logits":
            net = np.maximum(net, 0)
    np.testing.assert_allclose(
        predicted(estimator)["logits"], net, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("still", "moving"), [("linear", "dnn"), ("dnn", "linear")]
)
def test_each_optimizer_trains_its_part_alone(tmp_path, still, moving):
    optimizers = {
        f"{still}_optimizer": v1.train.GradientDescentOptimizer(0.0),
        f"{moving}_optimizer": lambda: v1.train.AdamOptimizer(0.1),
    }
    estimator = combined(
        config=config(tmp_path), dnn_activation_fn=None, **optimizers
    )
    parts = {
        "linear": [
            "linear/linear_model/age/weights",
            "linear/linear_model/bias_weights",
            "linear/linear_model/user/weights/rows",
        ],
        "dnn": [
            "dnn/hiddenlayer_0/kernel",
            "dnn/logits/bias",
            "dnn/input_from_feature_columns/input_layer/user_embedding/"
            "embedding_weights/rows",
        ],
    }
    estimator.train(inputs(BINARY), steps=1)
    names = parts["linear"] + parts["dnn"]
    before = {name: estimator.get_variable_value(name) for name in names}
    estimator.train(inputs(BINARY), steps=1)
    for name in names:
        same = np.array_equal(estimator.get_variable_value(name), before[name])
        assert same == (name in parts[still]), name
    assert int(estimator.get_variable_value("global_step")) == 2


@pytest.mark.parametrize("make", CLASSIFIERS, ids=KINDS)
def test_classifiers_of_two_classes_train_evaluate_predict_and_export(
    tmp_path, make
):
    estimator = make(config=config(tmp_path))
    estimator.train(inputs(BINARY), steps=3)
    found = estimator.evaluate(inputs(BINARY), steps=2)
    assert set(found) == {
        "accuracy",
        "accuracy_baseline",
        "auc",
        "auc_precision_recall",
        "average_loss",
        "global_step",
        "label/mean",
        "loss",
        "precision",
        "prediction/mean",
        "recall",
    }
    values = predicted(estimator)
    labels = np.array(BINARY)[:, None]
    likely = values["logistic"]
    losses = -np.log(np.where(labels, likely, 1 - likely))
    expected = {
        "accuracy": np.mean(values["class_ids"] == labels),
        "accuracy_baseline": 0.5,
        "average_loss": losses.mean(),
        "global_step": 3,
        "label/mean": 0.5,
        "loss": losses.sum(),
        "prediction/mean": likely.mean(),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-5), name

    np.testing.assert_allclose(likely, sigmoid(values["logits"]), rtol=1e-6)
    np.testing.assert_allclose(
        values["probabilities"], np.hstack([1 - likely, likely]), rtol=1e-5
    )
    assert values["class_ids"].tolist() == (likely > 0.5).astype(int).tolist()
    assert values["classes"].tolist() == [
        [b"%d" % i] for i in values["class_ids"][:, 0]
    ]

    signatures = exported(estimator, tmp_path / "models")
    fed = {"user": tf.constant(IDS, tf.int64), "age": tf.constant(AGES)}
    answers = {name: one(**fed) for name, one in signatures.items()}
    assert set(answers) == {
        "serving_default",
        "classification",
        "regression",
        "predict",
    }
    scores = answers["serving_default"]["scores"]
    np.testing.assert_allclose(scores, values["probabilities"], rtol=1e-5)
    classes = answers["classification"]["classes"].numpy().tolist()
    assert classes == [[b"0", b"1"]] * 4
    np.testing.assert_allclose(
        answers["regression"]["outputs"], likely, rtol=1e-5
    )
    assert set(answers["predict"]) == set(values)


def exported(estimator, folder):
    """Exports and loads a model; returns its signatures."""

    def receiver():
        inputs = {
            "user": v1.placeholder(tf.int64, [None], name="user"),
            "age": v1.placeholder(tf.float32, [None], name="age"),
        }
        return lib.export.ServingInputReceiver(inputs, inputs)

    path = estimator.export_saved_model(str(folder), receiver)
    loaded = tf.saved_model.load(path)
    # The variables live as long as what was loaded.
    signatures = dict(loaded.signatures)
    for signature in signatures.values():
        signature.loaded = loaded
    return signatures


def test_examples_are_served_through_the_classify_and_regress_apis(tmp_path):
    estimator = linear(config=config(tmp_path))
    estimator.train(inputs(BINARY), steps=1)
    spec = fc.make_parse_example_spec([USER, AGE])
    path = estimator.export_saved_model(
        str(tmp_path / "models"),
        lib.export.build_parsing_serving_input_receiver_fn(spec),
    )
    with tf.Graph().as_default(), v1.Session() as session:
        model = v1.saved_model.load(session, ["serve"], path)
        methods = {n: s.method_name for n, s in model.signature_def.items()}
    assert methods == {
        "serving_default": "tensorflow/serving/classify",
        "classification": "tensorflow/serving/classify",
        "regression": "tensorflow/serving/regress",
        "predict": "tensorflow/serving/predict",
    }


@pytest.mark.parametrize(
    ("make", "arguments"),
    [(linear, {}), (deep, {"activation_fn": tf.nn.tanh})],
    ids=["linear", "dnn"],
)
def test_classes_with_names_are_learned(tmp_path, make, arguments):
    estimator = make(
        config=config(tmp_path),
        n_classes=3,
        label_vocabulary=["cat", "dog", "eel"],
        optimizer=v1.train.AdamOptimizer(0.1),
        **arguments,
    )
    labels = ["eel", "dog", "eel", "cat"]
    estimator.train(inputs(labels), steps=60)
    found = estimator.evaluate(inputs(labels), steps=1)
    assert set(found) == {"accuracy", "average_loss", "global_step", "loss"}
    values = predicted(estimator)
    assert found["accuracy"] == 1.0
    assert values["logits"].shape == (4, 3)
    assert values["class_ids"].tolist() == [[2], [1], [2], [0]]
    assert values["classes"].tolist() == [[n.encode()] for n in labels]
    shares = np.exp(values["logits"])
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(values["probabilities"], shares, rtol=1e-5)
    losses = -np.log(shares[np.arange(4), values["class_ids"][:, 0]])
    assert found["average_loss"] == pytest.approx(losses.mean(), rel=1e-4)


def test_scores_of_classes_with_names_are_served(tmp_path):
    estimator = linear(
        config=config(tmp_path), n_classes=3, label_vocabulary=["c", "d", "e"]
    )
    estimator.train(inputs(["e", "d", "e", "c"]), steps=2)
    signatures = exported(estimator, tmp_path / "models")
    assert set(signatures) == {"serving_default", "classification", "predict"}
    answer = signatures["serving_default"](
        user=tf.constant([7, 5], tf.int64), age=tf.constant([0.4, 0.1])
    )
    best = tf.argmax(answer["scores"], axis=1).numpy().tolist()
    assert best == [0, 2]
    assert answer["classes"].numpy().tolist() == [[b"c", b"d", b"e"]] * 2


@pytest.mark.parametrize("make", REGRESSORS, ids=KINDS)
def test_regressors_train_evaluate_and_predict(tmp_path, make):
    estimator = make(config=config(tmp_path), label_dimension=2)
    labels = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    estimator.train(inputs(labels), steps=2)
    found = estimator.evaluate(inputs(labels), steps=1)
    values = predicted(estimator)["predictions"]
    errors = (values - labels) ** 2
    expected = {
        "average_loss": errors.mean(),
        "global_step": 2,
        "label/mean": 3.5,
        "loss": errors.sum(),
        "prediction/mean": values.mean(),
    }
    assert found == pytest.approx(expected, rel=1e-5)


def test_numbers_of_a_regressor_are_served(tmp_path):
    estimator = REGRESSORS[0](config=config(tmp_path))
    estimator.train(inputs([0.0, 1.0, 2.0, 3.0]), steps=1)
    signatures = exported(estimator, tmp_path / "models")
    assert set(signatures) == {"serving_default", "regression", "predict"}
    answer = signatures["regression"](
        user=tf.constant(IDS, tf.int64), age=tf.constant(AGES)
    )
    expected = predicted(estimator)["predictions"]
    np.testing.assert_allclose(answer["outputs"], expected, rtol=1e-5)


def test_weights_of_examples_count_in_metrics(tmp_path):
    column = fc.numeric_column("weight", normalizer_fn=lambda w: w / 2)
    estimator = linear(config=config(tmp_path), weight_column=column)
    weighted = inputs(BINARY, weight=[8.0, 2.0, 2.0, 4.0])
    estimator.train(weighted, steps=1)
    found = estimator.evaluate(weighted, steps=1)
    assert found["label/mean"] == pytest.approx(0.25)
    assert found["accuracy_baseline"] == pytest.approx(0.75)
    assert found["loss"] == pytest.approx(8 * found["average_loss"], rel=1e-5)
    # Weights are for training and evaluation alone.
    assert predicted(estimator)["logits"].shape == (4, 1)


def test_only_training_creates_ids(tmp_path):
    estimator = combined(config=config(tmp_path))
    estimator.train(inputs(BINARY), steps=1)
    keys = "linear/linear_model/user/weights/keys"
    before = sorted(estimator.get_variable_value(keys))
    estimator.evaluate(inputs(BINARY, user=[1, 2, 3, 4]), steps=1)
    unseen = predicted(estimator, user=[1, 2, 1, 2])
    assert np.isfinite(unseen["logits"]).all()
    assert sorted(estimator.get_variable_value(keys)) == before


def test_batches_are_normalized_and_hidden_units_left_out(tmp_path):
    estimator = deep(config=config(tmp_path), batch_norm=True, dropout=0.5)
    estimator.train(inputs(BINARY), steps=2)
    value = estimator.get_variable_value
    norm = "dnn/hiddenlayer_0/batchnorm_0"
    assert value(f"{norm}/gamma").shape == (4,)
    # The moments have begun to follow, by a thousandth in each step.
    variance = value(f"{norm}/moving_variance")
    assert ((variance < 1) & (variance > 0.99)).all()
    assert np.any(value(f"{norm}/moving_mean") != 0)
    first, again = predicted(estimator), predicted(estimator)
    np.testing.assert_array_equal(first["logits"], again["logits"])


def test_ids_of_an_example_are_combined(tmp_path):
    estimator = lib.LinearClassifier(
        [USER],
        config=config(tmp_path),
        optimizer=v1.train.GradientDescentOptimizer(1.0),
        sparse_combiner="mean",
    )
    estimator.train(inputs([1, 1], user=[[1, 2], [3, -1]], age=[0, 0]), steps=1)
    table = "linear/linear_model/user/weights"
    rows = dict(
        zip(
            estimator.get_variable_value(f"{table}/keys").tolist(),
            estimator.get_variable_value(f"{table}/rows")[:, 0].tolist(),
            strict=True,
        )
    )
    assert rows == pytest.approx({1: 0.25, 2: 0.25, 3: 0.5})


@pytest.mark.parametrize("name", ["Adagrad", "Adam", "Ftrl", "RMSProp", "SGD"])
def test_optimizers_have_names(tmp_path, name):
    estimator = lib.LinearClassifier(
        [USER], config=config(tmp_path), optimizer=name
    )
    estimator.train(inputs([0, 0, 0, 0]), steps=2)
    table = "linear/linear_model/user/weights"
    weights = estimator.get_variable_value(f"{table}/rows")
    assert weights.shape == (3, 1)
    assert (weights < 0).all()


def test_a_canned_model_goes_on_and_begins_with_another(tmp_path):
    first = combined(config=config(tmp_path / "first"))
    first.train(inputs(BINARY), steps=1).train(inputs(BINARY), steps=1)
    assert int(first.get_variable_value("global_step")) == 2
    table = "linear/linear_model/user/weights"
    settings = lib.WarmStartSettings(str(tmp_path / "first"))
    second = combined(
        config=config(tmp_path / "second"),
        warm_start_from=settings,
        linear_optimizer=v1.train.GradientDescentOptimizer(0.0),
    )
    second.train(inputs(BINARY), steps=1)

    def rows(estimator):
        keys = estimator.get_variable_value(f"{table}/keys").tolist()
        values = estimator.get_variable_value(f"{table}/rows")[:, 0].tolist()
        return dict(zip(keys, values, strict=True))

    assert rows(second) == rows(first)


def test_canned_models_have_their_names_in_compat_v1():
    from embedra.compat.v1 import estimator as names

    assert compat.v1.estimator is names
    for kind in ("Linear", "DNN", "DNNLinearCombined"):
        for what in ("Classifier", "Regressor"):
            name = f"{kind}{what}"
            assert getattr(names, name) is getattr(lib, name)
