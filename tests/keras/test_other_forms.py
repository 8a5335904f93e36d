"""Checkpoints of a model that was written in another form."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
from click_training import Network, compiled, data, functional, table_of


IDS = np.array([[1, 2, 3], [9, 4, 1], [10**12, 5, 6]])


class Towers(hb.keras.Model):
    """Attributes have other names than layers, which are built by calls."""

    def __init__(self):
        super().__init__()
        self.ids = hb.layers.Embedding(2, combiner="sum", name="rows")
        self.first = keras.Sequential(
            [keras.layers.Dense(2, name="in")], name="a"
        )
        self.heads = [keras.layers.Dense(1, name="out")]

    def call(self, ids):
        return self.heads[0](self.first(self.ids(ids)))


def towers(names=("rows", "in", "out")):
    """The same as a functional model."""
    table, inner, out = names
    ids = keras.Input((3,), dtype="int64")
    rows = hb.layers.Embedding(2, combiner="sum", name=table)(ids)
    first = keras.Sequential([keras.layers.Dense(2, name=inner)], name="a")
    return hb.keras.Model(ids, keras.layers.Dense(1, name=out)(first(rows)))


FORMS = {
    "flat": (Network, functional, 4),
    "nested": (Towers, towers, 4),
}


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_weights_of_the_other_form_are_found_by_name(form, swapped, tmp_path):
    *makers, count = FORMS[form]
    make_saved, make = reversed(makers) if swapped else makers
    saved = compiled(make_saved())
    saved.fit(data(2), verbose=0, checkpoint_dir=tmp_path)
    model = make()
    report = model.load_weights(tmp_path, skip_mismatched=False)
    np.testing.assert_array_equal(
        model.predict(IDS, verbose=0), saved.predict(IDS, verbose=0)
    )
    assert (len(report.variables), report.tables) == (count, ["rows"])
    assert (report.skipped, report.unused) == ({}, [])


def test_names_that_differ_are_reported_on_both_sides(tmp_path):
    saved = compiled(Towers())
    saved.fit(data(1), verbose=0, checkpoint_dir=tmp_path)
    model = towers(names=("others", "in", "end"))
    report = model.load_weights(tmp_path)
    assert report.variables == ["a/in/kernel", "a/in/bias"]
    absent = "it is not in the checkpoint"
    assert report.skipped == dict.fromkeys(
        ["others", "end/kernel", "end/bias"], absent
    )
    assert report.unused == ["out/bias", "out/kernel", "rows"]


def test_a_name_that_several_have_is_not_guessed(tmp_path):
    class Twins(hb.keras.Model):
        def __init__(self):
            super().__init__()
            self.left = keras.layers.Dense(1, name="same")
            self.right = keras.layers.Dense(1, name="same")

        def call(self, inputs):
            return self.left(inputs) + self.right(inputs)

    saved = Twins()
    saved.compile("sgd", "mse")
    saved.fit(np.ones((1, 2)), np.ones(1), verbose=0, checkpoint_dir=tmp_path)
    inputs = keras.Input((2,))
    model = hb.keras.Model(inputs, keras.layers.Dense(1, name="same")(inputs))
    report = model.load_weights(tmp_path)
    assert report.variables == []
    assert set(report.skipped) == {"same/kernel", "same/bias"}
    assert "several are called so" in report.skipped["same/kernel"]


def test_stock_checkpoints_of_our_models_are_those_of_keras(tmp_path):
    ids = keras.Input((2,))
    layers = [keras.layers.Dense(1, name="one")]
    plain = keras.Model(ids, layers[0](ids))
    ours = hb.keras.Model(ids, layers[0](ids))
    for one, other in ((plain, ours), (ours, plain)):
        path = tf.train.Checkpoint(one).write(str(tmp_path / "own"))
        status = tf.train.Checkpoint(other).read(path)
        status.assert_existing_objects_matched().assert_consumed()


def test_a_training_goes_on_in_the_form_that_it_was_begun_in(tmp_path):
    compiled(Network()).fit(data(1), verbose=0, checkpoint_dir=tmp_path)
    other = compiled(functional())
    with pytest.raises(hb.keras.MismatchError, match="cannot go on"):
        other.fit(data(1), epochs=2, verbose=0, checkpoint_dir=tmp_path)
    assert int(table_of(other).size()) == 0
