"""Everything about a table survives every way of saving."""

import subprocess
import sys
import textwrap
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.layers import Embedding
from embedra.optimizers import DynamicEmbeddingOptimizer


_MODULE = """
import keras, numpy as np, tensorflow as tf
from embedra.optimizers import DynamicEmbeddingOptimizer
from embedra.layers import Embedding

def make_model(dim=4, name="ids", dtype=None):
    ids = keras.Input((3,), dtype="int64")
    rows = Embedding(dim, name=name, dtype=dtype)(ids)
    words = keras.Input((2,), dtype="string")
    pooled = Embedding(2, combiner="mean", name="words", key_dtype="string",
                       optimizer=keras.optimizers.Ftrl(0.1))(words)
    x = keras.layers.Concatenate()([keras.layers.Flatten()(rows), pooled])
    return keras.Model([ids, words], keras.layers.Dense(1)(x))

def data(step, n=8):
    rng = np.random.default_rng(step)
    ids = rng.integers(-50 - step, 50 + step, (n, 3))
    words = rng.integers(0, 30 + step, (n, 2)).astype(str).astype(object)
    return [ids, tf.constant(words)], rng.normal(size=(n, 1))

def train(model, steps):
    for step in steps:
        x, y = data(step)
        model.train_on_batch(x, y)

def answers(model):
    return model.predict(data(100)[0], verbose=0)

def records(layer):
    chunks = list(layer.table.export_chunks())
    columns = [np.concatenate(c) for c in zip(*chunks)]
    order = np.argsort(columns[0])
    return [c[order] for c in columns] + [np.int64(layer.table.step)]

def schedule():
    return keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.7)

OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(schedule()),
    "nadam": lambda: keras.optimizers.Nadam(0.01),
    "adagrad": lambda: "adagrad",
    "wrapped": lambda: DynamicEmbeddingOptimizer(
        keras.optimizers.Adam(0.01, global_clipnorm=0.1)),
    "accumulating": lambda: DynamicEmbeddingOptimizer(
        keras.optimizers.Adam(0.01, gradient_accumulation_steps=3)),
    "scaled": lambda: keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.1, momentum=0.5)),
}
"""
# Keras warns of each container that holds what it could not load.
_LIST_OF_FAILURES = pytest.mark.filterwarnings(
    "ignore:Skipping nested container:UserWarning"
)

exec(_MODULE)


def _trained(optimizer="adam", steps=5, **kwargs):
    model = make_model(**kwargs)  # noqa: F821
    model.compile(OPTIMIZERS[optimizer](), "mse")  # noqa: F821
    train(model, range(steps))  # noqa: F821
    return model


def _in_a_new_process(folder, code):
    """Runs code after `_MODULE`; what it leaves in `out` comes back."""
    script = _MODULE + textwrap.dedent(code)
    script += f"\nnp.savez(r'{folder}/out.npz', **out)\n"
    (folder / "script.py").write_text(script)
    subprocess.run(
        [sys.executable, str(folder / "script.py")], check=True, timeout=300
    )
    return np.load(folder / "out.npz")


def _flat(model):
    """All state of the model's tables and its answers, by name."""
    state = {"answers": answers(model)}  # noqa: F821
    for name in ("ids", "words"):
        for i, column in enumerate(records(model.get_layer(name))):  # noqa: F821
            state[f"{name}_{i}"] = column
    return state


_COLLECT = """
out = {"answers": answers(model)}
for name in ("ids", "words"):
    for i, column in enumerate(records(model.get_layer(name))):
        out[f"{name}_{i}"] = column
"""


def _assert_same(found, expected):
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.multiprocess
@pytest.mark.parametrize(
    "optimizer",
    ["adam", "nadam", "adagrad", "wrapped", "accumulating", "scaled"],
)
def test_keras_file_continues_bit_for_bit_in_a_new_process(tmp_path, optimizer):
    model = _trained(optimizer)
    model.save(tmp_path / "m.keras")
    train(model, range(5, 9))  # noqa: F821
    found = _in_a_new_process(
        tmp_path,
        f"""
        model = keras.models.load_model(r"{tmp_path}/m.keras")
        train(model, range(5, 9))
        """
        + textwrap.indent(_COLLECT, " " * 8),
    )
    _assert_same(found, _flat(model))


@pytest.mark.multiprocess
@pytest.mark.parametrize(
    "optimizer", ["adam", "nadam", "wrapped", "accumulating"]
)
def test_checkpoint_continues_bit_for_bit_in_a_new_process(tmp_path, optimizer):
    model = _trained(optimizer)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    train(model, range(5, 9))  # noqa: F821
    found = _in_a_new_process(
        tmp_path,
        f"""
        model = make_model()
        model.compile(OPTIMIZERS["{optimizer}"](), "mse")
        model.optimizer.build(model.trainable_variables)
        checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        checkpoint.restore(r"{path}").assert_existing_objects_matched()
        train(model, range(5, 9))
        """
        + textwrap.indent(_COLLECT, " " * 8),
    )
    _assert_same(found, _flat(model))


@pytest.mark.multiprocess
def test_weights_restore_into_a_model_never_called(tmp_path):
    model = _trained()
    model.save_weights(tmp_path / "m.weights.h5")
    found = _in_a_new_process(
        tmp_path,
        f"""
        model = make_model()
        model.load_weights(r"{tmp_path}/m.weights.h5")
        """
        + textwrap.indent(_COLLECT, " " * 8),
    )
    _assert_same(found, _flat(model))


@pytest.mark.multiprocess
@pytest.mark.parametrize("how", ["export", "save"])
def test_saved_model_answers_in_a_new_process(tmp_path, how):
    model = _trained()
    if how == "export":
        model.export(tmp_path / "sm", verbose=False)
    else:
        tf.saved_model.save(model, str(tmp_path / "sm"))
    found = _in_a_new_process(
        tmp_path,
        f"""
        loaded = tf.saved_model.load(r"{tmp_path}/sm")
        serve = loaded.signatures["serving_default"]
        names = sorted(serve.structured_input_signature[1])
        inputs = [tf.constant(x) for x in data(100)[0]]
        answer = serve(**dict(zip(names, inputs, strict=True)))
        out = {{"answers": next(iter(answer.values()))}}
        """,
    )
    expected = answers(model)  # noqa: F821
    np.testing.assert_allclose(found["answers"], expected, rtol=1e-6)


def _layers_of(model):
    """A checkpoint of a model's layers without its optimizer."""
    layers = {f"layer_{i}": layer for i, layer in enumerate(model.layers)}
    return tf.train.Checkpoint(**layers)


def test_restoring_replaces_a_table_that_is_not_empty(tmp_path):
    model = _trained()
    path = _layers_of(model).save(str(tmp_path / "ckpt"))
    model.save_weights(tmp_path / "m.weights.h5")
    expected = _flat(model)
    other = make_model()  # noqa: F821
    other.compile(OPTIMIZERS["adam"](), "mse")  # noqa: F821
    train(other, range(50, 60))  # noqa: F821
    _layers_of(other).restore(path)
    _assert_same(_flat(other), expected)
    train(other, range(60, 64))  # noqa: F821
    other.load_weights(tmp_path / "m.weights.h5")
    _assert_same(_flat(other), expected)


@_LIST_OF_FAILURES
@pytest.mark.parametrize("how", ["weights", "checkpoint"])
@pytest.mark.parametrize(
    ("change", "named"),
    [({"dim": 5}, "dim=4 in the file, 5"), ({"dtype": "bfloat16"}, "dtype=")],
)
def test_tables_that_do_not_fit_are_refused_unchanged(
    tmp_path, how, change, named
):
    model = _trained()
    other = make_model(**change)  # noqa: F821
    layer = other.get_layer("ids")
    layer.table.assign([1], np.ones((1, layer.output_dim)))
    if how == "weights":
        model.save_weights(tmp_path / "m.weights.h5")
        restore = lambda: other.load_weights(tmp_path / "m.weights.h5")  # noqa: E731
    else:
        path = tf.train.Checkpoint(ids=model.get_layer("ids")).save(
            str(tmp_path / "ckpt")
        )
        restore = lambda: tf.train.Checkpoint(ids=layer).restore(path)  # noqa: E731
    with pytest.raises(ValueError, match=named) as raised:
        restore()
    assert "'ids'" in str(raised.value)
    assert layer.size() == 1


@_LIST_OF_FAILURES
def test_weights_of_another_name_are_refused(tmp_path):
    _trained().save_weights(tmp_path / "m.weights.h5")
    other = make_model(name="users")  # noqa: F821
    with pytest.raises(
        ValueError, match="'ids' where the model has layer 'users'"
    ):
        other.load_weights(tmp_path / "m.weights.h5")


@_LIST_OF_FAILURES
def test_file_without_tables_is_refused(tmp_path):
    def stock():
        ids = keras.Input((3,), dtype="int64")
        return ids, keras.layers.Flatten()

    ids, flatten = stock()
    keras.Model(
        ids, keras.layers.Dense(1)(flatten(keras.layers.Embedding(9, 4)(ids)))
    ).save_weights(tmp_path / "m.weights.h5")
    ids, flatten = stock()
    ours = keras.Model(ids, keras.layers.Dense(1)(flatten(Embedding(4)(ids))))
    with pytest.raises(ValueError, match="no table state"):
        ours.load_weights(tmp_path / "m.weights.h5")


def test_large_table_is_written_in_chunks(tmp_path):
    layer = Embedding(2, name="big")
    ids = keras.Input((1,), dtype="int64")
    model = keras.Model(ids, layer(ids))
    layer.table.lookup(np.arange(150_000), insert=True)
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    assert again.get_layer("big").size() == 150_000
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "ckpt"))
    sizes = [
        int(np.prod(shape))
        for name, shape in tf.train.list_variables(path)
        if "rows_" in name
    ]
    assert sizes == [65_536 * 2, 65_536 * 2, 18_928 * 2]
    layer.table.clear()
    tf.train.Checkpoint(model=model).restore(path).expect_partial()
    assert layer.size() == 150_000


def test_config_in_the_keras_file_has_no_rows(tmp_path):
    model = _trained()
    model.save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        assert len(archive.read("config.json")) < 20_000


def test_initial_rows_go_on_under_another_name(tmp_path):
    first = Embedding(4, name="embedding_7")
    ids = keras.Input((1,), dtype="int64")
    keras.Model(ids, first(ids)).save_weights(tmp_path / "m.weights.h5")
    second = Embedding(4, name="embedding_8")
    ids = keras.Input((1,), dtype="int64")
    keras.Model(ids, second(ids)).load_weights(tmp_path / "m.weights.h5")
    fresh = np.array([1, 2, 3])
    np.testing.assert_array_equal(first(fresh), second(fresh))


def test_wrapper_is_restored_as_a_wrapper(tmp_path):
    model = _trained("wrapped")
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    assert type(again.optimizer).__name__ == "DynamicEmbeddingAdam"
    assert again.optimizer.global_clipnorm == 0.1
    assert DynamicEmbeddingOptimizer(again.optimizer) is again.optimizer
