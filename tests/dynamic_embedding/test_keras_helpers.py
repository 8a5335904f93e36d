"""de.keras.callbacks, de.keras.models, and what needs several processes."""

import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from dynamic_embedding.keras_models import (
    DIM,
    assert_same_records,
    batches,
    fit,
    network,
)


UNSEEN = np.arange(8).reshape(2, 4)


def _trained():
    layer = de.keras.layers.Embedding(DIM, name="ids")
    model = network(layer)
    fit(model, keras.optimizers.Adam(0.1))
    return model, layer


def test_importing_the_namespace_imports_no_tf_keras():
    code = """
        import sys
        import embedra
        assert "embedra.dynamic_embedding" not in sys.modules
        import embedra.dynamic_embedding as de
        assert de.keras.layers.Embedding
        assert "tf_keras" not in sys.modules
        sys.modules["tf_keras"] = None
        try:
            de.keras.legacy.layers
        except ImportError as error:
            assert "tf_keras, which is not installed" in str(error)
        else:
            raise AssertionError
        try:
            de.keras.legacy.nothing
        except AttributeError as error:
            assert "has no attribute 'nothing'" in str(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    subprocess.run(command, check=True, timeout=300)


# SavedModels.


def test_a_saved_model_serves_and_is_trained_on(tmp_path):
    model, layer = _trained()
    folder = tmp_path / "model"
    de.keras.models.de_save_model(model, folder)
    served = tf.saved_model.load(str(folder))
    np.testing.assert_allclose(served.serve(UNSEEN), model(UNSEEN), atol=1e-6)
    loaded = de.keras.models.load_model(folder)
    assert_same_records(loaded.get_layer("ids"), layer)
    loaded.run_eagerly = True
    for batch in batches(2, 9):
        model.train_on_batch(*batch)
        loaded.train_on_batch(*batch)
    assert_same_records(loaded.get_layer("ids"), layer)


def test_a_saved_model_without_optimizer_only_serves(tmp_path):
    model, _ = _trained()
    save = de.keras.models.de_hvd_save_model
    save(model, tmp_path)
    assert (tmp_path / "assets.extra" / "model.keras").exists()
    save(model, tmp_path, include_optimizer=False)
    assert tf.saved_model.load(str(tmp_path)).serve(UNSEEN).shape == (2, 1)
    with pytest.raises(ValueError, match="holds no Keras model to train on"):
        de.keras.models.load_model(tmp_path)


def test_signatures_and_options(tmp_path):
    model, layer = _trained()

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.int64)])
    def rows(ids):
        return {"rows": layer(ids)}

    de.keras.models.save_model(
        model,
        tmp_path,
        signatures={"rows": rows},
        options=tf.saved_model.SaveOptions(),
    )
    served = tf.saved_model.load(str(tmp_path)).signatures["rows"]
    ids = tf.range(4, dtype=tf.int64)
    np.testing.assert_array_equal(served(ids)["rows"], layer(ids))


def test_a_keras_file_alone(tmp_path):
    model, layer = _trained()
    path = tmp_path / "model.keras"
    de.keras.models.de_save_model(model, path)
    assert_same_records(
        de.keras.models.load_model(path).get_layer("ids"), layer
    )
    with pytest.raises(FileExistsError, match="overwrite=False"):
        de.keras.models.de_save_model(model, path, overwrite=False)
    with pytest.raises(ValueError, match="holds the model's optimizer"):
        de.keras.models.de_save_model(model, path, include_optimizer=False)


# Callbacks.


def test_a_checkpoint_callback_keeps_tables(tmp_path):
    model, layer = _trained()
    ids, labels = next(batches())
    model.fit(
        ids,
        labels,
        verbose=0,
        callbacks=[
            de.keras.callbacks.DEHvdBroadcastGlobalVariablesCallback(0),
            de.keras.callbacks.DEHvdModelCheckpoint(tmp_path / "m.keras"),
            de.keras.callbacks.ModelCheckpoint(
                tmp_path / "m.weights.h5", save_weights_only=True
            ),
        ],
    )
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert_same_records(loaded.get_layer("ids"), layer)
    other, restored = _trained()
    other.load_weights(tmp_path / "m.weights.h5")
    assert_same_records(restored, layer)


# Several processes.


def test_all_to_all_in_one_process_is_the_embedding():
    ids = np.array([[1, 2], [2, 3]])
    layer = de.keras.layers.HvdAllToAllEmbedding(
        embedding_size=DIM, mpi_size=1, initializer="ones", name="ids"
    )
    np.testing.assert_array_equal(layer(ids), np.ones((2, 2, DIM)))
    by_position = de.keras.layers.HvdAllToAllEmbedding(
        True, True, None, None, DIM, tf.int32
    )
    assert by_position(ids).shape == (2, 2, DIM)
    assert by_position.params.key_dtype == tf.int32


@pytest.mark.parametrize(
    "make",
    [
        lambda: de.keras.callbacks.DEHvdModelCheckpoint("m.keras"),
        lambda: de.keras.models.de_save_model(None, "model"),
    ],
    ids=["callback", "de_save_model"],
)
def test_processes_that_horovod_alone_knows_are_refused(make, monkeypatch):
    class Horovod:
        is_initialized = staticmethod(lambda: True)
        size = staticmethod(lambda: 3)

    monkeypatch.setitem(sys.modules, "horovod.tensorflow", Horovod)
    with pytest.raises(NotImplementedError, match="one of 3 processes"):
        make()


def test_number_of_processes_is_that_of_the_launcher():
    layer = de.keras.layers.HvdAllToAllEmbedding(mpi_size=1, embedding_size=DIM)
    assert layer.size() == 0
    with pytest.raises(ValueError, match=r"processes that train, 1\..*=2"):
        de.keras.layers.HvdAllToAllEmbedding(mpi_size=2, embedding_size=DIM)
