"""Dynamic embeddings for TensorFlow and Keras.

Importing this package loads the op library and changes nothing in TensorFlow
or Keras.
"""

from importlib.metadata import version as _version

from ._env import quiet_tensorflow_of_the_command as _quiet_tensorflow


_quiet_tensorflow()

from . import _ops as _ops  # noqa: E402 - after the environment is set


__version__ = _version("embedra")
