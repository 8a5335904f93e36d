"""Symbolic batches: Keras tensors that stand for the elements of a dataset."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf


_KINDS = (tf.TensorSpec, tf.RaggedTensorSpec, tf.SparseTensorSpec)


class BatchTensor(keras.KerasTensor):
    """One tensor of a symbolic batch: a Keras input that knows its dataset.

    Args:
        spec: What it is, as the dataset says.
        name: Its name; None for one that Keras makes up.
        batch: The batch that it belongs to.

    Attributes:
        batch: That batch.
    """

    def __init__(
        self, spec: Any, name: str | None, batch: "SymbolicBatch"
    ) -> None:
        ragged = isinstance(spec, tf.RaggedTensorSpec)
        kind: dict[str, Any] = {}
        if ragged:
            kind = {
                "ragged": True,
                "ragged_rank": spec.ragged_rank,
                "row_splits_dtype": spec.row_splits_dtype.name,
            }
        elif isinstance(spec, tf.SparseTensorSpec):
            kind = {"sparse": True}
        # Free, as the last batch is shorter, and requests are of any size.
        shape = (None, *spec.shape.as_list()[1:])
        super().__init__(shape, spec.dtype.name, name=name, **kind)
        self.batch = batch
        # Names of layers must not look like paths.
        keras.Input(
            tensor=self, ragged=ragged, name=self.name.replace("/", "_")
        )


class SymbolicBatch:
    """A batch of a dataset, before there is one.

    Args:
        dataset: A dataset of batches.

    Raises:
        TypeError: If it is no dataset, or yields something else than tensors.
        ValueError: If it yields no batches.

    Attributes:
        dataset: That dataset.
        structure: Its elements, with a `BatchTensor` for each tensor.
    """

    def __init__(self, dataset: tf.data.Dataset) -> None:
        if not isinstance(dataset, tf.data.Dataset):
            msg = (
                "A symbolic batch is made of a tf.data.Dataset. Received: "
                f"{type(dataset).__name__}."
            )
            raise TypeError(msg)
        self.dataset = dataset
        spec = dataset.element_spec
        specs, names = tf.nest.flatten(spec), _names(spec)
        for i, one in enumerate(specs):
            _check(one, names[i] or f"number {i}")
        self.structure = tf.nest.pack_sequence_as(
            spec,
            [
                BatchTensor(one, name, self)
                for one, name in zip(specs, names, strict=True)
            ],
        )

    def is_like(self, dataset: Any) -> bool:
        """Returns whether a dataset's elements are such as those of this one.

        Args:
            dataset: Anything.
        """
        return isinstance(dataset, tf.data.Dataset) and (
            _kinds(dataset.element_spec) == _kinds(self.dataset.element_spec)
        )

    def choose(
        self, dataset: tf.data.Dataset, *structures: Any
    ) -> tf.data.Dataset:
        """Takes out of a dataset what symbolic tensors stand for.

        Args:
            dataset: This batch's dataset, or one that is like it.
            *structures: Structures of this batch's tensors, and of what Keras
                operations make of them.

        Returns:
            A dataset of tuples of these, with tuples in the place of lists.
        """
        tensors = tf.nest.flatten(self.structure)
        structures = keras.tree.lists_to_tuples(structures)
        wanted = tf.nest.flatten(structures)
        read = keras.Function(tensors, wanted)

        @tf.autograph.experimental.do_not_convert
        def chosen(*element: Any) -> Any:
            found = read(tf.nest.flatten(element))
            return tf.nest.pack_sequence_as(structures, found)

        # That of TensorFlow 1 would forget how many batches there are.
        return tf.data.Dataset.map(dataset, chosen)


def _check(spec: Any, what: str) -> None:
    if not isinstance(spec, _KINDS):
        msg = (
            f"Component {what!r} of the dataset is a {type(spec).__name__}. "
            "Models take dense, ragged and sparse tensors."
        )
        raise TypeError(msg)
    if spec.shape.rank is None:
        msg = (
            f"Component {what!r} of the dataset may have any shape. Say which, "
            "with `tf.ensure_shape` in a `map` of the dataset."
        )
        raise ValueError(msg)
    if spec.shape.rank == 0:
        msg = (
            f"Component {what!r} of the dataset is a scalar, and no batch. "
            "Call `batch` on the dataset first."
        )
        raise ValueError(msg)


def _kinds(spec: Any) -> Any:
    return tf.nest.map_structure(lambda one: (type(one), one.dtype), spec)


def _names(structure: Any) -> list[str | None]:
    """Names what is in a structure, in the order of `tf.nest.flatten`.

    Args:
        structure: A structure.

    Returns:
        The keys on the way to each; None where there are none.
    """
    return ["_".join(path) or None for path in _paths(structure)]


def _paths(structure: Any) -> list[tuple[str, ...]]:
    if isinstance(structure, Mapping):
        return [
            (str(key), *path)
            for key in sorted(structure)
            for path in _paths(structure[key])
        ]
    if isinstance(structure, tuple):
        return [path for one in structure for path in _paths(one)]
    return [()]
