"""Numeric comparison with a stated tolerance."""

import numpy as np
import tensorflow as tf


def assert_allclose(actual, expected, *, rtol=1e-6, atol=1e-6):
    """Fails unless shapes are equal and elements close.

    Args:
        actual: A tensor or array; bfloat16 and float16 are widened.
        expected: As `actual`; nothing is broadcast.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
    """
    actual, expected = as_float64(actual), as_float64(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def as_float64(values):
    """Returns a NumPy array in double precision."""
    if tf.is_tensor(values):
        values = values.numpy()
    return np.asarray(values).astype(np.float64)
