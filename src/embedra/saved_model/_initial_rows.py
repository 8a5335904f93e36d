"""Initial rows with ops of TensorFlow: the numbers that the core draws.

The core makes the first row of a key from (seed, table name, key, column), see
`csrc/embedra/core/initializer.h`: Philox 4x32-10 counters, and for normal
distributions the inverse of their distribution function. Here is the same in
TensorFlow's own ops, so that a key that an exported model does not know reads
as in the process that trained. Uniform rows are equal to the last bit but for
fused multiply-adds; normal ones may differ in the last bit.
"""

import functools
from collections.abc import Callable

import tensorflow as tf

from embedra.table import TableHeader


_MASK_32 = 2**32 - 1
_MASK_64 = 2**64 - 1
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_ROUND_KEYS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10

# Probability below two standard deviations under the mean.
_TRUNCATED_TAIL = 0.022750131948179207

_Drawer = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]


def initial_rows(keys: tf.Tensor, header: TableHeader) -> tf.Tensor:
    """Draws the rows that keys of a table start with.

    Args:
        keys: Keys, `int64`, shape `(n,)`.
        header: Describes the table; its initializer is a random one.

    Returns:
        Rows of the table's dtype, shape `(n, dim)`.
    """
    draw = _drawer(header.initializer, header.dim)
    stream = tf.constant(_stream_of(header), tf.uint64)
    parameters = tf.constant(header.parameters, tf.float32)
    return tf.cast(draw(keys, stream, parameters), header.dtype)


def _stream_of(header: TableHeader) -> int:
    """Returns the seed of a table's random numbers."""
    stream = _mix64(header.seed & _MASK_64)
    name = header.stream_name.encode()
    for byte in name:
        stream = _mix64(stream ^ byte)
    return _mix64(stream ^ len(name))


def _mix64(bits: int) -> int:
    """SplitMix64."""
    bits = (bits + 0x9E3779B97F4A7C15) & _MASK_64
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return bits ^ (bits >> 31)


@functools.cache
def _drawer(kind: str, dim: int) -> _Drawer:
    """Returns a function that all tables of a kind and width share."""
    values_of = _uniform if kind == "uniform" else _normal

    @tf.function(
        input_signature=[
            tf.TensorSpec((None,), tf.int64),
            tf.TensorSpec((), tf.uint64),
            tf.TensorSpec((2,), tf.float32),
        ],
        autograph=False,
        # If inlined, its few hundred ops are skipped one by one, where there is
        # nothing to draw.
        experimental_attributes={"_noinline": True},
    )
    def draw(
        keys: tf.Tensor, stream: tf.Tensor, parameters: tf.Tensor
    ) -> tf.Tensor:
        words = _philox(keys, stream, -(-dim // 4))[:, :dim]
        first, second = tf.unstack(parameters)
        return values_of(words, first, second, kind)

    drawer: _Drawer = draw
    return drawer


def _philox(keys: tf.Tensor, stream: tf.Tensor, blocks: int) -> tf.Tensor:
    """Returns random words, `int64` below 2^32, shape `(n, 4 * blocks)`."""
    bits = tf.bitcast(keys, tf.uint64)[:, tf.newaxis]
    numbers = tf.constant([list(range(blocks))], tf.uint64)
    zeros = tf.zeros_like(bits) * numbers
    counters = [_low(bits) + zeros, _high(bits) + zeros, zeros + numbers, zeros]
    key, other_key = _low(stream), _high(stream)
    steps = [tf.constant(step, tf.uint64) for step in _ROUND_KEYS]
    factors = [tf.constant(factor, tf.uint64) for factor in _MULTIPLIERS]
    for _ in range(_ROUNDS):
        first = counters[0] * factors[0]
        second = counters[2] * factors[1]
        counters = [
            _xor(_xor(_high(second), counters[1]), key),
            _low(second),
            _xor(_xor(_high(first), counters[3]), other_key),
            _low(first),
        ]
        key, other_key = _low(key + steps[0]), _low(other_key + steps[1])
    words = tf.bitcast(tf.stack(counters, axis=-1), tf.int64)
    return tf.reshape(words, (-1, 4 * blocks))


def _uniform(
    words: tf.Tensor, low: tf.Tensor, high: tf.Tensor, kind: str
) -> tf.Tensor:
    del kind
    unit = tf.cast(words // 2**8, tf.float32) * 2.0**-24
    values = low + (high - low) * unit
    # Rounding may reach the upper end, which is left out.
    return tf.minimum(values, tf.math.nextafter(high, low))


def _normal(
    words: tf.Tensor, mean: tf.Tensor, stddev: tf.Tensor, kind: str
) -> tf.Tensor:
    tail = _TRUNCATED_TAIL if kind == "truncated_normal" else 0.0
    # 2^32 evenly spaced probabilities, neither 0 nor 1.
    unit = (tf.cast(words, tf.float64) + 0.5) * 2.0**-32
    quantiles = tf.math.ndtri(tail + unit * (1.0 - 2.0 * tail))
    return mean + stddev * tf.cast(quantiles, tf.float32)


def _low(bits: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.bitwise_and(bits, tf.constant(_MASK_32, tf.uint64))


def _high(bits: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.right_shift(bits, tf.constant(32, tf.uint64))


def _xor(one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.bitwise_xor(one, other)
