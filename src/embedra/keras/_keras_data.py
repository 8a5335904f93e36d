"""Datasets of whatever `fit` is given, as Keras makes them.

Keras has no public name for this. It is used where several ranks train, each of
which has to know how many batches it has before Keras begins to read them.
"""

from typing import Any

import keras
import tensorflow as tf
from keras.src.trainers.data_adapters import (  # noqa: TID251
    array_slicing,
    get_data_adapter,
)


class Adapted:
    """What `fit` is given, as a dataset of batches.

    Args:
        x: As `fit`, `evaluate` and `predict` are given it.
        y: As well.
        sample_weight: As well.
        batch_size: As well.
        steps: Of an epoch, as well.
        shuffle: As well.
        class_weight: As well.

    Attributes:
        dataset: The batches of an epoch, with None for what is not given.
        batches: How many they are; None if that is not known.
    """

    def __init__(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        batch_size: int | None = None,
        steps: int | None = None,
        shuffle: Any = False,
        class_weight: Any = None,
    ) -> None:
        self._adapter = get_data_adapter(
            x,
            y,
            sample_weight,
            batch_size=batch_size,
            steps_per_epoch=steps,
            shuffle=shuffle,
            class_weight=class_weight,
        )
        self.dataset: tf.data.Dataset = self._adapter.get_tf_dataset()
        # Datasets that Keras makes of arrays do not know it.
        self.batches: int | None = self._adapter.num_batches
        self._is_told = isinstance(x, keras.utils.PyDataset)

    def begin_epoch(self) -> None:
        """Tells a `PyDataset` that an epoch begins."""
        if self._is_told:
            self._adapter.on_epoch_begin()

    def end_epoch(self) -> None:
        """Tells a `PyDataset` that an epoch has ended."""
        if self._is_told:
            self._adapter.on_epoch_end()


def split_for_validation(arrays: Any, validation_split: float) -> Any:
    """Splits arrays as `validation_split` of `fit` does.

    Args:
        arrays: Arrays or None, nested in any way.
        validation_split: Which part is for validation.

    Returns:
        Those to train with, and those to validate with.
    """
    return array_slicing.train_validation_split(
        arrays, validation_split=validation_split
    )
