"""What an export writes, of rows and beside them."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra import _ops
from embedra.layers import Embedding
from embedra.saved_model import export


SPEC = tf.TensorSpec([None], tf.int64)
IDS = np.arange(50)


def served(path, ids):
    # What is loaded goes with its variables.
    loaded = tf.saved_model.load(path)
    return loaded.serve(ids)


@pytest.fixture
def layer():
    made = Embedding(8, name="table", embeddings_initializer="random_normal")
    made(IDS, training=True)
    return made


@pytest.fixture
def model(layer):
    ids = keras.Input((), dtype="int64", name="id")
    made = keras.Model(ids, keras.layers.Dense(1)(layer(ids)))
    made.compile("adam", "mse")
    made.fit(IDS, np.ones(50), verbose=0)
    return made


def test_result_and_report_name_the_tables(layer, tmp_path):
    exported = export(layer, tmp_path / "model", signature=SPEC)
    assert exported.path == str(tmp_path / "model")
    [table] = exported.tables
    assert (table.name, table.keys, table.dim) == ("table", 50, 8)
    assert (table.dtype, table.max_error) == ("float32", 0.0)
    # 55 slots with a key and a row each, 16 pilots and 4 parameters.
    assert table.bytes == 55 * (8 + 32) + 16 * 2 + 4 * 8
    report = Path(exported.path, "assets.extra", "embedra.json").read_text()
    assert json.loads(report) == {"quantize": None, "tables": [table._asdict()]}


def test_no_optimizer_state(model, tmp_path):
    path = export(model, tmp_path / "model").path
    names = tf.train.list_variables(f"{path}/variables/variables")
    shapes = sorted(shape for name, shape in names if "VARIABLE" in name)
    assert shapes == [[1], [4], [8, 1], [16], [55, 5]]


@pytest.mark.parametrize(
    ("quantize", "size", "limit"),
    [("float16", 16, 2**-10), ("int8", 16, 0.005)],
)
def test_quantized_rows(quantize, size, limit, layer, tmp_path):
    exported = export(
        layer, tmp_path / "model", signature=SPEC, quantize=quantize
    )
    [table] = exported.tables
    assert table.dtype == quantize
    assert table.bytes == 55 * (8 + size) + 16 * 2 + 4 * 8
    rows = layer(IDS, training=False).numpy()
    most = np.abs(rows).max(axis=1, keepdims=True)
    loaded = tf.saved_model.load(exported.path)
    errors = np.abs(rows - loaded.serve(tf.constant(IDS)))
    assert np.all(errors <= limit * most)
    np.testing.assert_allclose(errors.max(), table.max_error, rtol=1e-3)
    rms = np.sqrt(np.square(errors).mean())
    np.testing.assert_allclose(rms, table.rms_error, rtol=1e-3)
    assert 0 < table.rms_error < table.max_error
    # New ids start as ever.
    new = tf.constant([10**9], tf.int64)
    np.testing.assert_array_equal(loaded.serve(new), layer(new, training=False))


def test_float16_keeps_numbers_finite(tmp_path):
    layer = Embedding(2)
    layer.table.assign([1], [[1e9, -1e9]])
    exported = export(
        layer, tmp_path / "model", signature=SPEC, quantize="float16"
    )
    rows = served(exported.path, tf.constant([1], tf.int64))
    np.testing.assert_array_equal(rows, [[65504.0, -65504.0]])
    assert exported.tables[0].max_error == np.float32(1e9) - np.float32(65504)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_int8_of_narrow_tables(dtype, tmp_path):
    layer = Embedding(4, dtype=dtype)
    layer(IDS, training=True)
    exported = export(
        layer, tmp_path / "model", signature=SPEC, quantize="int8"
    )
    rows = served(exported.path, tf.constant(IDS))
    assert rows.dtype == dtype
    expected = layer(IDS, training=False)
    np.testing.assert_allclose(
        tf.cast(rows, tf.float32), tf.cast(expected, tf.float32), atol=1e-3
    )


@pytest.mark.parametrize("quantize", ["float16", "int8"])
def test_numbers_that_have_no_small_ones(quantize, tmp_path):
    layer = Embedding(2)
    rows = [[np.nan, 1.0], [np.inf, 1.0], [1e-42, -1e-45], [0.5, 1.0]]
    layer.table.assign([1, 2, 3, 4], rows)
    exported = export(
        layer, tmp_path / "model", signature=SPEC, quantize=quantize
    )
    read = served(exported.path, tf.constant([1, 2, 3, 4], tf.int64))
    assert np.isnan(read[0, 0])
    np.testing.assert_allclose(read[2:], rows[2:], atol=0.005)
    # They are left out of the errors.
    assert exported.tables[0].max_error < 0.005
    assert exported.tables[0].rms_error < 0.005


def test_records_in_many_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("embedra.saved_model._table_files._CHUNK_BYTES", 256)
    layer = Embedding(4, embeddings_initializer="random_normal")
    layer(np.arange(500), training=True)
    path = export(layer, tmp_path / "model", signature=SPEC).path
    ids = tf.range(600, dtype=tf.int64)
    np.testing.assert_array_equal(served(path, ids), layer(ids, training=False))


def test_records_that_come_and_go_meanwhile(tmp_path, monkeypatch):
    layer = Embedding(4, embeddings_initializer=0.5)
    layer.table.assign(np.arange(500), np.ones((500, 4)))
    find = _ops.perfect_hash

    def find_and_change(keys):
        found = find(keys)
        layer.table.remove(np.arange(100))
        layer.table.assign(np.arange(1000, 1100), np.ones((100, 4)))
        return found

    monkeypatch.setattr(_ops, "perfect_hash", find_and_change)
    exported = export(layer, tmp_path / "model", signature=SPEC)
    assert exported.tables[0].keys == 400
    rows = served(exported.path, tf.range(2000, dtype=tf.int64))
    expected = np.full((2000, 4), 0.5)
    expected[100:500] = 1.0
    np.testing.assert_array_equal(rows, expected)


def test_text(layer, tmp_path):
    path = export(layer, tmp_path / "model", signature=SPEC, as_text=True).path
    assert not Path(path, "saved_model.pb").exists()
    assert "serving_default" in Path(path, "saved_model.pbtxt").read_text()
    rows = served(path, tf.constant(IDS))
    np.testing.assert_array_equal(rows, layer(IDS, training=False))


@pytest.mark.parametrize("native_ops", [False, True])
def test_extra_assets(native_ops, model, tmp_path):
    (tmp_path / "warmup").write_text("requests")
    (tmp_path / "notes").write_text("notes")
    path = export(
        model,
        tmp_path / "model",
        native_ops=native_ops,
        assets_extra={
            "tf_serving_warmup_requests": tmp_path / "warmup",
            "more/notes.txt": str(tmp_path / "notes"),
        },
    ).path
    extra = Path(path, "assets.extra")
    assert (extra / "tf_serving_warmup_requests").read_text() == "requests"
    assert (extra / "more" / "notes.txt").read_text() == "notes"
    assert (extra / "embedra.json").exists() == (not native_ops)
    listed = export(
        model, tmp_path / "listed", assets_extra=[tmp_path / "notes"]
    )
    assert Path(listed.path, "assets.extra", "notes").is_file()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"quantize": "int4"}, ValueError, "must be one of"),
        (
            {"quantize": "int8", "native_ops": True},
            ValueError,
            "keep their dtype",
        ),
        ({"signature": {}}, ValueError, "empty dict"),
        ({"signature": "ids"}, TypeError, "are described by"),
        ({"signature": {"a b": (lambda x: x, SPEC)}}, ValueError, "identifier"),
        ({"signature": {"f": lambda x: x}}, ValueError, "are unknown"),
        (
            {"signature": [tf.TensorSpec([None], tf.int64, "a")] * 2},
            ValueError,
            "different names",
        ),
        ({"assets_extra": ["nowhere"]}, FileNotFoundError, "nowhere"),
        ({"assets_extra": {"../x": __file__}}, ValueError, "below the folder"),
        ({"assets_extra": [__file__] * 2}, ValueError, "same name"),
        ({"assets_extra": __file__}, ValueError, "a list of files"),
        ({"assets_extra": 3}, ValueError, "a list of files"),
        ({"assets_extra": [3]}, TypeError, "must be a path"),
        ({"assets_extra": {3: __file__}}, TypeError, "must be a path"),
        (
            {"assets_extra": {"a": __file__, "a/b": __file__}},
            ValueError,
            "'a' cannot be a file and the folder of 'a/b'",
        ),
        ({"quantize": tf.float16}, ValueError, "must be one of"),
        ({"quantize": np.zeros(2)}, ValueError, "must be one of"),
        ({"native_ops": "no"}, TypeError, "`native_ops` must be True or"),
        ({"as_text": 3}, TypeError, "`as_text` must be True or"),
        ({"versioned": None}, TypeError, "`versioned` must be True or"),
        ({"overwrite": []}, TypeError, "`overwrite` must be True or"),
        ({"signature": []}, ValueError, "has no inputs"),
        ({"signature": lambda ids: ids}, TypeError, "without arguments"),
        ({"signature": {3: (lambda x: x, SPEC)}}, ValueError, "identifier"),
        ({"signature": {"f": (lambda x: x,)}}, ValueError, "are unknown"),
        ({"signature": tf.data.DatasetSpec(SPEC)}, TypeError, "described by"),
        (
            {"assets_extra": {"embedra.json": __file__}},
            ValueError,
            "another name",
        ),
    ],
)
def test_bad_arguments(options, error, message, model, tmp_path):
    with pytest.raises(error, match=message):
        export(model, tmp_path / "model", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", [3, None, "", b"model", ["model"]], ids=str)
def test_exports_go_to_a_path(folder, layer):
    with pytest.raises(TypeError, match="`export_dir` must be a path"):
        export(layer, folder, signature=SPEC)


def test_only_what_can_be_called_is_exported(tmp_path):
    with pytest.raises(TypeError, match="a Keras model or layer, or a func"):
        export(3, tmp_path / "model", signature=SPEC)


def test_unknown_inputs_ask_for_a_signature(layer, tmp_path):
    class Subclass(keras.Model):
        def call(self, ids):
            return layer(ids)

    with pytest.raises(ValueError, match="Pass `signature`"):
        export(Subclass(), tmp_path / "model")
    with pytest.raises(ValueError, match="are unknown"):
        export(lambda ids: ids, tmp_path / "model")


def test_resources_that_are_in_no_model(layer, tmp_path):
    words = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant(["a"]), tf.constant([1], tf.int64)
        ),
        0,
    )

    def rows(text):
        return layer(words.lookup(text), training=False)

    signature = {"serving_default": (rows, tf.TensorSpec([None], tf.string))}
    with pytest.raises(ValueError, match="does not own"):
        export(rows, tmp_path / "model", signature=signature)
    # A module has what it uses.
    module = tf.Module()
    module.words, module.layer = words, layer
    path = export(module, tmp_path / "model", signature=signature).path
    rows = served(path, tf.constant(["a", "b"]))
    np.testing.assert_allclose(rows, layer(np.array([1, 0]), training=False))
