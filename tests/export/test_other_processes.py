"""Exports load in processes where Embedra is not, and cannot be, imported."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from embedra.layers import Embedding
from embedra.saved_model import export


pytestmark = pytest.mark.multiprocess

HERE = Path(__file__).parent
KNOWN = np.array([5, 7, 0, -9, 2**62, -(2**63), 2**63 - 1])
ASKED = np.array([5, 10**9, -(2**63), 0, 7, 2**63 - 1, 8])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder of all installed packages but Embedra."""
    folder = tmp_path_factory.mktemp("site")
    for package in Path(tf.__file__).parents[1].iterdir():
        if "embedra" not in package.name and package.suffix != ".pth":
            folder.joinpath(package.name).symlink_to(package)
    return folder


def run(site, script, *arguments):
    """Runs a program that sees the packages in a folder, and no others."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    result = subprocess.run(
        # No `site`: neither site-packages, nor what its .pth files add.
        [sys.executable, "-S", str(HERE / script), *map(str, arguments)],
        cwd=site,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]


def layer_of(name, keys=KNOWN, **options):
    layer = Embedding(3, name=name, **options)
    layer(keys, training=True)
    return layer


def signature_of(folder):
    """The default signature, as the graph file describes it."""
    model = saved_model_pb2.SavedModel()
    model.ParseFromString(Path(folder, "saved_model.pb").read_bytes())
    return model.meta_graphs[0].signature_def["serving_default"]


def test_s01_servers_need_no_embedra(site, tmp_path):
    ids = keras.Input((), dtype="int64", name="id")
    word = keras.Input((), dtype="string", name="word")
    many = keras.Input((None,), dtype="int64", name="many", ragged=True)
    some = keras.Input((None,), dtype="int64", name="some", sparse=True)
    words = np.array(["a", "b"])
    rows = [
        layer_of("ids")(ids),
        layer_of("words", words, key_dtype="string")(word),
        layer_of("bags", combiner="mean")(many),
        layer_of("sets", combiner="sum")(some),
    ]
    joined = keras.layers.Concatenate()(rows)
    inputs = {"id": ids, "word": word, "many": many, "some": some}
    model = keras.Model(inputs, keras.layers.Dense(2)(joined))
    ragged = tf.RaggedTensor.from_row_splits(
        tf.constant([5, 0, -9, 5, 10**9], tf.int64), [0, 2, 2, 5]
    )
    sparse = ragged.to_sparse()
    request = {
        "id": np.array([5, 10**9, 7]),
        "word": np.array(["a", "b", "new"]),
        "many_values": ragged.values.numpy(),
        "many_row_splits": ragged.row_splits.numpy(),
        "some_values": sparse.values.numpy(),
        "some_indices": sparse.indices.numpy(),
        "some_dense_shape": sparse.dense_shape.numpy(),
    }
    expected = model(
        {
            "id": tf.constant(request["id"]),
            "word": tf.constant(["a", "b", "new"]),
            "many": ragged,
            "some": sparse,
        },
        training=False,
    )
    folders = {
        quantize: str(tmp_path / f"model-{quantize}")
        for quantize in (None, "int8")
    }
    for quantize, folder in folders.items():
        export(model, folder, quantize=quantize)
        np.savez(f"{folder}.npz", **request)
    described = signature_of(folders[None]).inputs
    assert set(described) == set(request)
    for name in ("id", "word"):
        [batch] = described[name].tensor_shape.dim
        assert batch.size == -1
    assert described["id"].dtype == tf.int64.as_datatype_enum
    run(site, "plain_tensorflow.py", *folders.values())
    for quantize, folder in folders.items():
        with np.load(f"{folder}.answer.npz") as answer:
            np.testing.assert_allclose(
                answer["output_0"], expected, atol=3e-2 if quantize else 1e-6
            )


def test_c_api(site, tmp_path):
    layer = layer_of("table", embeddings_initializer="random_normal")
    spec = tf.TensorSpec([None], tf.int64, "ids")
    path = export(layer, tmp_path / "model", signature=spec).path
    signature = signature_of(path)
    np.save(tmp_path / "ids.npy", ASKED)
    run(
        site,
        "c_api_client.py",
        Path(tf.__file__).parent,
        path,
        signature.inputs["ids"].name.partition(":")[0],
        signature.outputs["output_0"].name,
        tmp_path / "ids.npy",
        tmp_path / "answer.npy",
    )
    np.testing.assert_allclose(
        np.load(tmp_path / "answer.npy"),
        layer(ASKED, training=False),
        atol=1e-6,
    )
