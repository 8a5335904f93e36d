"""The small layers that the models are made of, against NumPy."""

import keras
import numpy as np
import pytest

from embedra.models import Cross, DotInteraction, NumericFeatures
from numerics import assert_allclose


def test_numeric_features_compress_and_mark_missing_values():
    layer = NumericFeatures()
    a = np.array([np.e - 1, np.nan, -1000.0], np.float32)
    b = np.array([0.0, 1.0, np.nan], np.float32)
    expected = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, np.log(2), 1.0, 0.0],
        [-np.log(1001), 0.0, 0.0, 1.0],
    ]
    assert_allclose(layer([a, b]), np.array(expected))


def test_numeric_features_pass_no_nan_to_gradients():
    tf = pytest.importorskip("tensorflow")
    values = tf.Variable([np.nan, 2.0])
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(NumericFeatures()([values]))
    assert np.isfinite(tape.gradient(total, values).numpy()).all()


def test_dot_interaction_multiplies_every_pair_once(rng):
    vectors = [rng.normal(size=(5, 3)).astype(np.float32) for _ in range(4)]
    pairs = [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
    expected = np.stack(
        [(vectors[i] * vectors[j]).sum(axis=1) for i, j in pairs], axis=1
    )
    assert_allclose(DotInteraction()(vectors), expected, rtol=1e-5)


@pytest.mark.parametrize("rank", [None, 2])
def test_cross_follows_its_formula(rng, rank):
    x0, x = (rng.normal(size=(5, 3)).astype(np.float32) for _ in range(2))
    layer = Cross(rank)
    actual = layer([x0, x])
    weights = {w.name: np.asarray(w) for w in layer.weights}
    matrix = (
        weights["kernel"] if rank is None else weights["down"] @ weights["up"]
    )
    expected = x0 * (x @ matrix + weights["bias"]) + x
    assert_allclose(actual, expected, rtol=1e-5)


def test_cross_refuses_a_rank_below_one():
    with pytest.raises(ValueError, match="Received: rank=0"):
        Cross(0)


@pytest.mark.parametrize(
    "layer", [NumericFeatures(), DotInteraction(), Cross(3)]
)
def test_layer_comes_back_from_its_configuration(layer):
    config = keras.layers.serialize(layer)
    again = keras.layers.deserialize(config)
    assert type(again) is type(layer)
    assert again.get_config() == layer.get_config()
