"""Where the record of a key is: a perfect hash with TensorFlow's own ops.

The formula is that of `csrc/embedra/core/perfect_hash.h`, which finds the
parameters and pilots for the keys of a table. It takes any of the 2^64 keys;
those that the table lacks have the slot of another one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf


Integers = npt.NDArray[np.int64]


def slots_of(keys: Integers, parameters: Integers, pilots: Any) -> Integers:
    """Returns the slots of keys.

    Args:
        keys: Keys, shape `(n,)`.
        parameters: Two multipliers, the shift and the number of slots.
        pilots: Pilots of the buckets, `uint16`.

    Returns:
        Slots, shape `(n,)`.
    """
    of_keys, of_buckets, shift, count = parameters.view(np.uint64)
    half = np.uint64(32)
    products = keys.view(np.uint64) * of_keys
    mixed = products ^ (products >> half)
    hashes = mixed * pilots[(mixed * of_buckets) >> shift].astype(np.uint64)
    slots: Integers = (((hashes >> half) * count) >> half).view(np.int64)
    return slots


def stock_slots_of(
    keys: tf.Tensor, parameters: tf.Tensor, pilots: tf.Variable
) -> tf.Tensor:
    """Returns the slots of keys; the same as `slots_of`, in a graph.

    Args:
        keys: Keys, `int64`, shape `(n,)`.
        parameters: See `slots_of`.
        pilots: See `slots_of`.

    Returns:
        Slots, shape `(n,)`.
    """
    shifted = tf.bitwise.right_shift
    of_keys, of_buckets, shift, count = tf.unstack(
        tf.bitcast(parameters, tf.uint64)
    )
    half = tf.constant(32, tf.uint64)
    products = tf.bitcast(keys, tf.uint64) * of_keys
    mixed = tf.bitwise.bitwise_xor(products, shifted(products, half))
    buckets = tf.bitcast(shifted(mixed * of_buckets, shift), tf.int64)
    # Faster than tf.gather, here and for records.
    factors = tf.gather_nd(pilots, buckets[:, tf.newaxis])
    hashes = mixed * tf.cast(factors, tf.uint64)
    return tf.bitcast(shifted(shifted(hashes, half) * count, half), tf.int64)


def other_keys(slots: Integers, parameters: Integers, pilots: Any) -> Integers:
    """Returns for each slot a key whose slot is another one.

    Args:
        slots: Slots, shape `(n,)`.
        parameters: See `slots_of`.
        pilots: See `slots_of`.

    Returns:
        Keys, shape `(n,)`.
    """
    keys = np.zeros_like(slots)
    while (same := slots_of(keys, parameters, pilots) == slots).any():
        keys += same
    return keys
