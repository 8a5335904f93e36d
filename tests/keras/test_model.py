"""The model classes: how they are made, wrapped and shown."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
from click_training import Network, functional


def test_models_are_keras_models_and_keras_is_as_it_was():
    model = functional()
    assert isinstance(model, hb.keras.Model)
    assert isinstance(model, keras.Model)
    assert isinstance(Network(), hb.keras.Model)
    tensor = keras.Input((2,))
    plain = keras.Model(tensor, keras.layers.Dense(1)(tensor))
    assert not isinstance(plain, hb.keras.Model)
    assert hb.keras.Model.__mro__[2:4] != (type(plain), keras.Model)
    assert [type(layer) for layer in model.layers][1] is hb.layers.Embedding


@pytest.mark.multiprocess
def test_k07_importing_leaves_the_names_that_keras_makes_up():
    script = (
        "import embedra, keras; x = keras.Input((2,)); "
        "print(x.name, keras.Model(x, x).name)"
    )
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["keras_tensor", "functional"]


def test_a_subclass_may_give_inputs_and_outputs():
    class Own(hb.keras.Model):
        def __init__(self, units):
            tensor = keras.Input((2,))
            super().__init__(
                inputs=tensor, outputs=keras.layers.Dense(units)(tensor)
            )

    model = Own(3)
    assert model.output_shape == (None, 3)
    assert isinstance(model, Own)
    assert len(hb.keras.Model.__bases__) == 2
    assert not hasattr(Network(), "_functional")


def test_a_list_of_one_dict_of_inputs_is_the_dict():
    tensors = {
        "a": keras.Input((1,), name="a"),
        "b": keras.Input((1,), name="b"),
    }
    out = keras.layers.Add()(list(tensors.values()))
    model = hb.keras.Model(inputs=[tensors], outputs=out)
    model.compile("sgd", "mse")
    batch = {"a": tf.ones((2, 1)), "b": tf.ones((2, 1))}
    data = tf.data.Dataset.from_tensors((batch, tf.ones((2, 1))))
    assert model.evaluate(data, verbose=0) == 1.0


def test_k03_clones_have_the_class_and_tables_of_their_own():
    model = functional()
    clone = keras.models.clone_model(model)
    assert isinstance(clone, hb.keras.Model)
    assert clone.get_layer("rows").table is not model.get_layer("rows").table
    assert clone.get_config()["layers"] == model.get_config()["layers"]


@pytest.mark.parametrize("how", ["decorated", "called"])
def test_a_wrapped_class_has_the_methods(how, tmp_path):
    class Plain(keras.Model):
        """Words."""

        def __init__(self, units):
            super().__init__()
            self.rows = hb.layers.Embedding(2, combiner="sum")
            self.out = keras.layers.Dense(units)

        def call(self, ids):
            return self.out(self.rows(ids))

    if how == "decorated":
        wrapped = hb.wraps(Plain)
        assert hb.wraps(wrapped) is wrapped
        assert (wrapped.__name__, wrapped.__doc__) == ("Plain", "Words.")
        model = wrapped(1)
    else:
        model = hb.wraps(keras.Sequential)(
            [hb.layers.Embedding(2, combiner="sum"), keras.layers.Dense(1)]
        )
    model.compile(tf.compat.v1.train.AdagradOptimizer(0.1), "mse", clipnorm=1.0)
    ids, labels = np.array([[1, 2], [3, 4]]), np.ones((2, 1))
    model.fit(ids, labels, verbose=0, checkpoint_dir=tmp_path)
    assert tf.train.latest_checkpoint(tmp_path) is not None
    assert hb.wraps(keras.Model) is hb.keras.Model


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (keras.layers.Dense, "class keras.*Dense"),
        (Network(), "an object of class .*Network"),
        (len, "builtin"),
    ],
)
def test_other_things_cannot_be_wrapped(given, said):
    with pytest.raises(TypeError, match=said):
        hb.wraps(given)


def test_the_summary_shows_tables():
    model = functional()
    model.get_layer("rows").table.assign([1, 2, 3], np.ones((3, 4)))
    lines = []
    model.summary(print_fn=lines.append)
    text = "\n".join(lines)
    (row,) = (line.split() for line in lines if line.startswith("  rows "))
    assert row[:3] == ["rows", "3", "4"]
    assert int(row[3].replace(",", "")) > 3 * 4 * 4
    assert text.index("Total params") < text.index("Tables")


def test_a_summary_without_tables_is_that_of_keras(capsys):
    tensor = keras.Input((2,))
    hb.keras.Model(tensor, keras.layers.Dense(1)(tensor)).summary()
    assert "Tables" not in capsys.readouterr().out


def test_k04_the_loss_curve_is_that_of_plain_keras():
    curves = []
    for base in (keras.Model, hb.keras.Model):

        class Plain(base):
            def __init__(self):
                super().__init__()
                self.rows = hb.layers.Embedding(
                    3, combiner="sum", seed=3, name="rows"
                )
                self.out = keras.layers.Dense(1, kernel_initializer="ones")

            def call(self, ids):
                return self.out(self.rows(ids))

        model = Plain()
        model.compile("adam", "mse")
        ids = np.arange(24).reshape(12, 2) % 7
        curves.append(
            model.fit(
                ids,
                np.ones((12, 1)),
                epochs=3,
                batch_size=4,
                shuffle=False,
                verbose=0,
            ).history["loss"]
        )
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-6)
