"""TracedStep: a step of a model, traced once for batches of any size."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from embedra.distribute import is_none_spec


class TracedStep:
    """A function of batches that is traced once for any number of rows.

    Args:
        model: The model.
        step: Makes steps on an iterator of batches, as Keras has it.
    """

    def __init__(self, model: Any, step: Callable[[Any], Any]) -> None:
        self._model = model
        self._step = step
        self._structure: Any = None
        self._function: Any = None

    def __call__(self, batch: Any, structure: Any) -> Any:
        """Makes a step.

        Args:
            batch: A batch.
            structure: Specs of all batches; None if they are not known.
        """
        if self._model.run_eagerly or structure is None:
            return self._step([batch])
        if self._function is None or structure != self._structure:
            self._structure = structure
            self._function = self._traced(structure)
        given = [x for x in tf.nest.flatten(batch) if x is not None]
        return self._function(*given)

    def _traced(self, structure: Any) -> Any:
        specs = tf.nest.flatten(structure)

        @tf.autograph.experimental.do_not_convert
        def step(*given: Any) -> Any:
            rest = iter(given)
            leaves = [None if is_none_spec(s) else next(rest) for s in specs]
            return self._step([tf.nest.pack_sequence_as(structure, leaves)])

        signature = [spec for spec in specs if not is_none_spec(spec)]
        return tf.function(step, input_signature=signature)


def specs_of(batch: Any, structure: Any) -> Any:
    """Returns specs of a batch, with None where there is nothing.

    Args:
        batch: The batch.
        structure: Specs of all batches, if they are known.
    """
    if structure is not None:
        return tf.nest.map_structure(
            lambda spec: None if is_none_spec(spec) else spec, structure
        )
    return tf.nest.map_structure(
        lambda leaf: (
            leaf
            if leaf is None
            else tf.type_spec_from_value(
                leaf
                if isinstance(leaf, tf.RaggedTensor | tf.SparseTensor)
                else tf.convert_to_tensor(leaf)
            )
        ),
        batch,
    )
