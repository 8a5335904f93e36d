"""Export: what clients feed, what they get, and that it is TensorFlow's own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import embedra.dynamic_embedding as de
from embedra import estimator as lib

from . import small


v1 = tf.compat.v1

IDS = [3, 4, 19, 1000]


def dense_receiver():
    ids = v1.placeholder(tf.int64, [None], name="user")
    return lib.export.ServingInputReceiver({"user": ids}, {"user": ids})


def predicted(estimator, ids=IDS):
    return next(
        estimator.predict(small.features_fn(*ids), yield_single_examples=False)
    )


def run(path, feed, signature="serving_default"):
    """Feeds a signature as programs of TensorFlow 1 do."""
    with tf.Graph().as_default(), v1.Session() as session:
        model = v1.saved_model.load(session, ["serve"], path)
        described = model.signature_def[signature]
        feeds = {}
        for name, value in feed.items():
            info = described.inputs[name]
            if info.WhichOneof("encoding") == "coo_sparse":
                sparse = info.coo_sparse
                feeds[sparse.indices_tensor_name] = value.indices
                feeds[sparse.values_tensor_name] = value.values
                feeds[sparse.dense_shape_tensor_name] = value.dense_shape
            else:
                feeds[info.name] = value
        outputs = {n: info.name for n, info in described.outputs.items()}
        return session.run(outputs, feeds)


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    """A SavedModel of the trained estimator."""
    folder = tmp_path_factory.mktemp("exported")
    extra = folder / "words.txt"
    extra.write_text("yes")
    return trained.export_saved_model(
        folder / "models", dense_receiver, assets_extra={"words": str(extra)}
    )


def test_an_export_predicts_as_the_estimator(trained, exported):
    expected = predicted(trained)
    assert set(expected) == {"score", "row"}
    loaded = tf.saved_model.load(exported)
    for found in (
        run(exported, {"user": IDS}),
        loaded.signatures["serving_default"](user=tf.constant(IDS, tf.int64)),
    ):
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-6)


def test_an_export_has_a_number_extra_files_and_tensorflows_ops(exported):
    assert Path(exported).name.isdigit()
    assert Path(exported, "assets.extra", "words").read_text() == "yes"
    model = saved_model_pb2.SavedModel()
    model.ParseFromString(Path(exported, "saved_model.pb").read_bytes())
    (meta,) = model.meta_graphs
    nodes = [
        *meta.graph_def.node,
        *(n for f in meta.graph_def.library.function for n in f.node_def),
    ]
    ops = {node.op for node in nodes}
    assert not [op for op in ops if op.startswith("Embedra")]
    assert list(meta.meta_info_def.tags) == ["serve"]
    assert sum(1 for _ in Path(exported).parent.iterdir()) == 1


SERVER = """
import sys
import numpy as np
import tensorflow as tf

signature = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
ids = tf.constant([int(i) for i in sys.argv[3:]], tf.int64)
np.save(sys.argv[2], signature(user=ids)["score"].numpy())
assert "embedra" not in sys.modules
"""


def test_a_process_of_tensorflow_alone_serves_an_export(
    trained, exported, tmp_path
):
    answer = str(tmp_path / "answer.npy")
    subprocess.run(
        [sys.executable, "-c", SERVER, exported, answer, *map(str, IDS)],
        check=True,
        timeout=120,
    )
    np.testing.assert_allclose(
        np.load(answer), predicted(trained)["score"], rtol=1e-6
    )


def sparse_model_fn(features, mode):
    user = de.get_variable("user", dim=2)
    rows = de.safe_embedding_lookup_sparse(
        user, features["user"], combiner="sum"
    )
    score = tf.reduce_sum(rows, axis=1) + features["number"]
    return lib.EstimatorSpec(
        mode,
        {"score": score},
        export_outputs={
            "serving_default": lib.export.PredictOutput({"score": score}),
            "regress": lib.export.RegressionOutput(score),
        },
    )


def mixed_receiver():
    inputs = {
        "number": v1.placeholder(tf.float32, [None], name="number"),
        "user": v1.sparse_placeholder(tf.int64, name="user"),
    }
    return lib.export.ServingInputReceiver(inputs, inputs)


def test_dense_and_sparse_placeholders_are_fed(trained, tmp_path):
    estimator = small.make(trained.model_dir, sparse_model_fn)
    path = estimator.export_saved_model(tmp_path, mixed_receiver)
    user = v1.SparseTensorValue([[0, 0], [0, 1], [2, 0]], [3, 4, 19], [3, 2])
    numbers = np.array([1, 2, 3], np.float32)
    rows = predicted(trained)["row"].sum(axis=1)
    expected = numbers + [rows[0] + rows[1], 0, rows[2]]
    found = run(path, {"user": user, "number": numbers})
    np.testing.assert_allclose(found["score"], expected, rtol=1e-5)
    # A receiver that is not of serialized examples has another API's method.
    regress = run(path, {"user": user, "number": numbers}, "regress")
    np.testing.assert_allclose(regress["outputs"], expected, rtol=1e-5)
    loaded = tf.saved_model.load(path)
    found = loaded.signatures["serving_default"](
        user_indices=tf.constant(user.indices, tf.int64),
        user_values=tf.constant(user.values, tf.int64),
        user_dense_shape=tf.constant(user.dense_shape, tf.int64),
        number=tf.constant(numbers),
    )
    np.testing.assert_allclose(found["score"], expected, rtol=1e-5)


def test_ragged_placeholders_are_fed_by_their_parts(trained, tmp_path):
    def model_fn(features, mode):
        user = de.get_variable("user", dim=2)
        rows = de.embedding_lookup_sparse(
            user, features["user"], None, combiner="sum"
        )
        return lib.EstimatorSpec(mode, {"row": rows})

    receiver_fn = lib.export.build_raw_serving_input_receiver_fn(
        {"user": tf.RaggedTensorSpec((None, None), tf.int64)}
    )
    estimator = small.make(trained.model_dir, model_fn)
    path = estimator.export_saved_model(tmp_path, receiver_fn)
    loaded = tf.saved_model.load(path)
    found = loaded.signatures["serving_default"](
        user_component_0=tf.constant([3, 4, 19], tf.int64),
        user_component_1=tf.constant([0, 2, 3], tf.int64),
    )
    rows = predicted(trained)["row"]
    np.testing.assert_allclose(
        found["row"], [rows[0] + rows[1], rows[2]], rtol=1e-5
    )


def test_serialized_examples_are_classified(trained, tmp_path):
    def model_fn(features, labels, mode):
        spec = small.model_fn(features, labels, mode, {})
        scores = tf.stack([spec.predictions["score"]] * 2, axis=1)
        classes = tf.constant(["even", "odd"])
        outputs = {"classify": lib.export.ClassificationOutput(scores, classes)}
        return spec._replace(export_outputs=outputs)

    receiver_fn = lib.export.build_parsing_serving_input_receiver_fn(
        {"user": tf.io.FixedLenFeature((), tf.int64)}
    )
    estimator = small.make(trained.model_dir, model_fn)
    path = estimator.export_saved_model(tmp_path, receiver_fn, as_text=True)
    assert Path(path, "saved_model.pbtxt").exists()
    examples = [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    "user": tf.train.Feature(
                        int64_list=tf.train.Int64List(value=[i])
                    )
                }
            )
        ).SerializeToString()
        for i in IDS
    ]
    for signature in ("serving_default", "classify"):
        found = run(path, {"inputs": examples}, signature)
        np.testing.assert_allclose(
            found["scores"][:, 1], predicted(trained)["score"], rtol=1e-6
        )
        assert found["classes"].tolist() == [b"even", b"odd"]


def test_raw_receivers_have_the_features_placeholders():
    receiver_fn = lib.export.build_raw_serving_input_receiver_fn(
        {
            "dense": tf.constant([[1.0, 2.0]]),
            "sparse": tf.SparseTensorSpec((1, 5), tf.int64),
            "ragged": tf.RaggedTensorSpec((1, None), tf.string),
        }
    )
    with tf.Graph().as_default():
        receiver = receiver_fn()
    tensors = receiver.receiver_tensors
    assert receiver.features == tensors
    assert tensors["dense"].shape.as_list() == [None, 2]
    assert tensors["sparse"].dtype == tf.int64
    assert isinstance(tensors["ragged"], tf.RaggedTensor)


def test_other_inputs_have_signatures_of_their_names(trained, tmp_path):
    def receiver_fn():
        ids = v1.placeholder(tf.int64, [None])
        names = v1.strings.as_string(ids)
        again = tf.strings.to_number(names, tf.int64)
        return lib.export.ServingInputReceiver(
            {"user": again}, {"user": ids}, {"named": {"name": names}}
        )

    path = trained.export_saved_model(tmp_path, receiver_fn)
    expected = predicted(trained)["score"]
    for feed, signature in (
        ({"user": IDS}, "serving_default"),
        ({"name": [str(i) for i in IDS]}, "named"),
    ):
        found = run(path, feed, signature)
        np.testing.assert_allclose(found["score"], expected, rtol=1e-6)


def test_vocabularies_and_partitioned_variables_are_exported(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("a\nb\nc\n")

    def model_fn(features, mode):
        table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                str(words),
                tf.string,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            ),
            -1,
        )
        places = table.lookup(features["word"])
        user = de.get_variable("user", dim=1, initializer=1.0)
        rows = de.embedding_lookup(user, places)
        with v1.variable_scope("s", partitioner=v1.fixed_size_partitioner(2)):
            weight = v1.get_variable(
                "weight", (4, 1), initializer=v1.random_normal_initializer()
            )
        score = rows * tf.nn.embedding_lookup(weight, tf.maximum(places, 0))
        step = v1.assign_add(v1.train.get_global_step(), 1)
        loss = tf.reduce_sum(score)
        return lib.EstimatorSpec(mode, score, loss, step)

    def receiver_fn():
        word = v1.placeholder(tf.string, [None])
        return lib.export.ServingInputReceiver({"word": word}, {"word": word})

    estimator = small.make(tmp_path / "run", model_fn)
    estimator.train(lambda: {"word": tf.constant(["a", "b"])}, steps=1)
    path = estimator.export_saved_model(tmp_path / "models", receiver_fn)
    words.unlink()
    found = run(path, {"word": ["a", "c", "?"]})["output"]
    weight = estimator.get_variable_value("s/weight")
    np.testing.assert_allclose(found, weight[[0, 2, 0]], rtol=1e-6)


def test_a_failed_export_leaves_nothing(trained, tmp_path):
    def model_fn(features, mode):
        del features
        user = de.get_variable("user", dim=2)
        return lib.EstimatorSpec(mode, {"keys": user.size()})

    estimator = small.make(trained.model_dir, model_fn)
    with pytest.raises(ValueError, match="only Embedra knows"):
        estimator.export_saved_model(tmp_path / "models", dense_receiver)
    with pytest.raises(FileNotFoundError, match="no-such-file"):
        trained.export_saved_model(
            tmp_path / "models", dense_receiver, ["no-such-file"]
        )
    assert not list(tmp_path.rglob("*.pb"))


def test_tables_that_a_checkpoint_lacks_are_named(trained, tmp_path):
    def model_fn(features, mode):
        other = de.get_variable("other", dim=2)
        rows = de.embedding_lookup(other, features["user"])
        return lib.EstimatorSpec(mode, {"row": rows})

    estimator = small.make(trained.model_dir, model_fn)
    with pytest.raises(ValueError, match="Table 'other' is not in checkpoint"):
        estimator.export_saved_model(tmp_path, dense_receiver)


def test_receivers_must_suit_the_model(trained, tmp_path):
    def receiver_fn():
        ids = v1.placeholder(tf.int64, [None])
        return lib.export.ServingInputReceiver({"item": ids}, {"item": ids})

    with pytest.raises(KeyError, match="user") as error:
        trained.export_saved_model(tmp_path, receiver_fn)
    assert any("gives features ['item']" in n for n in error.value.__notes__)
    with pytest.raises(TypeError, match="must return a ServingInputReceiver"):
        trained.export_saved_model(tmp_path, lambda: {})


def test_outputs_are_checked():
    tensor = tf.constant([1.0])
    with pytest.raises(TypeError, match="`outputs` must be a tensor"):
        lib.export.PredictOutput({"score": 1.0})
    with pytest.raises(ValueError, match="`scores`, `classes` or both"):
        lib.export.ClassificationOutput()
    with pytest.raises(ValueError, match="`classes` must be a tensor of str"):
        lib.export.ClassificationOutput(classes=tensor)
    with pytest.raises(ValueError, match="`value` must be a tensor of floats"):
        lib.export.RegressionOutput(tf.constant([1]))
    with pytest.raises(TypeError, match="`receiver_tensors` must be a tensor"):
        lib.export.ServingInputReceiver({"x": tensor}, {"x": 1})
    with pytest.raises(TypeError, match="`features` is empty"):
        lib.export.ServingInputReceiver({}, {"x": tensor})
    with pytest.raises(TypeError, match="must be one tensor"):
        lib.export.TensorServingInputReceiver({"x": tensor}, {"x": tensor})
    receiver = lib.export.TensorServingInputReceiver(tensor, tensor)
    assert receiver.features is tensor
    assert receiver.receiver_tensors == {"input": tensor}


def test_one_of_several_outputs_is_the_default(trained, tmp_path):
    def model_fn(features, labels, mode):
        spec = small.model_fn(features, labels, mode, {})
        output = lib.export.PredictOutput(spec.predictions)
        return spec._replace(export_outputs={"a": output, "b": output})

    estimator = small.make(trained.model_dir, model_fn)
    with pytest.raises(ValueError, match=r"the default.*\['a', 'b'\]"):
        estimator.export_saved_model(tmp_path, dense_receiver)


def test_other_modes_are_refused(trained, tmp_path):
    with pytest.raises(ValueError, match=r"Received modes: \['eval'\]"):
        trained.export_saved_model(
            tmp_path, dense_receiver, experimental_mode=lib.ModeKeys.EVAL
        )
    path = trained.experimental_export_all_saved_models(
        tmp_path, {lib.ModeKeys.PREDICT: dense_receiver}
    )
    assert Path(path, "saved_model.pb").exists()


def test_the_latest_and_the_final_are_exported(tmp_path):
    estimator = small.make(tmp_path)
    _, exports = estimator.train_and_evaluate(
        lib.TrainSpec(small.input_fn(3), max_steps=3),
        lib.EvalSpec(
            small.input_fn(1),
            exporters=[
                lib.LatestExporter("latest", dense_receiver, exports_to_keep=1),
                lib.FinalExporter("final", dense_receiver),
            ],
        ),
        eval_every_n_iter=2,
    )
    for name, path in zip(("latest", "final"), exports, strict=True):
        (only,) = (tmp_path / "export" / name).iterdir()
        assert str(only) == path
