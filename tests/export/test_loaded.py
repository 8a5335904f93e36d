"""What loads an export, and how it is used there."""

import os
import threading
from pathlib import Path

import numpy as np
import tensorflow as tf

from embedra.layers import Embedding
from embedra.saved_model import export

from .models import IDS, SEEN, assert_same, dense_model, reload, trained


def test_loaded_models_are_copies(tmp_path):
    model = dense_model()
    ids = tf.constant(IDS)
    expected = model(ids, training=False)
    loaded = reload(model, tmp_path / "model")
    trained_on = model.layers[1]
    trained_on.table.assign(SEEN, np.ones((6, 3)))
    assert_same(loaded.serve(ids), expected)


def test_sessions_load_it_as_servers_do(tmp_path):
    model = dense_model()
    expected = model(tf.constant(IDS), training=False)
    path = export(model, tmp_path / "model").path
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], path)
        signature = graph.signature_def["serving_default"]
        given = signature.inputs["ids"]
        assert [d.size for d in given.tensor_shape.dim] == [-1, -1]
        rows = session.run(
            signature.outputs["output_0"].name, {given.name: IDS}
        )
    np.testing.assert_allclose(rows, expected, atol=1e-6)


def test_s04_constants_for_variables(tmp_path):
    from tensorflow.python.framework.convert_to_constants import (
        convert_variables_to_constants_v2,
    )

    model = dense_model()
    loaded = reload(model, tmp_path / "model")
    signature = loaded.signatures["serving_default"]
    frozen = convert_variables_to_constants_v2(signature)
    assert not frozen.variables
    assert [given.dtype for given in frozen.inputs] == [tf.int64]
    ids = tf.constant(IDS)
    expected = model(ids, training=False)
    assert_same(tf.nest.flatten(frozen(ids))[0], expected)


def test_c12_rows_are_not_in_the_graph(tmp_path):
    layer = Embedding(16, embeddings_initializer=np.linspace(0, 1, 16))
    sizes = []
    for count in (1_000, 100_000):
        layer.table.lookup(np.arange(count), insert=True)
        path = export(
            layer,
            tmp_path / str(count),
            signature=tf.TensorSpec([None], tf.int64),
        ).path
        sizes.append(os.path.getsize(f"{path}/saved_model.pb"))
        files = Path(path, "variables").iterdir()
        assert sum(file.stat().st_size for file in files) > 64 * count
    assert sizes[0] == sizes[1] < 2**16


def test_l15_threads_get_their_own_answers(tmp_path):
    layer = trained(Embedding(4), np.arange(1000))
    spec = tf.TensorSpec([None], tf.int64)

    def echo(ids):
        return {"ids": ids, "rows": layer(ids, training=False)}

    signature = {"serving_default": (echo, spec)}
    loaded = reload(layer, tmp_path / "model", signature=signature)
    serve = loaded.signatures["serving_default"]
    rows = layer(np.arange(2000), training=False).numpy()
    wrong = []

    def client(number):
        random = np.random.default_rng(number)
        for _ in range(625):
            ids = random.integers(0, 2000, random.integers(1, 100))
            answer = serve(tf.constant(ids))
            same = np.array_equal(answer["ids"], ids)
            if not same or not np.allclose(answer["rows"], rows[ids]):
                wrong.append(number)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
