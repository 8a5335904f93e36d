"""Weights and tables from checkpoints, before and after a model is built."""

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
from click_training import Network, compiled, data, functional, table_of


IDS = np.array([[1, 2, 3], [9, 4, 1], [10**12, 5, 6]])
FORMS = {"subclass": Network, "functional": functional}


@pytest.fixture(scope="module", params=FORMS)
def trained(request, tmp_path_factory):
    """A form of the model, and a folder that its training wrote to."""
    keras.utils.set_random_seed(1)
    folder = tmp_path_factory.mktemp(request.param)
    model = compiled(FORMS[request.param]())
    model.fit(data(2), epochs=2, verbose=0, checkpoint_dir=folder)
    return FORMS[request.param], model, folder


def new_model(form):
    """Other weights than those of the checkpoint."""
    model = form()
    for layer in model.layers:
        if isinstance(layer, keras.layers.Dense):
            layer.kernel_initializer = keras.initializers.GlorotNormal(99)
    return model


@pytest.mark.parametrize(
    ("when", "by"),
    [
        ("unbuilt", "folder"),
        ("built", "prefix"),
        ("compiled", "folder"),
        ("fitted", "prefix"),
    ],
)
def test_k02_weights_load_whenever_and_by_folder_or_prefix(trained, when, by):
    form, model, folder = trained
    path = str(folder)
    if by == "prefix":
        path = str(folder / "ckpt-2")
    other = new_model(form)
    if when == "compiled":
        compiled(other)
    elif when == "built":
        other(IDS)
    elif when == "fitted":
        compiled(other).fit(data(1, start=500), verbose=0)
    report = other.load_weights(path)
    np.testing.assert_array_equal(
        other.predict(IDS, verbose=0), model.predict(IDS, verbose=0)
    )
    assert not report.pending
    assert (len(report.variables), report.tables) == (4, ["rows"])
    assert (report.skipped, report.unused) == ({}, [])
    assert int(table_of(other).size()) == int(table_of(model).size())


def test_an_unbuilt_model_loads_at_its_first_call(trained):
    form, model, folder = trained
    other = form()
    report = other.load_weights(folder)
    if form is Network:
        assert report.pending
        assert "when the model is built" in str(report)
    first = other(IDS, training=False)
    np.testing.assert_array_equal(first, model(IDS, training=False))
    assert not report.pending


def test_weights_loaded_before_training_are_trained_on(trained):
    form, _, folder = trained
    curves = []
    for early in (True, False):
        model = compiled(form(dropout=0.0) if form is Network else form())
        if early:
            model.load_weights(folder)
        else:
            model(IDS)
            model.load_weights(folder)
        curves.append(model.fit(data(2), verbose=0).history["loss"])
    np.testing.assert_allclose(*curves, rtol=1e-6)


def test_k11_what_is_missing_unused_or_of_another_shape_is_reported(
    tmp_path, caplog
):
    compiled(functional()).fit(data(1), verbose=0, checkpoint_dir=tmp_path)
    model = functional(hidden="other", units=2)
    before = [weight.numpy() for weight in model.get_layer("score").weights]
    with caplog.at_level(logging.INFO, "embedra"):
        report = model.load_weights(tmp_path)
    assert (report.variables, report.tables) == ([], ["rows"])
    assert report.skipped == {
        "other/kernel": "it is not in the checkpoint",
        "other/bias": "it is not in the checkpoint",
        "score/kernel": "it has shape (4, 2), and (4, 1) in the checkpoint",
        "score/bias": "it has shape (2,), and (1,) in the checkpoint",
    }
    assert report.unused == ["hidden/bias", "hidden/kernel"]
    assert str(report) in caplog.text
    assert "0 variables and 1 tables loaded" in caplog.text
    after = [weight.numpy() for weight in model.get_layer("score").weights]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_k11_strict_loading_raises_and_changes_nothing(tmp_path):
    compiled(functional()).fit(data(1), verbose=0, checkpoint_dir=tmp_path)
    model = functional(hidden="other", units=2)
    with pytest.raises(hb.keras.MismatchError, match="other/kernel"):
        model.load_weights(tmp_path, skip_mismatched=False)
    assert int(table_of(model).size()) == 0


def test_k02_a_table_of_another_width_is_not_loaded(tmp_path):
    compiled(functional()).fit(data(1), verbose=0, checkpoint_dir=tmp_path)
    model = functional(width=5)
    report = model.load_weights(tmp_path)
    assert "dim=4 in the file, 5 in the table" in report.skipped["rows"]
    assert int(table_of(model).size()) == 0


def test_a_scope_loads_a_part(tmp_path):
    trained = compiled(functional())
    trained.fit(data(1), verbose=0, checkpoint_dir=tmp_path)
    model = functional()
    report = model.load_weights(tmp_path, scope="hidden")
    assert report.variables == ["hidden/kernel", "hidden/bias"]
    assert (report.tables, report.skipped) == ([], {})
    np.testing.assert_array_equal(
        model.get_layer("hidden").kernel, trained.get_layer("hidden").kernel
    )
    assert int(table_of(model).size()) == 0


def test_layers_of_a_functional_model_are_found_by_name(tmp_path):
    def model(order):
        ids = keras.Input((2,))
        parts = [keras.layers.Dense(2, name=name)(ids) for name in order]
        return hb.keras.Model(ids, parts)

    saved = model(["a", "b"])
    tf.train.Checkpoint(saved).write(str(tmp_path / "own"))
    other = model(["b", "a"])
    assert len(other.load_weights(tmp_path / "own").variables) == 4
    for name in ("a", "b"):
        np.testing.assert_array_equal(
            other.get_layer(name).kernel, saved.get_layer(name).kernel
        )


class Listed(hb.keras.Model):
    """Keeps its layers where TensorFlow does not look for them."""

    def __init__(self, names=("a", "b")):
        super().__init__()
        self.inside = keras.Sequential([keras.layers.Dense(2)])
        self.tables = [
            hb.layers.Embedding(2, combiner="sum", name=name) for name in names
        ]
        self.heads = {
            "one": keras.layers.Dense(2),
            "two": [keras.layers.Dense(1)],
        }

    def call(self, ids):
        tables = {table.name: table for table in self.tables}
        rows = tables["a"](ids) + tables["b"](ids * 2)
        return self.heads["two"][0](self.heads["one"](self.inside(rows)))


def test_layers_in_lists_and_dicts_are_saved_and_loaded(tmp_path):
    model = Listed()
    model.compile("adam", "mse")
    model.fit(data(2), verbose=0, checkpoint_dir=tmp_path)
    other = Listed(names=("b", "a"))  # tables are found by name
    report = other.load_weights(tmp_path)
    np.testing.assert_array_equal(
        other.predict(IDS, verbose=0), model.predict(IDS, verbose=0)
    )
    assert (len(report.variables), sorted(report.tables)) == (6, ["a", "b"])
    assert (report.skipped, report.unused) == ({}, [])
    again = Listed()
    again.compile("adam", "mse")
    again.fit(data(2), epochs=2, verbose=0, checkpoint_dir=tmp_path)
    model.fit(data(2), initial_epoch=1, epochs=2, verbose=0)
    np.testing.assert_array_equal(
        again.predict(IDS, verbose=0), model.predict(IDS, verbose=0)
    )


def test_slots_of_the_optimizer_begin_anew(trained):
    form, _, folder = trained
    model = form()
    model(IDS)
    model.load_weights(folder)
    assert table_of(model).slot_names == ()


def test_files_of_keras_still_load(tmp_path):
    model = compiled(functional())
    model.fit(data(1), verbose=0)
    model.save_weights(tmp_path / "m.weights.h5")
    other = compiled(functional())
    assert other.load_weights(tmp_path / "m.weights.h5") is None
    np.testing.assert_array_equal(
        other.predict(IDS, verbose=0), model.predict(IDS, verbose=0)
    )


def test_a_path_without_a_checkpoint_is_an_error(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match="There is no checkpoint"):
            functional().load_weights(path)


@pytest.mark.parametrize("name", ["checkpoint_dir", "checkpoint_path"])
def test_k09_evaluate_and_predict_read_a_state_and_change_no_table(
    trained, name
):
    form, model, folder = trained
    path = folder if name == "checkpoint_dir" else str(folder / "ckpt-2")
    other = compiled(form())
    unseen = data(2, start=7000)
    expected = model.evaluate(unseen, verbose=0)
    assert other.evaluate(unseen, verbose=0, **{name: path}) == expected
    again = compiled(form())
    np.testing.assert_array_equal(
        again.predict(IDS, verbose=0, **{name: path}),
        model.predict(IDS, verbose=0),
    )
    for one in (other, again):
        assert int(table_of(one).size()) == int(table_of(model).size())
    with pytest.raises(ValueError, match="not both"):
        again.predict(IDS, checkpoint_dir=folder, checkpoint_path=folder)
