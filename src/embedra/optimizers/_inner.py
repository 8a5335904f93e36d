"""The `tf.Variable` inside a `TableVariable`, and who must not step it."""

import functools
import sys
from typing import Any

import tensorflow as tf

from ._support import UnsupportedOptimizerError


# Optimizers reach for the handle themselves; for what they tell variables apart
# by there may be frames of autograph between.
_FRAMES_TO_HANDLE = 4
_FRAMES_TO_KEY = 12

# Where those optimizers, or the classes that they derive from, are.
_MODULES = ("tf_keras.", "tensorflow.python.training.")


def as_rows_of(inner: tf.Variable, table_variable: Any) -> None:
    """Has a variable say that it stands for rows.

    Tapes hand it out (`tape.watched_variables()`). Keras 3 optimizers train by
    it as by the variable around it. Those of tf_keras and `tf.compat.v1.train`
    take it for a variable without elements; they are refused when they reach
    for it, with an error that says what to do, rather than by a kernel that
    misses a row.

    Args:
        inner: The variable inside.
        table_variable: The `TableVariable` around it.
    """
    plain: Any = type(inner)
    inner.__class__ = _class_over(plain)
    inner.table_variable = table_variable


@functools.cache
def _class_over(base: Any) -> Any:
    """Returns the class of inner variables, over a class of TensorFlow's."""

    class RowsVariable(base):
        """Stands for rows of a table, and refuses who does not know that."""

        @property
        def overwrite_with_gradient(self) -> bool:
            return bool(self.table_variable.overwrite_with_gradient)

        def assign(self, value: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(value, tf.IndexedSlices):
                return self.table_variable.assign(value)
            return super().assign(value, *args, **kwargs)

        @property
        def handle(self) -> Any:
            _refuse_plain(self, _FRAMES_TO_HANDLE)
            return super().handle

        @property
        def _unique_id(self) -> Any:
            _refuse_plain(self, _FRAMES_TO_KEY)
            return self.__dict__["_unique_id"]

        @_unique_id.setter
        def _unique_id(self, value: Any) -> None:
            self.__dict__["_unique_id"] = value

    return RowsVariable


def _refuse_plain(inner: Any, frames: int) -> None:
    """Raises if an optimizer calls that was not wrapped.

    Args:
        inner: The variable.
        frames: How far up to look for an optimizer.
    """
    # From the caller of the property.
    frame = sys._getframe(2)
    for _ in range(frames):
        # To look at the variables of a user's frame would keep them alive.
        if frame.f_globals.get("__name__", "").startswith(_MODULES):
            owner = frame.f_locals.get("self")
            if _is_foreign(owner):
                break
        if frame.f_back is None:
            return
        frame = frame.f_back
    else:
        return
    if getattr(owner, "handles_tables", False):
        return
    name = type(owner).__name__
    msg = (
        f"Optimizer {name} of {type(owner).__module__.split('.')[0]} does not "
        f"know of tables, and cannot update {inner.table_variable.table.name!r}"
        f". Use embedra.DynamicEmbeddingOptimizer({name}(...))."
    )
    raise UnsupportedOptimizerError(msg)


def _is_foreign(owner: Any) -> bool:
    """Returns whether this is an optimizer of tf_keras or TF1."""
    if isinstance(owner, tf.compat.v1.train.Optimizer):
        return True
    tf_keras = sys.modules.get("tf_keras")
    if tf_keras is None or not hasattr(tf_keras, "optimizers"):
        return False
    kinds = (
        tf_keras.optimizers.Optimizer,
        tf_keras.optimizers.legacy.Optimizer,
    )
    return isinstance(owner, kinds)
