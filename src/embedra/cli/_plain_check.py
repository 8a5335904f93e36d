"""What SavedModels predict where Embedra is not imported.

A new process runs this file by its path, so that nothing but TensorFlow is
loaded:

    python -P _plain_check.py EXAMPLES PREDICTIONS FOLDER...

It writes what each SavedModel predicts for the examples.
"""

import sys

import numpy as np
import tensorflow as tf


def _predict(examples: str, predictions: str, *folders: str) -> None:
    with np.load(examples) as arrays:
        features = {name: tf.constant(array) for name, array in arrays.items()}
    predicted = {}
    for folder in folders:
        loaded = tf.saved_model.load(folder)
        answer = loaded.signatures["serving_default"](**features)
        predicted[folder] = answer["output_0"].numpy()
    if "embedra" in sys.modules:
        msg = "Embedra was imported, so that this shows nothing."
        raise RuntimeError(msg)
    values = [predicted[folder] for folder in folders]
    np.savez(predictions, *values)


if __name__ == "__main__":
    _predict(*sys.argv[1:])
