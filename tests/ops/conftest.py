"""Ways to run an op: eagerly, in a `tf.function`, in a TF1 graph."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import _ops


class Tables:
    """Tables of one test, and a way to run ops on them.

    `run(body, *arrays)` calls `body(handles, *tensors)` in the mode of the
    test and returns its result as NumPy arrays.
    """

    def __init__(self, dims, **options):
        """Describes tables of widths `dims`; `options` are those of the op."""
        self.dims = list(dims)
        self._options = options

    def _specs(self):
        return [
            {"name": f"table_{i}", "dim": dim, **self._options}
            for i, dim in enumerate(self.dims)
        ]


class EagerTables(Tables):
    """Runs every op by itself."""

    def __init__(self, dims, **options):
        super().__init__(dims, **options)
        self.handles = [_ops.anonymous_table(**s) for s in self._specs()]

    def run(self, body, *arrays):
        return _to_numpy(body(self.handles, *map(tf.constant, arrays)))


class FunctionTables(EagerTables):
    """Runs ops in a `tf.function` whose first dimensions are unknown."""

    def run(self, body, *arrays):
        tensors = [tf.constant(array) for array in arrays]
        signature = [
            tf.TensorSpec([None] * t.shape.rank, t.dtype) for t in tensors
        ]

        @tf.function(input_signature=signature)
        def traced(*arguments):
            return _tensors_only(body(self.handles, *arguments))

        return _to_numpy(traced(*tensors))


class GraphTables(Tables):
    """Runs ops in sessions of one TF1 graph, on named tables."""

    def __init__(self, dims, **options):
        super().__init__(dims, **options)
        self._graph = tf.Graph()
        self._session = tf.compat.v1.Session(graph=self._graph)
        with self._graph.as_default():
            self.handles = [
                _ops.table(shared_name=spec["name"], **spec)
                for spec in self._specs()
            ]

    def run(self, body, *arrays):
        with self._graph.as_default():
            placeholders = [
                tf.compat.v1.placeholder(a.dtype, [None] * a.ndim)
                for a in map(np.asarray, arrays)
            ]
            fetches = body(self.handles, *placeholders)
            return self._session.run(
                fetches, dict(zip(placeholders, arrays, strict=True))
            )


_MODES = {
    "eager": EagerTables,
    "function": FunctionTables,
    "graph": GraphTables,
}


@pytest.fixture(params=_MODES)
def make_tables(request):
    """Makes `Tables`; the test runs once in each mode."""
    return _MODES[request.param]


@pytest.fixture
def eager_tables():
    """Makes `Tables` that run eagerly."""
    return EagerTables


def _tensors_only(result):
    """Drops the operation of an op without outputs; a function runs it."""
    return None if isinstance(result, tf.Operation) else result


def _to_numpy(result):
    return tf.nest.map_structure(
        lambda value: value.numpy() if tf.is_tensor(value) else value, result
    )
