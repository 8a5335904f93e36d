"""The dataset of whose symbolic tensors a model is made."""

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf


if TYPE_CHECKING:
    from embedra.data import SymbolicBatch


_ADVICE = (
    "Give `x`, or make the model, and its targets, of the tensors of one "
    "`embedra.data.make_one_shot_iterator(dataset).get_next()`."
)


class BoundData:
    """A dataset, and what of it a model takes.

    Args:
        batch: The batch of whose symbolic tensors the model is made.
        inputs: Those that are its inputs.
        targets: Those that are its targets; None if they are not known.
        weights: Those that are weights of the examples; None for none.
    """

    def __init__(
        self,
        batch: "SymbolicBatch",
        inputs: Any,
        targets: Any,
        weights: Any = None,
    ) -> None:
        self._batch = batch
        parts = (inputs, targets, weights)
        self._parts = tuple(part for part in parts if part is not None)
        # Keras gives the data of validation that `fit` has to `evaluate`.
        self._chosen = weakref.WeakSet[tf.data.Dataset]()

    def dataset(self) -> tf.data.Dataset:
        """Returns the dataset, as Keras takes it."""
        return self.chosen(self._batch.dataset)

    def chosen(self, data: Any) -> Any:
        """Takes the same out of other data, if they have the same structure.

        Args:
            data: Anything that Keras takes.

        Returns:
            Data as Keras takes them.
        """
        if not self._batch.is_like(data) or data in self._chosen:
            return data
        data = self._batch.choose(data, *self._parts)
        self._chosen.add(data)
        return data


def bound_data(model: Any, targets: Any, why: str) -> BoundData:
    """Finds the dataset that a model is made of.

    Args:
        model: A model.
        targets: Symbolic targets; None for none.
        why: What asks for it, for messages.

    Returns:
        The dataset, and what the model takes of it.

    Raises:
        ValueError: If an input or a target is of no dataset, or of another
            batch than the others.
    """
    # Not with this module, as it brings in what reads files.
    from embedra.data import BatchTensor

    if isinstance(targets, list | tuple) and len(targets) == 1:
        (targets,) = targets
    if not getattr(model, "inputs", None):
        msg = (
            f"{why}, but model {model.name!r} was not made of inputs and "
            f"outputs. {_ADVICE}"
        )
        raise ValueError(msg)
    if targets is not None and not tf.nest.flatten(targets):
        msg = f"{why}, but there is none in it. Received: {targets!r}."
        raise ValueError(msg)
    inputs = model.input
    batches = {}
    for role, part in (("input", inputs), ("target", targets)):
        for tensor in _sources(part):
            name = getattr(tensor, "name", None) or f"{tensor!s:.60}"
            what = f"{role} {name!r} of model {model.name!r}"
            if not isinstance(tensor, BatchTensor):
                msg = f"{why}, but {what} is of no dataset. {_ADVICE}"
                raise ValueError(msg)
            batches[what] = tensor.batch
    (first, batch), *others = batches.items()
    for what, other in others:
        if other is not batch:
            msg = f"{why}, but {what} is of another batch than {first}. "
            raise ValueError(msg + _ADVICE)
    return BoundData(batch, inputs, targets, _weights(batch, inputs, targets))


def _weights(batch: "SymbolicBatch", inputs: Any, targets: Any) -> Any:
    """Returns the weights in `(x, y, sample_weight)`, which is Keras's form."""
    whole = batch.structure
    if targets is None or not isinstance(whole, tuple) or len(whole) != 3:
        return None
    x, y, weights = whole
    takes_form = _are_of(inputs, x) and _are_of(targets, y)
    return weights if takes_form else None


def _are_of(structure: Any, part: Any) -> bool:
    """Whether all that is in a structure is computed from a part alone."""
    known = {id(tensor) for tensor in tf.nest.flatten(part)}
    return all(id(tensor) in known for tensor in _sources(structure))


def _sources(structure: Any) -> Iterator[Any]:
    """Lists what symbolic tensors are computed from."""
    for tensor in tf.nest.flatten(structure):
        if isinstance(tensor, keras.KerasTensor):
            yield from keras.utils.get_source_inputs(tensor)
        elif tensor is not None:
            yield tensor
