"""Arguments of another kind or out of range are named, and change nothing."""

import math

import keras
import numpy as np
import pytest

import embedra as hb
from click_training import compiled, data, functional, table_of


NAN = math.nan
SUMMARY = hb.keras.callbacks.TableSummary


@pytest.fixture(scope="module")
def plain():
    ids = keras.Input((3,), dtype="int64")
    rows = keras.layers.Embedding(10, 2, name="items")(ids)
    return keras.Model(ids, keras.layers.Flatten()(rows))


@pytest.mark.parametrize(
    "layers", [3, [], [3], [None], ["items", 3], b"items"], ids=str
)
def test_layers_to_convert_are_names(layers, plain):
    with pytest.raises(TypeError, match="`layers` must be names of layers"):
        hb.keras.convert(plain, layers=layers)


def test_an_initializer_that_is_no_number_names_the_layer(plain):
    with pytest.raises(ValueError, match=r"Layer 'items'.*finite.*nan"):
        hb.keras.convert(plain, initializer=NAN)


@pytest.mark.parametrize("given", [3, None, "", b"logs", ["logs"]], ids=str)
def test_logs_go_to_a_path(given):
    with pytest.raises(TypeError, match="`log_dir` must be a path"):
        SUMMARY(given)


@pytest.mark.parametrize("value", [1.5, NAN, "3", True, [1]], ids=str)
@pytest.mark.parametrize("name", ["sample", "every_n_steps"])
def test_numbers_of_a_summary_are_whole(name, value):
    with pytest.raises(TypeError, match=f"`{name}` must be a whole number"):
        SUMMARY("logs", **{name: value})


def test_each_of_the_progress_is_a_flag():
    with pytest.raises(TypeError, match="`each` must be True or False"):
        hb.keras.callbacks.TableProgress("users")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("1", TypeError),
        (True, TypeError),
        ([1], TypeError),
        (NAN, ValueError),
        (math.inf, ValueError),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["clipnorm", "clipvalue"])
def test_limits_of_clipping_are_numbers(name, value, error):
    with pytest.raises(error, match=f"`{name}` must"):
        compiled(functional(), **{name: value})


def test_there_must_be_an_optimizer_to_clip():
    with pytest.raises(ValueError, match="`clipnorm` needs an optimizer"):
        functional().compile(None, "mse", clipnorm=1.0)


@pytest.mark.parametrize("name", ["sample_weight_mode", "distribute"])
def test_arguments_that_keras_3_lacks_say_what_to_do(name):
    with pytest.raises(TypeError, match=f"no argument `{name}`.*\\. "):
        compiled(functional(), **{name: "temporal"})
    assert compiled(functional(), **{name: None}).optimizer is not None


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"checkpoint_dir": 3}, TypeError),
        ({"checkpoint_dir": b"folder"}, TypeError),
        ({"keep_checkpoint_every_n_hours": NAN}, ValueError),
        ({"keep_checkpoint_every_n_hours": math.inf}, ValueError),
        ({"save_best_only": "no"}, TypeError),
        ({"restore_best_weights": 1}, TypeError),
        ({"epochs": 1.5}, TypeError),
        ({"epochs": "3"}, TypeError),
        ({"epochs": -1}, ValueError),
        ({"initial_epoch": "1"}, TypeError),
        ({"initial_epoch": -1}, ValueError),
        ({"callbacks": 3}, TypeError),
        ({"callbacks": ["progress"]}, TypeError),
    ],
    ids=str,
)
def test_arguments_of_fit_are_named(given, error, tmp_path):
    model = compiled(functional())
    [name] = given
    options = {"checkpoint_dir": tmp_path} | given
    with pytest.raises(error, match=f"`{name}` must"):
        model.fit(data(1), verbose=0, **options)
    assert int(table_of(model).size()) == 0
    assert not list(tmp_path.iterdir())


def test_arguments_by_place_are_not_lost():
    model = compiled(functional())
    with pytest.raises(TypeError, match="takes 10: validation_split, .*freq"):
        model.fit(data(1), None, None, 1, 0, None, *range(11))
    with pytest.raises(TypeError, match="validation_split by place and by"):
        model.fit(data(1), None, None, 1, 0, None, 0.0, validation_split=0.0)
    assert int(table_of(model).size()) == 0


@pytest.mark.parametrize("value", [3, "", [], b"folder"], ids=str)
def test_paths_of_checkpoints_are_named(value):
    model = compiled(functional())
    ids = np.ones((1, 3), np.int64)
    with pytest.raises(TypeError, match="`filepath` must be a path"):
        model.load_weights(value)
    for name in ("checkpoint_dir", "checkpoint_path"):
        with pytest.raises(TypeError, match=f"`{name}` must be a path"):
            model.predict(ids, **{name: value})
    with pytest.raises(TypeError, match="`checkpoint_path` must be a path"):
        model.export_saved_model("exported", checkpoint_path=value)


def test_flags_of_loading_are_flags(tmp_path):
    with pytest.raises(TypeError, match="`skip_mismatched` must be True"):
        functional().load_weights(tmp_path, skip_mismatched="yes")


def test_a_function_of_tensors_is_no_description_of_what_is_served(tmp_path):
    with pytest.raises(TypeError, match="`fn` may be a function without argum"):
        functional().export_saved_model(tmp_path, lambda ids: ids)
    assert not list(tmp_path.iterdir())
