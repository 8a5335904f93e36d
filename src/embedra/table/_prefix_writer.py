"""PrefixWriter: writes the parts of a checkpoint while others are read."""

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import tensorflow as tf


class PrefixWriter:
    """Writes small checkpoints ("prefixes") that are to be merged.

    Executed eagerly, a part is written while the next one is being read. All
    are written when the `with` block ends. One at a time is: two make a save no
    faster on most disks, and a part is held in memory until it is written.

    Args:
        file_prefix: Where to write, a string tensor.

    Attributes:
        prefixes: The prefixes, in order.
    """

    def __init__(self, file_prefix: Any) -> None:
        self.prefixes: list[tf.Tensor] = []
        self._file_prefix = file_prefix
        self._thread: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None

    def __enter__(self) -> "PrefixWriter":
        if tf.executing_eagerly():
            self._thread = ThreadPoolExecutor(1)
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
        if self._thread is None:
            _save(prefix, tensors, parts)
            return
        if self._pending is not None:
            self._pending.result()
        self._pending = self._thread.submit(_save, prefix, tensors, parts)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._thread.shutdown()
        if error is None and self._pending is not None:
            self._pending.result()


def _save(
    prefix: tf.Tensor, tensors: dict[str, Any], slices: list[str]
) -> None:
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=list(tensors),
        shape_and_slices=slices,
        tensors=list(tensors.values()),
    )
