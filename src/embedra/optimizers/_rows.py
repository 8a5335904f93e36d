"""Rows: stands in for a variable while an optimizer updates a block of rows."""

import itertools
from collections.abc import Callable
from typing import Any

import tensorflow as tf


_IDS = itertools.count()


def _forward(name: str) -> Callable[..., Any]:
    """Returns an operator that works on the rows' tensor."""

    def operate(self: "Rows", *others: Any) -> Any:
        values = [o.tensor if isinstance(o, Rows) else o for o in others]
        return getattr(self.tensor, name)(*values)

    return operate


class Rows:
    """A variable in all that an optimizer's `update_step` asks for.

    It holds a tensor, and `assign` replaces it: nothing is stored. An optimizer
    that is written for variables thus computes new rows and slots as a function
    of the old ones.

    Attributes:
        tensor: The rows, `float32`, shape `(n, dim)`.
    """

    trainable = True
    constraint = None
    dtype = "float32"

    def __init__(self, dim: int, name: str, initial: float = 0.0) -> None:
        self.tensor: Any = None
        self.dim = dim
        self.name = name
        self.path = name
        self.initial = initial
        # Keras tells variables apart by this.
        self._unique_id = f"embedra_rows_{next(_IDS)}"

    @property
    def shape(self) -> tf.TensorShape:
        """`(n, dim)`; n is unknown until there are rows."""
        if self.tensor is None:
            return tf.TensorShape((None, self.dim))
        return self.tensor.shape

    @property
    def value(self) -> Any:
        """The rows, as Keras variables give their value."""
        return self.tensor

    def read_value(self) -> Any:
        """The rows, as TensorFlow variables give their value."""
        return self.tensor

    def assign(self, value: Any) -> "Rows":
        """Replaces the rows."""
        self.tensor = tf.cast(value, self.dtype)
        return self

    def assign_add(self, value: Any) -> "Rows":
        """Adds to the rows."""
        return self.assign(self.tensor + tf.cast(value, self.dtype))

    def assign_sub(self, value: Any) -> "Rows":
        """Subtracts from the rows."""
        return self.assign(self.tensor - tf.cast(value, self.dtype))

    def __tf_tensor__(self, dtype: Any = None, name: Any = None) -> Any:
        return tf.convert_to_tensor(self.tensor, dtype=dtype, name=name)

    __add__ = _forward("__add__")
    __radd__ = _forward("__radd__")
    __sub__ = _forward("__sub__")
    __rsub__ = _forward("__rsub__")
    __mul__ = _forward("__mul__")
    __rmul__ = _forward("__rmul__")
    __truediv__ = _forward("__truediv__")
    __rtruediv__ = _forward("__rtruediv__")
    __pow__ = _forward("__pow__")
    __rpow__ = _forward("__rpow__")
    __neg__ = _forward("__neg__")
    __abs__ = _forward("__abs__")
    __lt__ = _forward("__lt__")
    __le__ = _forward("__le__")
    __gt__ = _forward("__gt__")
    __ge__ = _forward("__ge__")
    __getitem__ = _forward("__getitem__")
