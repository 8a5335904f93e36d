"""Whether saved models predict the same in new processes.

One of them runs this module:

    python -m embedra.cli._saved_check DIRECTORY NAME...

It loads the examples, and for each model `NAME.keras`, and writes what they
predict. Another one loads the SavedModels, `NAME`, and has no Embedra; see
`_plain_check.py`. They learn nothing else from the process that trained.
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

from embedra.data import Block, Columns
from embedra.saved_model import export


Array = npt.NDArray[np.float32]

_EXAMPLES = "examples.npz"
_PREDICTIONS = "predictions.npz"
_SERVED = "served.npz"


@dataclass(frozen=True)
class SavedDifference:
    """Largest difference of a prediction after saving and loading.

    Attributes:
        keras: For the `.keras` file.
        exported: For the SavedModel, where Embedra is not imported.
    """

    keras: float
    exported: float


def save_and_compare(
    directory: Path,
    models: dict[str, keras.Model],
    examples: Block,
    columns: Columns,
) -> dict[str, SavedDifference]:
    """Saves models both ways and compares predictions of new processes.

    Args:
        directory: Where the files go.
        models: Models by name.
        examples: Rows to predict.
        columns: The columns of the rows.

    Returns:
        The largest difference for each model.

    Raises:
        RuntimeError: If a new process fails; carries what it printed.
    """
    features = features_of(examples, columns)
    np.savez(directory / _EXAMPLES, allow_pickle=False, **features)
    for name, model in models.items():
        model.save(directory / f"{name}.keras")
        export(model, directory / name, overwrite=True)
    _run("-m", "embedra.cli._saved_check", str(directory), *models)
    served = directory / _SERVED
    _run(
        "-P",
        str(Path(__file__).with_name("_plain_check.py")),
        str(directory / _EXAMPLES),
        str(served),
        *(str(directory / name) for name in models),
    )
    with np.load(directory / _PREDICTIONS) as loaded, np.load(served) as plain:
        return {
            name: SavedDifference(
                _difference(model, features, loaded[name]),
                _difference(model, features, plain[f"arr_{i}"]),
            )
            for i, (name, model) in enumerate(models.items())
        }


def _run(*arguments: str) -> None:
    command = [sys.executable, *arguments]
    child = subprocess.run(command, capture_output=True, text=True)
    if child.returncode:
        msg = f"Loading in a new process failed:\n{child.stderr}"
        raise RuntimeError(msg)


def features_of(
    block: Block, columns: Columns
) -> dict[str, npt.NDArray[np.generic]]:
    """The features of a block by column, shape `[rows]` each."""
    numeric = zip(columns.numeric, block.numeric.T, strict=True)
    categorical = zip(columns.categorical, block.categorical.T, strict=True)
    return {**dict(numeric), **dict(categorical)}


def _difference(
    model: keras.Model,
    features: dict[str, npt.NDArray[np.generic]],
    predicted: Array,
) -> float:
    ours = np.asarray(model.predict_on_batch(features))
    return float(np.max(np.abs(ours - predicted)))


def _predict(directory: Path, names: Sequence[str]) -> None:
    with np.load(directory / _EXAMPLES) as examples:
        features = dict(examples)
    predictions = {}
    for name in names:
        model = keras.models.load_model(directory / f"{name}.keras")
        predictions[name] = model.predict_on_batch(features)
    np.savez(directory / _PREDICTIONS, allow_pickle=False, **predictions)


if __name__ == "__main__":
    _predict(Path(sys.argv[1]), sys.argv[2:])
