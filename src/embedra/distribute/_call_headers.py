"""CallHeader: what ranks tell each other of a collective before it runs.

For TensorFlow's collectives, which would wait for ever for each other, or end
all further ones, if ranks differ. The native ops over MPI do the same; see
csrc/embedra/mpi/call.h.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from embedra._typing import Tensor

from ._flat_exchanges import FlatExchanges


# Of the text that is sent.
_TEXT_BYTES = 160
# Of a label in it, in characters.
_LABEL_SIZE = 60
_FAILED, _LAYOUT, _LABEL, _ROWS, _TEXT = 0, 1, 2, 3, 4

_SAME_LAYOUTS = (
    "All ranks must run the same collectives in the same order, of the same "
    "dtypes and shapes but for the number of rows."
)
_SAME_LABELS = (
    "All ranks must run the same lookups and other collectives in the same "
    "order, each by the same label on all of them. That of a lookup names its "
    "table: name layers explicitly, as Keras else numbers them in the order in "
    "which a rank makes them."
)


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


class Call(NamedTuple):
    """A collective, as its caller names it.

    Attributes:
        kind: "all_reduce" or another.
        label: Its label.
    """

    kind: str
    label: str

    def __str__(self) -> str:
        """Says which it is, less the middle of a long label."""
        label, half = self.label, _LABEL_SIZE // 2
        if len(label) > _LABEL_SIZE:
            label = f"{label[:half]}...{label[-half:]}"
        return f"{self.kind} {label!r}"


def agree(
    exchanges: FlatExchanges,
    rank: int,
    call: Call,
    layout: Tensor,
    *,
    any_label: bool = False,
    rows: Any = 0,
    problem: Any = "",
) -> Tensor:
    """Fails on all ranks alike unless all make the same call.

    Args:
        exchanges: With the others.
        rank: Of this process.
        call: The call.
        layout: What must be the same on all ranks, besides the call; a string.
        any_label: Whether ranks may give it different labels.
        rows: A number that all ranks learn.
        problem: Why this rank cannot take part, or empty; a string.

    Returns:
        The `rows` of all ranks, `int64`, shape `(size,)`. What they are used in
        runs after the check.
    """
    text = tf.strings.join([str(call), layout], " of ")
    own = tf.stack(
        [
            tf.cast(tf.not_equal(problem, ""), tf.int64),
            _hash(tf.strings.join([call.kind, layout], " ")),
            tf.constant(0, tf.int64) if any_label else _hash(call.label),
            tf.cast(rows, tf.int64),
        ]
    )
    words = tf.io.decode_raw(text, tf.int64, fixed_length=_TEXT_BYTES)
    headers = exchanges.gather(tf.concat([own, words], axis=0))
    fits = tf.reduce_all(headers[:, _FAILED] == 0) & tf.reduce_all(
        headers[:, _LAYOUT : _LABEL + 1] == headers[0, _LAYOUT : _LABEL + 1]
    )
    checked = tf.cond(
        fits,
        lambda: tf.constant(True),
        lambda: _fail(headers, rank, text, problem),
    )
    with tf.control_dependencies([checked]):
        return tf.identity(headers[:, _ROWS])


def _hash(text: Any) -> Tensor:
    """Returns a positive number for a string."""
    return 1 + tf.strings.to_hash_bucket_fast(text, 2**62)


def _fail(headers: Tensor, rank: int, text: Tensor, problem: Any) -> Tensor:
    """Raises the error of ranks that do not fit together."""
    failed = tf.argmax(headers[:, _FAILED])
    own_problem = tf.strings.join([f"Rank {rank}, ", text, ": ", problem])
    of_another = tf.strings.join(
        [
            tf.strings.format("Rank {} could not take part in ", failed),
            _text(headers[failed]),
            f", so no rank did (this is rank {rank}). The error of that rank "
            "says why.",
        ]
    )
    same_layout = tf.reduce_all(headers[:, _LAYOUT] == headers[0, _LAYOUT])
    message = tf.where(
        headers[rank, _FAILED] != 0,
        own_problem,
        tf.where(
            headers[failed, _FAILED] != 0,
            of_another,
            tf.where(
                same_layout,
                _difference(headers, _LABEL, rank, _SAME_LABELS),
                _difference(headers, _LAYOUT, rank, _SAME_LAYOUTS),
            ),
        ),
    )
    failure = tf.debugging.Assert(False, [message])
    with tf.control_dependencies([failure] if failure is not None else []):
        return tf.constant(False)


def _difference(headers: Tensor, what: int, rank: int, advice: str) -> Tensor:
    """Says which rank is not like rank 0, a string.

    Args:
        headers: Of all ranks.
        what: Column in which they differ.
        rank: Of this process.
        advice: What to do then.
    """
    other = tf.argmax(tf.cast(headers[:, what] != headers[0, what], tf.int32))
    return tf.strings.join(
        [
            "Ranks differ in a collective: rank 0 called ",
            _text(headers[0]),
            tf.strings.format(", rank {} called ", other),
            _text(headers[other]),
            f" (this is rank {rank}). {advice}",
        ]
    )


def _text(header: Tensor) -> Tensor:
    """Returns the text of a header, a string."""
    codes = tf.reshape(tf.bitcast(header[_TEXT:], tf.uint8), (-1,))
    codes = tf.cast(tf.boolean_mask(codes, codes > 0), tf.int32)
    return tf.strings.unicode_encode(codes, "UTF-8")
