"""sharded_rows: rows of tables of which each rank holds a part."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from embedra import _ops
from embedra._checks import check_one_of, check_same_length
from embedra._typing import Tensor
from embedra.scopes import WIRE_DTYPES

from ._communicator import Communicator
from ._graph_share import default_share


ReadRows = Callable[[list[Tensor]], list[Tensor]]


class ShardedRead(NamedTuple):
    """Tables that are looked up by the same exchanges.

    Attributes:
        keys: For each table keys, `int64`, of any shape.
        read_rows: See `sharded_rows`.
        wire_dtype: See `sharded_rows`.
        label: Name in messages, the same on all ranks.
    """

    keys: Sequence[Tensor]
    read_rows: ReadRows
    wire_dtype: str = "float32"
    label: str = ""


class _Route(NamedTuple):
    """Where the keys of a batch are.

    Attributes:
        unique: Each key once, those of rank 0 first, shape `(u,)`.
        splits: How many belong to each rank, shape `(size,)`.
        index: Where in `unique` each key of the batch is.
    """

    unique: Tensor
    splits: Tensor
    index: Tensor


class _Sent(NamedTuple):
    """Keys that are with their owners.

    Attributes:
        routes: For each table where its keys went.
        here: For each table the keys that came, shape `(n,)`.
        splits: For each table how many came from each rank.
    """

    routes: list[_Route]
    here: list[Tensor]
    splits: list[Tensor]


def sharded_rows(
    communicator: Communicator,
    keys: Sequence[Tensor],
    read_rows: ReadRows,
    *,
    gradient_scale: Any = None,
    wire_dtype: str = "float32",
    label: str = "",
) -> list[Tensor]:
    """Looks up rows of tables that are split over the ranks by key.

    Each key belongs to one rank, which a hash of it tells, whatever the table.
    The keys of a batch are sent there once each, for all tables in one
    exchange; the owner reads, and in training creates, the rows, which come
    back in a second exchange. Their gradients go the same way in a third, and
    the owner updates the rows: nobody else knows of them. As first rows are a
    function of seed, name and key, all ranks must give their tables the same
    seed; a key's row then does not depend on the number of ranks.

    A rank may have no keys, but must take part. Gradients of a row are added up
    over the ranks, each multiplied by its `gradient_scale`. By default that is
    1 / size: where each rank's loss is the mean over as many examples, the step
    is that of the mean over all of them. Where batches differ in size, it is
    the rank's share of all examples, `batch_share`.

    Args:
        communicator: Of the ranks.
        keys: For each table keys, `int64`, of any shape.
        read_rows: Reads the rows of this rank's keys, given for each table keys
            of shape `(n,)`, so that tapes record it: returns tensors of shape
            `(n, dim)` of one dtype. It is called once.
        gradient_scale: Scalar, or None for 1 / size, or what `set_graph_share`
            says.
        wire_dtype: What rows and gradients are sent as. "bfloat16" and
            "float16" halve what is sent, and round each row, and the sum of its
            gradients on each rank, to 8 or 11 significant bits. Rows of 16 bits
            are sent as they are.
        label: Name in messages, the same on all ranks.

    Returns:
        For each table rows of shape `keys.shape + (dim,)`, of the dtype that
        `read_rows` gave.

    Raises:
        ValueError: If `wire_dtype` is none of those, or `read_rows` gives not
            as many tensors as there are tables.

    Example:
        >>> from embedra import Table
        >>> from embedra.distribute import communicator
        >>> table = Table(2, name="user", initializer=0.5, seed=1)
        >>> (rows,) = sharded_rows(
        ...     communicator(),
        ...     [tf.constant([[7, 7, 8]], tf.int64)],
        ...     lambda keys: [table.lookup(keys[0], insert=True)],
        ... )
        >>> rows.shape, table.size()
        (TensorShape([1, 3, 2]), 2)
    """
    return sharded_reads(
        communicator,
        [ShardedRead(keys, read_rows, wire_dtype, label)],
        gradient_scale=gradient_scale,
    )[0]


def sharded_reads(
    communicator: Communicator,
    reads: Sequence[ShardedRead],
    *,
    gradient_scale: Any = None,
) -> list[list[Tensor]]:
    """Looks up rows of several groups of tables, as `sharded_rows` does of one.

    Each group has exchanges of its own. The keys of all are sent first, so that
    those of one group travel while the rows of another are read.

    Args:
        communicator: Of the ranks.
        reads: The groups.
        gradient_scale: See `sharded_rows`.

    Returns:
        For each group what `sharded_rows` returns.

    Raises:
        ValueError: See `sharded_rows`.
    """
    for read in reads:
        check_one_of("wire_dtype", read.wire_dtype, WIRE_DTYPES)
    if gradient_scale is None:
        gradient_scale = default_share(communicator)
    sent = [_send(communicator, read.keys, read.label) for read in reads]
    return [
        _answer(communicator, read, keys, gradient_scale)
        for read, keys in zip(reads, sent, strict=True)
    ]


def send_to_owners(
    communicator: Communicator, keys: Tensor, *, label: str = ""
) -> Tensor:
    """Sends keys to the ranks that own them.

    Args:
        communicator: Of the ranks.
        keys: `int64`, any shape.
        label: Name in messages, the same on all ranks.

    Returns:
        This rank's own keys among those of all ranks, each once, shape `(n,)`.

    Example:
        >>> from embedra.distribute import communicator
        >>> keys = tf.constant([7, 8, 7], tf.int64)
        >>> send_to_owners(communicator(), keys).numpy().tolist()
        [7, 8]
    """
    return tf.unique(_send(communicator, [keys], label).here[0])[0]


def _send(
    communicator: Communicator, keys: Sequence[Tensor], label: str
) -> _Sent:
    """Sends each distinct key of a batch to its owner."""
    routes = [
        _Route(
            *_ops.route_keys(
                tf.reshape(batch, (-1,)), num_parts=communicator.size
            )
        )
        for batch in keys
    ]
    here, splits = communicator.all_to_all_v(
        [route.unique for route in routes],
        [route.splits for route in routes],
        label=f"{label} keys",
    )
    return _Sent(routes, here, splits)


def _answer(
    communicator: Communicator,
    read: ShardedRead,
    sent: _Sent,
    gradient_scale: Any,
) -> list[Tensor]:
    """Reads the rows of the keys that came, and sends them back."""
    rows = read.read_rows(sent.here)
    check_same_length(keys=read.keys, read_rows=rows)
    dtype = rows[0].dtype
    # Rows of 16 bits gain nothing from more.
    wire = read.wire_dtype if dtype.size > 2 else dtype
    answers, _ = communicator.all_to_all_v(
        [tf.cast(each, wire) for each in rows],
        sent.splits,
        [route.splits for route in sent.routes],
        label=f"{read.label} rows",
    )
    return [
        _expand(tf.cast(answer, dtype), route, batch, gradient_scale)
        for answer, route, batch in zip(
            answers, sent.routes, read.keys, strict=True
        )
    ]


def batch_share(communicator: Communicator, examples: Any) -> Tensor:
    """Returns which part of the examples of all ranks this rank has.

    It is what gradients of the mean over this rank's examples are multiplied by
    before they are added up over the ranks, for the gradient of the mean over
    all.

    Args:
        communicator: Of the ranks.
        examples: How many this rank has in the step, a scalar; also 0.

    Returns:
        Scalar, `float32`; 0 if nobody has any.

    Example:
        >>> from embedra.distribute import communicator
        >>> batch_share(communicator(), 8).numpy()
        np.float32(1.0)
    """
    own = tf.cast(examples, tf.int64)
    total = communicator.all_reduce(own, label="examples")
    return tf.math.divide_no_nan(
        tf.cast(own, tf.float32), tf.cast(total, tf.float32)
    )


def _expand(
    rows: Tensor, route: _Route, batch: Tensor, gradient_scale: Any
) -> Tensor:
    """Gives each key of a batch its row, and each row its summed gradient."""

    @tf.custom_gradient
    def expand(rows: Tensor, scale: Tensor) -> Any:
        def gradient(upstream: Tensor) -> tuple[Tensor, None]:
            by_key = tf.reshape(upstream, (-1, rows.shape[-1]))
            sums = tf.math.unsorted_segment_sum(
                tf.cast(by_key, tf.float32), route.index, tf.shape(rows)[0]
            )
            return tf.cast(sums * scale, rows.dtype), None

        index = tf.reshape(route.index, tf.shape(batch))
        return tf.gather(rows, index), gradient

    return expand(rows, tf.convert_to_tensor(gradient_scale, tf.float32))
