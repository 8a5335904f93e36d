"""`embedra doctor`: versions, and whether the numbers are right."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import metadata

import keras
import numpy as np
import tensorflow as tf
import typer
from numpy.typing import ArrayLike
from rich.table import Table as Listing

from embedra import _ops
from embedra.layers import Embedding

from ._console import console, marked, quiet_tensorflow


# By the core's kernel set; see csrc/embedra/core/CMakeLists.txt.
_FEATURES = {
    "baseline": "those of every processor of its kind (baseline kernels)",
    "avx2": "AVX2, F16C (avx2 kernels)",
    "avx512": "AVX-512 F, DQ, BW, VL, F16C (avx512 kernels)",
}


def doctor() -> None:
    """Shows versions and checks that a lookup and an update are right."""
    quiet_tensorflow()
    console.print(_versions())
    healthy = True
    for title, check in _CHECKS.items():
        try:
            check()
        except Exception as error:  # noqa: BLE001 - any failure is a finding
            healthy = False
            console.print(marked("fail", "red", f" {title}: {error}"))
        else:
            console.print(marked("pass", "green", f" {title}"))
    raise typer.Exit(0 if healthy else 1)


def _versions() -> Listing:
    build = _ops.build_info()
    rows = {
        "Embedra": metadata.version("embedra"),
        "TensorFlow": f"{tf.__version__} "
        f"(built for {build.tensorflow_version})",
        "Keras": keras.__version__,
        "Python": platform.python_version(),
        "Compiler": build.compiler,
        "Compiler flags": build.flags,
        "CPU features used": _FEATURES[build.kernel_set],
    }
    listing = Listing(show_header=False, box=None)
    for name, value in rows.items():
        listing.add_row(name, value)
    return listing


def _check_lookup() -> None:
    layer = Embedding(4, embeddings_initializer="ones", name="doctor_lookup")
    ids = np.array([[1, -2], [2**62, 1]], np.int64)
    rows = np.asarray(layer(ids, training=True))
    _expect_close("looked-up rows", rows, np.ones((2, 2, 4), np.float32))
    _expect_close("number of keys", layer.table.size(), 3)


def _check_update() -> None:
    """Adam's first step on three ids, one of them twice in the batch."""
    layer = Embedding(2, embeddings_initializer="zeros", name="doctor_update")
    optimizer = keras.optimizers.Adam(0.1)
    ids = np.array([7, 8, 7, 9], np.int64)
    weights = np.array([[1.0, 2.0], [3.0, 0.0], [1.0, -1.0], [0.5, 4.0]])
    weights = weights.astype(np.float32)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids, training=True) * weights)
    variables = layer.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    gradients = np.stack([weights[0] + weights[2], weights[1], weights[3]])
    # After one step both moments, corrected, are the gradient and its square.
    expected = -0.1 * gradients / (np.abs(gradients) + 1e-7)
    rows = np.asarray(layer(np.array([7, 8, 9], np.int64), training=False))
    _expect_close("rows after a step of Adam", rows, expected)


def _expect_close(what: str, actual: ArrayLike, expected: ArrayLike) -> None:
    if not np.allclose(actual, expected, rtol=1e-5, atol=1e-6):
        shown = np.asarray(actual).tolist(), np.asarray(expected).tolist()
        msg = f"{what}: found {shown[0]}, expected {shown[1]}"
        raise ArithmeticError(msg)


_CHECKS: dict[str, Callable[[], None]] = {
    "lookup gives the right rows": _check_lookup,
    "update gives the right rows": _check_update,
}
