"""What a server without Embedra does: run as a program by the tests.

    python plain_tensorflow.py FOLDER...

For each SavedModel it answers the request in `FOLDER.npz`, tensors by name, by
the default signature, and writes the answer to `FOLDER.answer.npz`.
"""

import importlib.util
import sys

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2


def ops_of(folder):
    """Names of all ops in the graph file."""
    model = saved_model_pb2.SavedModel()
    with open(f"{folder}/saved_model.pb", "rb") as file:
        model.ParseFromString(file.read())
    graph = model.meta_graphs[0].graph_def
    functions = [f.node_def for f in graph.library.function]
    return {node.op for nodes in [graph.node, *functions] for node in nodes}


def request_of(folder):
    with np.load(f"{folder}.npz") as request:
        return {
            name: tf.constant(
                value.astype(object) if value.dtype.kind in "US" else value
            )
            for name, value in request.items()
        }


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        assert not [op for op in ops_of(folder) if "Embedra" in op]
        loaded = tf.saved_model.load(folder)
        answer = loaded.signatures["serving_default"](**request_of(folder))
        np.savez(
            f"{folder}.answer.npz",
            **{name: value.numpy() for name, value in answer.items()},
        )
    assert importlib.util.find_spec("embedra") is None
