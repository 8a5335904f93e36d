"""The layer in every kind of Keras model, and Keras beside the library."""

import functools
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra import DynamicEmbeddingOptimizer
from embedra.layers import Embedding

from .reference import (
    assert_close,
    assert_same_records,
    embedding_with,
    fit,
    network,
    random_rows,
    records_of,
    repeatable,
    rows_of,
)


INITIALIZERS = {
    "string": "random_normal",
    "object": keras.initializers.RandomUniform(1.0, 2.0, seed=5),
    "partial": functools.partial(tf.random.uniform, minval=1.0, maxval=2.0),
    "partial_of_class": functools.partial(
        keras.initializers.RandomUniform, minval=1.0, maxval=2.0
    ),
    "number": 1.5,
}


@pytest.mark.parametrize("name", INITIALIZERS)
@pytest.mark.parametrize("way", ["from_config", "clone_model", "json"])
def test_k03_copies_have_equal_config_and_a_table_of_their_own(way, name):
    layer = Embedding(
        3,
        combiner=None,
        embeddings_initializer=INITIALIZERS[name],
        key_dtype="int64",
        initial_capacity=100,
        inference_default=[1.0, 2.0, 3.0],
        mask_zero=True,
        name="ids",
    )
    ids = keras.Input((2,), dtype="int64")
    model = keras.Model(ids, layer(ids))
    layer(np.array([1, 2]), training=True)
    if way == "from_config":
        copy = Embedding.from_config(layer.get_config())
    elif way == "clone_model":
        copy = keras.models.clone_model(model).get_layer("ids")
    else:
        copy = keras.models.model_from_json(model.to_json()).get_layer("ids")
    assert copy.get_config() == layer.get_config()
    assert int(copy.table.size()) == 0
    np.testing.assert_array_equal(copy(np.array([[9]])), [[[1.0, 2.0, 3.0]]])

    rows = np.asarray(copy(np.array([[1, 7]]), training=True))
    assert int(layer.table.size()) == 2
    if name != "string":
        assert np.all((rows >= 1.0) & (rows < 2.0))
    if name != "number":
        assert len(np.unique(rows)) == 6


@keras.saving.register_keras_serializable(package="acceptance")
def between_1_and_2(shape):
    return tf.random.uniform(shape, 1.0, 2.0)


def test_k03_a_registered_function_as_initializer_survives_json():
    layer = Embedding(3, embeddings_initializer=between_1_and_2, name="ids")
    text = network(layer, 1).to_json()
    copy = keras.models.model_from_json(text).get_layer("ids")
    assert copy.get_config() == layer.get_config()
    rows = np.asarray(copy(np.array([1, 7]), training=True))
    assert np.all((rows >= 1.0) & (rows < 2.0))
    assert len(np.unique(rows)) == 6


def _forms():
    """The same network in four forms, as functions that build it."""

    def dense():
        kernel = keras.initializers.RandomNormal(seed=7)
        return keras.layers.Dense(1, kernel_initializer=kernel)

    class Subclass(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = [repeatable(3), keras.layers.Flatten(), dense()]

        def call(self, ids, training=None):
            rows = self.parts[0](ids, training=training)
            return self.parts[2](self.parts[1](rows))

    class SubclassUnawareOfTraining(Subclass):
        def call(self, ids):
            rows = self.parts[0](ids)
            return self.parts[2](self.parts[1](rows))

    def sequential():
        return keras.Sequential(
            [repeatable(3), keras.layers.Flatten(), dense()]
        )

    def functional():
        return network(repeatable(3), 2)

    def nested():
        ids = keras.Input((2,), dtype="int64")
        inner = keras.Model(ids, keras.layers.Flatten()(repeatable(3)(ids)))
        again = keras.Input((2,), dtype="int64")
        return keras.Model(again, dense()(inner(again)))

    forms = [sequential, functional, nested, Subclass]
    return {f.__name__: f for f in [*forms, SubclassUnawareOfTraining]}


@pytest.mark.parametrize("form", _forms())
def test_k04_every_form_of_model_has_the_same_loss_curve(form):
    ids = np.random.default_rng(1).integers(-5, 15, size=(32, 2))
    labels = random_rows(32, 1)
    curves = []
    for name in ("functional", form):
        model = _forms()[name]()
        model.compile("adam", "mse")
        kwargs = {"batch_size": 8, "epochs": 4, "shuffle": False, "verbose": 0}
        curves.append(model.fit(ids, labels, **kwargs).history["loss"])
    assert curves[0][-1] < curves[0][0]
    assert_close(curves[1], curves[0], tolerance=1e-6)


def test_k04_a_functional_model_of_stock_layers_can_be_converted():
    ids = keras.Input((2,), dtype="int64")
    stock = keras.layers.Embedding(20, 3, name="ids")
    flat = keras.layers.Flatten()(stock(ids))
    model = keras.Model(ids, keras.layers.Dense(1)(flat))

    def convert(layer):
        if isinstance(layer, keras.layers.Embedding):
            return Embedding(layer.output_dim, name=layer.name)
        return layer.__class__.from_config(layer.get_config())

    converted = keras.models.clone_model(model, clone_function=convert)
    table = converted.get_layer("ids").table
    table.assign(np.arange(20), stock.get_weights()[0])
    converted.layers[-1].set_weights(model.layers[-1].get_weights())
    batch = np.random.default_rng(0).integers(0, 20, size=(8, 2))
    assert_close(converted(batch), model(batch))
    fit(converted, "adam", batch + 10**9, np.ones((8, 1)), batch_size=8)
    assert int(table.size()) > 20


PLAIN_KERAS = """
import sys
if sys.argv[1] == "with":
    import embedra
import keras
import numpy as np
keras.utils.set_random_seed(3)
model = keras.Sequential(
    [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)]
)
model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
generator = np.random.default_rng(0)
x, y = generator.normal(size=(64, 8)), generator.normal(size=(64, 1))
history = model.fit(x, y, epochs=3, batch_size=16, verbose=0).history
model.save(sys.argv[2])
loaded = keras.saving.load_model(sys.argv[2])
for model in (model, loaded):
    print([w.tobytes().hex() for w in model.get_weights()])
    print(model.predict(x, verbose=0).tobytes().hex())
    print([np.asarray(v).tobytes().hex() for v in model.optimizer.variables])
print(history)
assert ("embedra" in sys.modules) == (sys.argv[1] == "with")
"""

PUBLIC_NAMES = """
import types
import keras
import tensorflow as tf

def name_of(module):  # without loading a lazy one
    names = types.ModuleType.__getattribute__(module, "__dict__")
    return names.get("__name__", "")

def collect(module, seen, found):
    if id(module) in seen:
        return
    seen[id(module)] = module
    path = name_of(module)
    for name in dir(module):
        try:
            value = getattr(module, name)
        except Exception:  # names that this build leaves out
            continue
        found[path, name] = value
        if isinstance(value, types.ModuleType):
            package, *rest = name_of(value).split(".")
            if package in ("tensorflow", "keras"):
                if rest and rest[0] not in ("python", "src"):
                    collect(value, seen, found)
        elif isinstance(value, type) and id(value) not in seen:
            seen[id(value)] = value
            for member, content in list(vars(value).items()):
                found[path, name, member] = content

def everything():
    seen, found = {}, {}
    collect(tf, seen, found)
    collect(keras, seen, found)
    return found

everything()
before = everything()
import embedra
after = everything()
known = {"__abstractmethods__", "_abc_impl", "__annotations__", "__doc__"}
changed = [
    name
    for name in before.keys() | after.keys()
    if before.get(name) is not after.get(name) and name[-1] not in known
]
assert len(before) > 10_000, len(before)
assert not changed, changed[:20]
print("unchanged", len(before))
"""


def _python(script, *arguments):
    command = [sys.executable, "-c", script, *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.multiprocess
def test_k07_stock_keras_gives_the_same_bytes_with_the_library_imported(
    tmp_path,
):
    path = str(tmp_path / "plain.keras")
    without = _python(PLAIN_KERAS, "without", path)
    assert len(without) > 4000
    assert _python(PLAIN_KERAS, "with", path) == without


@pytest.mark.multiprocess
def test_k07_importing_the_library_changes_no_public_name():
    assert "unchanged" in _python(PUBLIC_NAMES)


@pytest.mark.parametrize("combiner", [None, "mean"])
@pytest.mark.parametrize("wrap", [lambda o: o, DynamicEmbeddingOptimizer])
def test_k09_inference_changes_nothing(combiner, wrap):
    seen = np.random.default_rng(0).integers(0, 9, size=(32, 2))
    layer = Embedding(3, combiner=combiner)
    model = network(layer, 2)
    optimizer = wrap(keras.optimizers.Adam())
    fit(model, optimizer, seen, random_rows(32, 1), batch_size=8)
    before, step = records_of(layer.table), int(layer.table.step)
    counts = layer.table.statistics()
    unseen = np.concatenate([seen, seen + 1000])
    model.evaluate(unseen, random_rows(64, 1), verbose=0)
    model.predict(unseen, verbose=0)
    model(unseen)
    model(unseen, training=False)
    layer(unseen)
    tf.function(model)(tf.constant(unseen))
    model.test_on_batch(unseen, random_rows(64, 1))
    model.predict_on_batch(unseen)
    assert len(before) == 9
    assert_same_records(records_of(layer.table), before)
    assert int(layer.table.step) == step == 4
    assert int(layer.table.size()) == 9
    after = layer.table.statistics()
    for counter in ("inserts", "removes", "updates", "capacity", "bytes"):
        assert getattr(after, counter) == getattr(counts, counter), counter


def test_k09_validation_inside_fit_inserts_nothing():
    layer = Embedding(3)
    model = network(layer, 2)
    data = (np.array([[1, 2]]), np.ones((1, 1)))
    held_out = (np.array([[3, 4]]), np.ones((1, 1)))
    model.compile("adam", "mse")
    model.fit(*data, validation_data=held_out, epochs=2, verbose=0)
    assert set(records_of(layer.table)) == {1, 2}


def test_k09_a_gradient_through_inference_inserts_nothing():
    layer = embedding_with([1], random_rows(1, 3))
    ids = np.array([1, 99, 1])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids, training=False))
    gradients = tape.gradient(loss, layer.trainable_variables)
    start = rows_of(layer, [1])
    keras.optimizers.SGD(1.0).apply(gradients, layer.trainable_variables)
    assert set(records_of(layer.table)) == {1}
    assert_close(rows_of(layer, [1]), start - 2.0)


def test_a_mask_marks_id_zero_and_zero_keeps_a_row():
    layer = Embedding(3, mask_zero=True)
    ids = np.array([[0, 4, 0], [-1, 2, 3]])
    mask = layer.compute_mask(keras.ops.convert_to_tensor(ids))
    np.testing.assert_array_equal(mask, ids != 0)
    layer(ids, training=True)
    assert int(layer.table.size()) == 5
    assert np.any(rows_of(layer, [0]) != 0)
