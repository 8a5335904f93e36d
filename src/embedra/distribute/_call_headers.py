"""CallHeader: what ranks tell each other of a collective before it runs.

For TensorFlow's collectives, which would wait for ever for each other, or end
all further ones, if ranks differ. The native ops over MPI do the same; see
csrc/embedra/mpi/call.h.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from embedra._typing import Tensor

from ._flat_exchanges import FlatExchanges


# Of the text that is sent.
_TEXT_BYTES = 160
_FAILED, _LAYOUT, _ROWS, _TEXT = 0, 1, 2, 3


def layout_of(tensors: Sequence[Tensor], *, any_rows: bool) -> Tensor:
    """Returns dtype and shapes as text, "float32 [? 4] [?]"; a string.

    Args:
        tensors: Of one dtype.
        any_rows: Whether the number of rows may differ between ranks.
    """
    shapes = []
    for tensor in tensors:
        shape = tf.shape(tensor)
        if any_rows:
            shapes.append(tf.strings.format("? {}", shape[1:], summarize=-1))
        else:
            shapes.append(tf.strings.format("{}", shape, summarize=-1))
    return tf.strings.join([tensors[0].dtype.name, *shapes], " ")


def agree(
    exchanges: FlatExchanges,
    rank: int,
    call: str,
    layout: Tensor,
    *,
    rows: Any = 0,
    problem: Any = "",
) -> Tensor:
    """Fails on all ranks alike unless all make the same call.

    Args:
        exchanges: With the others.
        rank: Of this process.
        call: Kind and label of the call, "all_reduce 'gradients'".
        layout: What must be the same on all ranks, besides the kind; a string.
        rows: A number that all ranks learn.
        problem: Why this rank cannot take part, or empty; a string.

    Returns:
        The `rows` of all ranks, `int64`, shape `(size,)`. What they are used in
        runs after the check.
    """
    kind = call.split()[0]
    text = tf.strings.join([call, layout], " of ")
    own = tf.stack(
        [
            tf.cast(tf.not_equal(problem, ""), tf.int64),
            tf.strings.to_hash_bucket_fast(
                tf.strings.join([kind, layout], " "), 2**62
            ),
            tf.cast(rows, tf.int64),
        ]
    )
    words = tf.io.decode_raw(text, tf.int64, fixed_length=_TEXT_BYTES)
    headers = exchanges.gather(tf.concat([own, words], axis=0))
    fits = tf.reduce_all(headers[:, _FAILED] == 0) & tf.reduce_all(
        headers[:, _LAYOUT] == headers[0, _LAYOUT]
    )
    checked = tf.cond(
        fits,
        lambda: tf.constant(True),
        lambda: _fail(headers, rank, text, problem),
    )
    with tf.control_dependencies([checked]):
        return tf.identity(headers[:, _ROWS])


def _fail(headers: Tensor, rank: int, text: Tensor, problem: Any) -> Tensor:
    """Raises the error of ranks that do not fit together."""
    failed = tf.argmax(headers[:, _FAILED])
    other = tf.argmax(
        tf.cast(headers[:, _LAYOUT] != headers[0, _LAYOUT], tf.int32)
    )
    own_problem = tf.strings.join([f"Rank {rank}, ", text, ": ", problem])
    of_another = tf.strings.join(
        [
            tf.strings.format("Rank {} could not take part in ", failed),
            _text(headers[failed]),
            f", so no rank did (this is rank {rank}). The error of that rank "
            "says why.",
        ]
    )
    differ = tf.strings.join(
        [
            "Ranks differ in a collective: rank 0 called ",
            _text(headers[0]),
            tf.strings.format(", rank {} called ", other),
            _text(headers[other]),
            f" (this is rank {rank}). All ranks must run the same collectives "
            "in the same order, of the same dtypes and shapes but for the "
            "number of rows.",
        ]
    )
    message = tf.where(
        headers[rank, _FAILED] != 0,
        own_problem,
        tf.where(headers[failed, _FAILED] != 0, of_another, differ),
    )
    failure = tf.debugging.Assert(False, [message])
    with tf.control_dependencies([failure] if failure is not None else []):
        return tf.constant(False)


def _text(header: Tensor) -> Tensor:
    """Returns the text of a header, a string."""
    codes = tf.reshape(tf.bitcast(header[_TEXT:], tf.uint8), (-1,))
    codes = tf.cast(tf.boolean_mask(codes, codes > 0), tf.int32)
    return tf.strings.unicode_encode(codes, "UTF-8")
