"""Loads the op library, after checking that it fits the TensorFlow found."""

import importlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf


_FILE_NAME = "libembedra_ops.so"


class BuildInfo(NamedTuple):
    """How the op library was built.

    Attributes:
        tensorflow_version: The TensorFlow it was built for.
        compiler: Name and version of the C++ compiler.
        flags: Flags that every file was compiled with.
        build_type: CMake's name for the kind of build.
        library: Path of the loaded file.
        kernel_set: The instruction set in use on this processor: "baseline",
            "avx2" or "avx512".
    """

    tensorflow_version: str
    compiler: str
    flags: str
    build_type: str
    library: str
    kernel_set: str


def build_info() -> BuildInfo:
    """Returns how the op library was built, and what it uses here."""
    with tf.init_scope():
        kernel_set = native_ops.embedra_kernel_set().numpy().decode()
    built = _build_module()
    return BuildInfo(
        tensorflow_version=built.TENSORFLOW_VERSION,
        compiler=built.COMPILER,
        flags=built.COMPILER_FLAGS,
        build_type=built.BUILD_TYPE,
        library=str(_find_library()),
        kernel_set=kernel_set,
    )


def check_tensorflow(found: str, built_for: str) -> None:
    """Raises unless TensorFlow `found` can load ops built for `built_for`.

    Args:
        found: The version imported.
        built_for: The version that the op library was compiled against.

    Raises:
        ImportError: If the minor versions differ.
    """
    minor = ".".join(built_for.split(".")[:2])
    if found.split(".")[:2] != minor.split("."):
        msg = (
            f"Embedra was built for TensorFlow {minor}; found {found}. Install "
            f"TensorFlow {minor}, or rebuild Embedra with `pip install .`."
        )
        raise ImportError(msg)


def _find_library() -> Path:
    # A developer's installation spreads the package over two folders: sources
    # in the one, what was built in the other.
    folders = [Path(p) for p in sys.modules[__package__ or ""].__path__]
    for folder in folders:
        if (folder / _FILE_NAME).exists():
            return folder / _FILE_NAME
    msg = (
        f"Embedra's op library is not built: no {_FILE_NAME} in "
        f"{', '.join(map(str, folders))}. Build it with `pip install .`."
    )
    raise ImportError(msg)


def _build_module() -> Any:
    return importlib.import_module(f"{__package__}._build_info")


def _load() -> Any:
    path = _find_library()
    check_tensorflow(tf.__version__, _build_module().TENSORFLOW_VERSION)
    return tf.load_op_library(str(path))


native_ops = _load()
"""The generated function of every op, by its name in snake case."""
