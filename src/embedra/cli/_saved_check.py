"""Whether saved models predict the same in a new process.

The new process runs this module:

    python -m embedra.cli._saved_check DIRECTORY NAME...

It loads the examples, and for each model `NAME.keras` and the SavedModel
`NAME`, and writes what they predict. It learns nothing else from the process
that trained.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from embedra.data import Block, Columns


Array = npt.NDArray[np.float32]

_EXAMPLES = "examples.npz"
_PREDICTIONS = "predictions.npz"


@dataclass(frozen=True)
class SavedDifference:
    """Largest difference of a prediction after saving and loading.

    Attributes:
        keras: For the `.keras` file.
        exported: For the SavedModel.
    """

    keras: float
    exported: float


def save_and_compare(
    directory: Path,
    models: dict[str, keras.Model],
    examples: Block,
    columns: Columns,
) -> dict[str, SavedDifference]:
    """Saves models both ways and compares predictions of a new process.

    Args:
        directory: Where the files go.
        models: Models by name.
        examples: Rows to predict.
        columns: The columns of the rows.

    Returns:
        The largest difference for each model.

    Raises:
        RuntimeError: If the new process fails; carries what it printed.
    """
    features = features_of(examples, columns)
    np.savez(directory / _EXAMPLES, allow_pickle=False, **features)
    for name, model in models.items():
        model.save(directory / f"{name}.keras")
        model.export(str(directory / name), verbose=False)
    module = "embedra.cli._saved_check"
    command = [sys.executable, "-m", module, str(directory), *models]
    child = subprocess.run(command, capture_output=True, text=True)
    if child.returncode:
        msg = f"Loading in a new process failed:\n{child.stderr}"
        raise RuntimeError(msg)
    with np.load(directory / _PREDICTIONS) as predictions:
        return {
            name: _compare(model, features, predictions, name)
            for name, model in models.items()
        }


def features_of(
    block: Block, columns: Columns
) -> dict[str, npt.NDArray[np.generic]]:
    """The features of a block by column, shape `[rows]` each."""
    numeric = zip(columns.numeric, block.numeric.T, strict=True)
    categorical = zip(columns.categorical, block.categorical.T, strict=True)
    return {**dict(numeric), **dict(categorical)}


def _compare(
    model: keras.Model,
    features: dict[str, npt.NDArray[np.generic]],
    predictions: dict[str, Array],
    name: str,
) -> SavedDifference:
    ours = np.asarray(model.predict_on_batch(features))
    by_keras, exported = (
        float(np.max(np.abs(ours - predictions[f"{name}.{way}"])))
        for way in ("keras", "exported")
    )
    return SavedDifference(by_keras, exported)


def _predict(directory: Path, names: Sequence[str]) -> None:
    with np.load(directory / _EXAMPLES) as examples:
        features = dict(examples)
    tensors = {name: tf.constant(value) for name, value in features.items()}
    predictions = {}
    for name in names:
        model = keras.models.load_model(directory / f"{name}.keras")
        predictions[f"{name}.keras"] = model.predict_on_batch(features)
        exported = tf.saved_model.load(str(directory / name))
        predictions[f"{name}.exported"] = exported.serve(tensors).numpy()
    np.savez(directory / _PREDICTIONS, allow_pickle=False, **predictions)


if __name__ == "__main__":
    _predict(Path(sys.argv[1]), sys.argv[2:])
