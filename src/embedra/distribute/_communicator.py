"""Communicator: what ranks tell each other, whatever carries it."""

import abc
import contextlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from embedra import _ops
from embedra._checks import check_one_of, check_positive, check_same_length
from embedra._typing import Operation, Tensor


REDUCTIONS = ("sum", "mean", "max", "min")
BUCKET_BYTES = 4 * 2**20


class Communicator(abc.ABC):
    """Exchanges tensors with the other ranks of a job.

    All methods are collectives: every rank must call the same ones in the same
    order, by the same labels, and of the same dtypes and shapes but for the
    number of rows, which may be 0; else they fail on all ranks. They work
    eagerly, in a `tf.function` and in TF1 graphs. Where a gradient is defined
    all ranks must compute it, too; it is that of the sum of what the ranks
    differentiate.

    Order: eager calls run as they are made. In a `tf.function` they run in the
    order in which they were traced, those of gradients included. In a TF1 graph
    each comes after the one built before it, see `chain`. What must not be done
    is to call them from several threads of Python at once, or to trace
    functions in an order that differs between ranks.

    A rank whose arguments are wrong makes the call fail on all ranks, with an
    error that names it.

    Attributes:
        rank: Of this process, from 0.
        size: Number of ranks.
        local_rank: Of this process among those on its machine.
        local_size: Number of ranks on this machine.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int

    def all_to_all_v(
        self,
        values: Any,
        splits: Any,
        receive_splits: Any = None,
        *,
        label: str = "",
    ) -> tuple[Any, Any]:
        """Sends rows to each rank, and gets those that each rank sends here.

        The gradient is the same exchange the other way. Tensors of a list go
        together in one exchange.

        Args:
            values: Rows, shape `(n, ...)`, or a list of such tensors of one
                dtype. Strings cannot be sent.
            splits: How many rows go to each rank, `int64`, shape `(size,)`; the
                first ones to rank 0. A list for a list.
            receive_splits: How many rows come from each rank, if that is known,
                as it is for answers; that saves one exchange.
            label: Name in messages, the same on all ranks.

        Returns:
            The rows received, those of rank 0 first, and how many came from
            each rank, `int64`, shape `(size,)`; lists for a list.

        Raises:
            ValueError: If lists differ in length or dtypes.

        Example:
            >>> from embedra.distribute import communicator
            >>> rows, splits = communicator().all_to_all_v([1.0, 2.0], [2])
            >>> rows.numpy().tolist(), splits.numpy().tolist()
            ([1.0, 2.0], [2])
        """
        if not _is_list(values):
            received, received_splits = self.all_to_all_v(
                [tf.convert_to_tensor(values)],
                [splits],
                None if receive_splits is None else [receive_splits],
                label=label,
            )
            return received[0], received_splits[0]
        check_same_length(values=values, splits=splits)
        tensors = [tf.convert_to_tensor(value) for value in values]
        _check_one_dtype(tensors, "values")
        known = [] if receive_splits is None else list(receive_splits)
        if known:
            check_same_length(values=values, receive_splits=known)
        return self._all_to_all_v(
            tensors,
            [tf.cast(split, tf.int64) for split in splits],
            [tf.cast(split, tf.int64) for split in known],
            label,
        )

    def all_reduce(
        self,
        values: Any,
        reduction: str = "sum",
        *,
        bucket_bytes: int = BUCKET_BYTES,
        label: str = "",
    ) -> Any:
        """Reduces tensors over the ranks; all get the same bits.

        Sum and mean have gradients, reduced in the same way.

        Args:
            values: A tensor, or a list of tensors of any of the dtypes float32,
                float64, float16, bfloat16, int32 and int64; of the same shapes
                on all ranks. The 16-bit ones are added up, and sent, as
                float32.
            reduction: "sum", "mean" (not of integers), "max" or "min".
            bucket_bytes: The tensors of a list are joined, by dtype, until they
                take so many bytes, and reduced together.
            label: Name in messages, the same on all ranks.

        Returns:
            The reduced tensor, or a list.

        Raises:
            ValueError: If an argument is out of range.

        Example:
            >>> from embedra.distribute import communicator
            >>> communicator().all_reduce([1.0, 3.0])[1].numpy()
            np.float32(3.0)
        """
        check_one_of("reduction", reduction, REDUCTIONS)
        check_positive("bucket_bytes", bucket_bytes)
        if not _is_list(values):
            values = [tf.convert_to_tensor(values)]
            return self.all_reduce(values, reduction, label=label)[0]
        tensors = [tf.convert_to_tensor(value) for value in values]
        reduced: list[Tensor | None] = [None] * len(tensors)
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            if reduction == "mean" and dtype.is_integer:
                msg = (
                    f"Integers have no mean. Received: values of {dtype.name}. "
                    'Cast them, or use reduction="sum".'
                )
                raise ValueError(msg)
            places = [i for i, t in enumerate(tensors) if t.dtype == dtype]
            results = self._all_reduce(
                [tensors[i] for i in places], reduction, bucket_bytes, label
            )
            for i, result in zip(places, results, strict=True):
                reduced[i] = result
        return reduced

    def all_gather_v(
        self, value: Any, *, label: str = "", any_label: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Gives every rank the rows of all ranks.

        The gradient is the sum, over ranks, of the gradients of this rank's
        rows.

        Args:
            value: Rows, shape `(n, ...)`; `n` may differ between ranks.
            label: Name in messages, the same on all ranks.
            any_label: Whether it may be another one on each rank, for what is
                told whatever a rank is at. All ranks must say so.

        Returns:
            The rows, those of rank 0 first, and how many each rank gave,
            `int64`, shape `(size,)`.

        Example:
            >>> from embedra.distribute import communicator
            >>> communicator().all_gather_v([5, 6])[1].numpy().tolist()
            [2]
        """
        return self._all_gather_v(tf.convert_to_tensor(value), label, any_label)

    def broadcast(
        self, value: Any, root: int = 0, *, label: str = ""
    ) -> Tensor:
        """Gives every rank the value that one rank has.

        The gradient is the sum of the gradients of all, on that rank, and zeros
        on the others.

        Args:
            value: A tensor, of the same dtype and shape on all ranks.
            root: The rank whose value counts.
            label: Name in messages, the same on all ranks.

        Returns:
            The value.

        Raises:
            ValueError: If there is no such rank.

        Example:
            >>> from embedra.distribute import communicator
            >>> communicator().broadcast(7).numpy()
            np.int32(7)
        """
        if not 0 <= root < self.size:
            msg = (
                f"`root` must be one of the {self.size} ranks. Received: "
                f"root={root}."
            )
            raise ValueError(msg)
        return self._broadcast(tf.convert_to_tensor(value), root, label)

    @abc.abstractmethod
    def barrier(self, *, label: str = "") -> Operation:
        """Waits for all ranks.

        Args:
            label: Name in messages, the same on all ranks.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.
        """

    @staticmethod
    def chain(name: str) -> contextlib.AbstractContextManager[None]:
        """Separates collectives of a TF1 graph that run by themselves.

        In a TF1 graph each collective runs after the one built before it, and
        so brings it along. Those that are run apart from the training step, as
        the first broadcast of weights or the evaluation, are built within a
        chain of their own. No `session.run` may fetch from two chains.

        Args:
            name: Of the chain.

        Example:
            >>> from embedra.distribute import communicator
            >>> with communicator().chain("first weights"):
            ...     weights = communicator().broadcast([1.0, 2.0])
        """
        return _ops.chain(name)

    @abc.abstractmethod
    def _all_to_all_v(
        self,
        values: list[Tensor],
        splits: list[Tensor],
        receive_splits: list[Tensor],
        label: str,
    ) -> tuple[list[Tensor], list[Tensor]]: ...

    @abc.abstractmethod
    def _all_reduce(
        self,
        values: list[Tensor],
        reduction: str,
        bucket_bytes: int,
        label: str,
    ) -> list[Tensor]: ...

    @abc.abstractmethod
    def _all_gather_v(
        self, value: Tensor, label: str, any_label: bool
    ) -> tuple[Tensor, Tensor]: ...

    @abc.abstractmethod
    def _broadcast(self, value: Tensor, root: int, label: str) -> Tensor: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rank={self.rank}, size={self.size})"


def _is_list(values: Any) -> bool:
    """Returns whether values are several, rather than one tensor's numbers."""
    return isinstance(values, list | tuple) and any(
        tf.is_tensor(value) or hasattr(value, "dtype") for value in values
    )


def _check_one_dtype(tensors: Sequence[Tensor], name: str) -> None:
    dtypes = {tensor.dtype.name for tensor in tensors}
    if len(dtypes) != 1:
        msg = (
            f"`{name}` of one exchange must have one dtype. Received: "
            f"{', '.join(sorted(dtypes))}."
        )
        raise ValueError(msg)
