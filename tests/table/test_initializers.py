"""What initializers are mapped to."""

import functools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from embedra.table import (
    InitializerSpec,
    Table,
    initializer_config,
    resolve_initializer,
)


@keras.saving.register_keras_serializable(package="embedra_tests")
class _Half(keras.initializers.Initializer):
    def __call__(self, shape, dtype=None):
        return keras.ops.full(shape, 0.5, dtype=dtype)


@keras.saving.register_keras_serializable(package="embedra_tests")
def _from_keys(shape, keys):
    del shape
    return tf.stack([keys, -keys], axis=1)


def _dice(shape):
    return tf.random.uniform(shape, 1.0, 2.0)


_UNIFORM = InitializerSpec("uniform", (-0.05, 0.05))


@pytest.mark.parametrize(
    ("initializer", "expected"),
    [
        ("uniform", _UNIFORM),
        ("zeros", InitializerSpec("constant", (0.0,))),
        (0.5, InitializerSpec("constant", (0.5,))),
        (np.float32([1, 2, 3]), InitializerSpec("constant", (1.0, 2.0, 3.0))),
        ([1, 2, 3], InitializerSpec("constant", (1.0, 2.0, 3.0))),
        (tf.constant([4.0]), InitializerSpec("constant", (4.0,))),
        (keras.initializers.RandomUniform, _UNIFORM),
        (keras.initializers.RandomUniform(), _UNIFORM),
        (
            keras.initializers.RandomNormal(1.0, 2.0, seed=7),
            InitializerSpec("normal", (1.0, 2.0), 7),
        ),
        (
            keras.initializers.RandomNormal(
                seed=keras.random.SeedGenerator(seed=9)
            ),
            InitializerSpec("normal", (0.0, 0.05), 9),
        ),
        (
            keras.initializers.TruncatedNormal(stddev=2.0),
            InitializerSpec("truncated_normal", (0.0, 2.0)),
        ),
        (
            keras.initializers.Constant(3.0),
            InitializerSpec("constant", (3.0,)),
        ),
        (
            {"class_name": "Ones", "config": {}},
            InitializerSpec("constant", (1.0,)),
        ),
        (
            tf_keras.initializers.RandomNormal(2.0, 3.0),
            InitializerSpec("normal", (2.0, 3.0)),
        ),
        (
            tf.random_uniform_initializer(1.0, 2.0, seed=3),
            InitializerSpec("uniform", (1.0, 2.0), 3),
        ),
        (
            tf.compat.v1.random_normal_initializer(1.0, 2.0),
            InitializerSpec("normal", (1.0, 2.0)),
        ),
        (
            tf.compat.v1.random_uniform_initializer(1),
            InitializerSpec("uniform", (1.0, 1.0)),
        ),
        (
            tf.compat.v1.truncated_normal_initializer(),
            InitializerSpec("truncated_normal", (0.0, 1.0)),
        ),
        (
            tf.compat.v1.constant_initializer([1.0, 2.0, 3.0]),
            InitializerSpec("constant", (1.0, 2.0, 3.0)),
        ),
        (
            tf.compat.v1.zeros_initializer(),
            InitializerSpec("constant", (0.0,)),
        ),
        (
            functools.partial(tf.random.uniform, minval=1, maxval=2),
            InitializerSpec("uniform", (1.0, 2.0)),
        ),
        (
            functools.partial(keras.random.normal, stddev=0.1, seed=3),
            InitializerSpec("normal", (0.0, 0.1), 3),
        ),
        (
            functools.partial(keras.initializers.RandomUniform, minval=-1.0),
            InitializerSpec("uniform", (-1.0, 0.05)),
        ),
        (
            functools.partial(keras.initializers.Ones(), dtype="float32"),
            InitializerSpec("constant", (1.0,)),
        ),
        (_Half(), InitializerSpec("constant", (0.5, 0.5, 0.5))),
        (lambda: 2.5, InitializerSpec("constant", (2.5,))),
    ],
)
def test_maps_to_the_native_form(initializer, expected):
    assert resolve_initializer(initializer, 3) == expected


@pytest.mark.parametrize(
    ("initializer", "kind", "parameters"),
    [
        ("glorot_uniform", "uniform", (-(limit := math.sqrt(6 / 4)), limit)),
        (
            "glorot_normal",
            "truncated_normal",
            (0.0, math.sqrt(2 / 4) / 0.87962566103423978),
        ),
        ("he_uniform", "uniform", (-math.sqrt(6), math.sqrt(6))),
        (
            keras.initializers.VarianceScaling(
                3.0, "fan_out", "untruncated_normal"
            ),
            "normal",
            (0.0, 1.0),
        ),
        (
            tf.compat.v1.variance_scaling_initializer(
                3.0, "fan_out", "uniform"
            ),
            "uniform",
            (-math.sqrt(3), math.sqrt(3)),
        ),
    ],
)
def test_variance_scaling_sees_a_row_as_one_by_dim(
    initializer, kind, parameters
):
    spec = resolve_initializer(initializer, 3)
    assert spec.kind == kind
    assert spec.parameters == pytest.approx(parameters)


@pytest.mark.parametrize("name", ["orthogonal", "identity"])
def test_initializers_of_whole_matrices_are_refused(name):
    with pytest.raises(ValueError, match="not rows one by one"):
        resolve_initializer(name, 3)


@pytest.mark.parametrize("shape", [(2,), (4,), (3, 1), (2, 2)])
def test_arrays_of_a_wrong_width_are_refused(shape):
    with pytest.raises(ValueError, match="width of a row, 3"):
        resolve_initializer(np.zeros(shape), 3)


def test_matrix_of_rows_is_refused_with_a_hint():
    with pytest.raises(ValueError, match="assign"):
        resolve_initializer(np.zeros((5, 3)), 3)


def test_function_of_a_wrong_width_is_refused():
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        resolve_initializer(lambda shape: np.zeros((shape[0], 2)), 3)


def test_function_that_would_repeat_its_rows_is_refused():
    def seeded(shape):
        return np.random.default_rng(0).normal(size=shape)

    with pytest.raises(ValueError, match="keys"):
        resolve_initializer(seeded, 3)


def test_random_function_starts_every_key_differently():
    table = Table(4, name="dice", initializer=_dice)
    first = table.lookup(range_ids := list(range(100)), insert=True).numpy()
    second = table.lookup(list(range(100, 200)), insert=True).numpy()
    rows = np.concatenate([first, second])
    assert len(np.unique(rows)) > 700
    assert ((rows >= 1) & (rows < 2)).all()
    np.testing.assert_array_equal(table.lookup(range_ids, insert=True), first)


def test_function_is_called_with_the_new_keys():
    table = Table(2, name="from_keys", initializer=_from_keys)
    table.assign([7], [[0.0, 0.0]])
    rows = table.lookup([[5, 7], [5, -3]], insert=True).numpy()
    assert rows.tolist() == [[[5, -5], [0, 0]], [[5, -5], [-3, 3]]]


def test_function_works_inside_a_graph():
    table = Table(2, name="graph", initializer=_from_keys)
    look_up = tf.function(lambda keys: table.lookup(keys, insert=True))
    assert look_up(tf.constant([4], tf.int64)).numpy().tolist() == [[4, -4]]


def test_absent_keys_of_a_function_read_as_zeros():
    table = Table(2, name="absent", initializer=_from_keys)
    assert table.lookup([4]).numpy().tolist() == [[0, 0]]
    assert table.size() == 0


@pytest.mark.parametrize(
    "initializer",
    [
        "uniform",
        0.5,
        np.float32([1, 2, 3]),
        keras.initializers.HeNormal(seed=3),
        functools.partial(tf.random.uniform, minval=1, maxval=2),
        _Half(),
    ],
)
def test_config_gives_the_same_initializer(initializer):
    config = initializer_config(initializer, 3)
    assert resolve_initializer(config, 3) == resolve_initializer(initializer, 3)


def test_config_of_a_function_gives_the_function():
    config = initializer_config(_from_keys, 2)
    spec = resolve_initializer(config, 2)
    rows = spec.function(shape=(1, 2), keys=tf.constant([3], tf.int64))
    assert rows.numpy().tolist() == [[3, -3]]
