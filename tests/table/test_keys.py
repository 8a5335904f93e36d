"""How ids become keys."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.table import KeyDtypeError, to_keys, to_tensor


def _keys(ids):
    return to_keys(ids).numpy().tolist()


@pytest.mark.parametrize(
    "dtype",
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
)
def test_integers_of_any_width_are_the_same_key(dtype):
    assert _keys(np.array([5, 100], dtype)) == [5, 100]
    assert to_keys(tf.constant([5], dtype)).dtype == tf.int64


def test_uint64_is_taken_in_twos_complement():
    ids = np.array([5, 2**63, 2**64 - 1], np.uint64)
    assert _keys(ids) == [5, -(2**63), -1]


@pytest.mark.parametrize(
    ("ids", "keys"),
    [
        (7, 7),
        ([], []),
        ([[], []], [[], []]),
        ([[1, -2], [3, 4]], [[1, -2], [3, 4]]),
        ([5, 2**64 - 1], [5, -1]),
        ([tf.constant(3), tf.constant(4)], [3, 4]),
    ],
)
def test_lists_and_numbers_are_taken_without_loss(ids, keys):
    assert _keys(ids) == keys


@pytest.mark.parametrize("ids", [[-1, 2**63], [2**64]])
def test_integers_beyond_64_bits_are_refused(ids):
    with pytest.raises(OverflowError, match="64 bits"):
        to_keys(ids)


def test_strings_hash_alike_from_any_container():
    words = ["a", "b", "a", "", "späti", "x" * 5000]
    hashed = tf.strings.to_hash_bucket_fast(words, 2**63 - 1).numpy().tolist()
    assert _keys(words) == hashed
    assert _keys(np.array(words)) == hashed
    assert _keys(np.array(words, object)) == hashed
    assert _keys(tf.constant(words)) == hashed
    assert len(set(hashed)) == 5


def test_string_hashes_are_fixed_for_all_time():
    # Files hold these: TensorFlow's FarmHash64 of "a" and "".
    assert _keys(["a", ""]) == [
        12917804110809363939 % (2**63 - 1),
        11160318154034397263 % (2**63 - 1),
    ]


@pytest.mark.parametrize(
    "ids",
    [
        1.0,
        [1.0, 2.0],
        np.zeros((0, 3)),
        np.float16([1]),
        tf.constant([1.0]),
        tf.constant([1.0], tf.bfloat16),
        keras.KerasTensor((None, 1)),
    ],
)
def test_floats_are_refused_with_the_remedy(ids):
    with pytest.raises(KeyDtypeError, match='dtype="int64"'):
        to_tensor(ids, "Layer 'x'")


def test_booleans_are_refused():
    with pytest.raises(KeyDtypeError, match="bool"):
        to_keys([True, False])
