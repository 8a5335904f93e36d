"""Type aliases shared by every package."""

from typing import Any, TypeAlias


Tensor: TypeAlias = Any
"""A `tf.Tensor`, or anything `tf.convert_to_tensor` accepts."""

Array: TypeAlias = Any
"""A `numpy.ndarray`, or anything `numpy.asarray` accepts."""

Operation: TypeAlias = Any
"""A `tf.Operation` while a graph is built, None when executing eagerly."""
