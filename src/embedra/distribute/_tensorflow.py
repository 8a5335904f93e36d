"""TensorFlowCommunicator: ranks that `TF_CONFIG` names."""

import atexit
import os
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from embedra._typing import Operation, Tensor
from embedra.scopes import context

from ._call_headers import Call, agree, layout_of
from ._communicator import Communicator
from ._flat_exchanges import FlatExchanges
from ._ragged_rows import check_splits, pack, unpack, widths_of
from ._tensorflow_cluster import check_not_tf1, join_cluster
from ._wire import from_bits, from_wire, to_bits, to_wire


class TensorFlowCommunicator(Communicator):
    """Exchanges tensors by TensorFlow's own collectives, without MPI.

    For machines without MPI, and programs that TensorFlow's launchers start. It
    is slower than MPI: ranks agree on each call in an exchange of its own, and
    rows for different ranks are padded to the same number. It works eagerly and
    in a `tf.function`, not in TF1 graphs.

    There is one in a process, see `communicator`. It must be made before any
    operation of TensorFlow runs, and joins the cluster for good. At the
    process's end it waits for the other ranks; when one dies, the collectives
    of all others fail.

    Args:
        timeout: Seconds after which a collective fails; 0 for never.

    Raises:
        RuntimeError: If `TF_CONFIG` names no workers, or operations ran before.
    """

    def __init__(self, *, timeout: float = 0.0) -> None:
        self.rank, self.size = context.rank, context.world_size
        self.local_rank = context.local_rank
        self.local_size = context.local_world_size
        self._strategy = join_cluster()
        self._exchanges = FlatExchanges(
            self.size, f"{context.default_device}/device:CPU:0", timeout
        )
        self.barrier(label="start")
        atexit.register(self._end, os.getpid())

    def barrier(self, *, label: str = "") -> Operation:
        """Waits for all ranks.

        Args:
            label: Name in messages, the same on all ranks.

        Returns:
            None: TF1 graphs, where it would be an operation, are refused.
        """
        self._agree("barrier", label, tf.constant(""))

    def _agree(
        self, kind: str, label: str, layout: Tensor, **details: Any
    ) -> Tensor:
        check_not_tf1()
        return agree(
            self._exchanges, self.rank, Call(kind, label), layout, **details
        )

    def _all_to_all_v(
        self,
        values: list[Tensor],
        splits: list[Tensor],
        receive_splits: list[Tensor],
        label: str,
    ) -> tuple[list[Tensor], list[Tensor]]:
        # All ranks learn all splits, from which each knows what it gets.
        del receive_splits
        received: list[Tensor] = []
        if not tf.executing_eagerly():
            # Graphs of gradients take no eager tensors.
            splits = [tf.identity(split) for split in splits]

        def exchange(*values: Tensor) -> Any:
            rows, counts = self._exchange_rows(list(values), splits, label)
            received[:] = counts

            def gradient(*upstream: Tensor) -> list[Tensor]:
                back, _ = self._all_to_all_v(
                    [tf.convert_to_tensor(each) for each in upstream],
                    counts,
                    splits,
                    f"gradient of {label}",
                )
                return back

            return rows, gradient

        rows = _differentiable(exchange, values)
        return rows, received

    def _exchange_rows(
        self, values: list[Tensor], splits: list[Tensor], label: str
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Sends rows to each rank; see `all_to_all_v`."""
        own, problem = check_splits(values, splits, self.size)
        layout = layout_of(values, any_rows=True)
        agreed = self._agree("all_to_all_v", label, layout, problem=problem)
        with tf.control_dependencies([agreed]):
            everything = tf.reshape(
                self._exchanges.gather(tf.reshape(own, (-1,))),
                (self.size, len(values), self.size),
            )
            wires = [to_wire(value) for value in values]
            widths = widths_of(wires)
            longest = tf.reduce_max(
                tf.reduce_sum(everything * widths[:, tf.newaxis], axis=1)
            )
            counts = everything[:, :, self.rank]
            blocks = self._exchanges.all_to_all(
                pack(wires, own, widths, longest)
            )
            rows = unpack(blocks, counts, widths, wires)
        received = [
            from_wire(row, value.dtype)
            for row, value in zip(rows, values, strict=True)
        ]
        return received, tf.unstack(counts, axis=1)

    def _all_reduce(
        self,
        values: list[Tensor],
        reduction: str,
        bucket_bytes: int,
        label: str,
    ) -> list[Tensor]:
        # All of a list are one bucket: they are joined as they are sent.
        del bucket_bytes

        def reduce(*values: Tensor) -> Any:
            def gradient(*upstream: Tensor) -> list[Tensor]:
                if reduction not in ("sum", "mean"):
                    msg = (
                        f"all_reduce {label!r} has the reduction "
                        f"{reduction!r}, which has no gradient. Use "
                        '"sum" or "mean", or tf.stop_gradient.'
                    )
                    raise LookupError(msg)
                return self._all_reduce(
                    [tf.convert_to_tensor(each) for each in upstream],
                    reduction,
                    1,
                    f"gradient of {label}",
                )

            return self._reduce(list(values), reduction, label), gradient

        return _differentiable(reduce, values)

    def _reduce(
        self, values: list[Tensor], reduction: str, label: str
    ) -> list[Tensor]:
        layout = tf.strings.join(
            [reduction, layout_of(values, any_rows=False)], " "
        )
        agreed = self._agree("all_reduce", label, layout)
        parts = [tf.reshape(to_wire(value), (-1,)) for value in values]
        with tf.control_dependencies([agreed]):
            total = self._exchanges.reduce(
                tf.concat(parts, axis=0),
                "sum" if reduction == "mean" else reduction,
            )
        if reduction == "mean":
            total /= self.size
        reduced = tf.split(total, [tf.size(part) for part in parts])
        return [
            from_wire(tf.reshape(part, tf.shape(value)), value.dtype)
            for part, value in zip(reduced, values, strict=True)
        ]

    def _all_gather_v(
        self, value: Tensor, label: str, any_label: bool
    ) -> tuple[Tensor, Tensor]:
        received: list[Tensor] = []

        def gather(value: Tensor) -> Any:
            rows, counts = self._gather_rows(value, label, any_label)
            received[:] = [counts]

            def gradient(upstream: Tensor) -> Tensor:
                own = tf.shape(value, out_type=tf.int64)
                (parts,), _ = self._all_to_all_v(
                    [tf.convert_to_tensor(upstream)],
                    [counts],
                    [],
                    f"gradient of {label}",
                )
                stacked = tf.concat([[self.size], own], axis=0)
                return tf.reduce_sum(tf.reshape(parts, stacked), axis=0)

            return rows, gradient

        (rows,) = _differentiable(gather, [value])
        return rows, received[0]

    def _gather_rows(
        self, value: Tensor, label: str, any_label: bool
    ) -> tuple[Tensor, Tensor]:
        is_scalar = value.shape.rank == 0
        own_rows = 0 if is_scalar else tf.shape(value)[0]
        counts = self._agree(
            "all_gather_v",
            label,
            layout_of([value], any_rows=True),
            any_label=any_label,
            rows=own_rows,
            problem="`value` must have rows." if is_scalar else "",
        )
        with tf.control_dependencies([counts]):
            wire = to_wire(value)
            widths = widths_of([wire])
            block = pack(
                [wire],
                tf.cast([[own_rows]], tf.int64),
                widths,
                tf.reduce_max(counts) * widths[0],
            )
            blocks = self._exchanges.gather(block[0])
            (rows,) = unpack(blocks, counts[:, tf.newaxis], widths, [wire])
        return from_wire(rows, value.dtype), counts

    def _broadcast(self, value: Tensor, root: int, label: str) -> Tensor:
        def broadcast(value: Tensor) -> Any:
            def gradient(upstream: Tensor) -> Tensor:
                (total,) = self._all_reduce(
                    [tf.convert_to_tensor(upstream)],
                    "sum",
                    1,
                    f"gradient of {label}",
                )
                return total if self.rank == root else tf.zeros_like(total)

            return self._broadcast_bits(value, root, label), gradient

        (result,) = _differentiable(broadcast, [value])
        return result

    def _broadcast_bits(self, value: Tensor, root: int, label: str) -> Tensor:
        layout = tf.strings.join(
            [f"rank {root}", layout_of([value], any_rows=False)], " "
        )
        agreed = self._agree("broadcast", label, layout)
        bits = to_bits(value)
        if self.rank != root:
            bits = tf.zeros_like(bits)
        with tf.control_dependencies([agreed]):
            total = self._exchanges.reduce(tf.reshape(bits, (-1,)), "sum")
        return from_bits(tf.reshape(total, tf.shape(value)), value.dtype)

    def _end(self, process: int) -> None:
        """Waits for the other ranks at the end of the process.

        Args:
            process: Its id; forked children, which inherit this, do nothing.
        """
        failed = getattr(sys, "last_value", None) is not None
        if os.getpid() != process or failed:
            return
        try:
            self.barrier(label="end of the program")
        except tf.errors.OpError as error:
            print(
                f"embedra: rank {self.rank} has ended before others: "
                f"{error.message}",
                file=sys.stderr,
                flush=True,
            )


def _differentiable(
    call: Callable[..., Any], values: list[Tensor]
) -> list[Tensor]:
    """Runs what gives outputs and their gradient, as `tf.custom_gradient` does.

    Args:
        call: Takes the values, and returns outputs and a function.
        values: Of one dtype. Only floating ones have a gradient.
    """
    if values[0].dtype.is_floating:
        outputs = tf.custom_gradient(call)(*values)
    else:
        outputs, _ = call(*values)
    flat: list[Tensor] = tf.nest.flatten(outputs)
    return flat
