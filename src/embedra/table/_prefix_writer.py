"""PrefixWriter: writes the parts of a checkpoint while others are read."""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import tensorflow as tf


# Parts that are written while the next one is being read. Two make a save no
# faster on most disks, and a part is held in memory until it is written.
_WRITERS = 1


class PrefixWriter:
    """Writes small checkpoints ("prefixes") that are to be merged.

    Executed eagerly, a part is written while the next one is being read. All
    are written when the `with` block ends.

    Args:
        file_prefix: Where to write, a string tensor.

    Attributes:
        prefixes: The prefixes, in order.
    """

    def __init__(self, file_prefix: Any) -> None:
        self.prefixes: list[tf.Tensor] = []
        self._file_prefix = file_prefix
        self._threads: ThreadPoolExecutor | None = None
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> "PrefixWriter":
        if tf.executing_eagerly():
            self._threads = ThreadPoolExecutor(_WRITERS)
        return self

    def write(
        self, tensors: dict[str, Any], slices: dict[str, str] | None = None
    ) -> None:
        """Writes a part.

        Args:
            tensors: Tensors by name.
            slices: For those that are slices of larger tensors, the shape of
                the whole and which slice it is, as `tf.raw_ops.SaveV2` takes
                it.
        """
        slices = slices or {}
        parts = [slices.get(name, "") for name in tensors]
        number = len(self.prefixes)
        prefix = tf.strings.join([self._file_prefix, f"_{number:06d}"])
        self.prefixes.append(prefix)
        if self._threads is None:
            _save(prefix, tensors, parts)
            return
        while len(self._pending) >= _WRITERS:
            self._pending.popleft().result()
        self._pending.append(
            self._threads.submit(_save, prefix, tensors, parts)
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._threads is not None:
            self._threads.shutdown()
        if error is None:
            for written in self._pending:
                written.result()


def _save(
    prefix: tf.Tensor, tensors: dict[str, Any], slices: list[str]
) -> None:
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=list(tensors),
        shape_and_slices=slices,
        tensors=list(tensors.values()),
    )
