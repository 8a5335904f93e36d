"""wraps: makes classes of Keras and TensorFlow know of tables."""

from ._wraps import wraps as wraps
