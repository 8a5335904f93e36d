"""Prediction with a checkpoint."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ._evaluation import restored_session
from ._graphs import Plan, build
from ._modes import ModeKeys


def predict(
    plan: Plan,
    input_fn: Callable[..., Any],
    keys: Sequence[str] | str | None,
    hooks: Sequence[Any],
    checkpoint: str | None,
    *,
    single: bool,
) -> Iterator[Any]:
    """Predicts what input there is.

    Args:
        plan: What predicts.
        input_fn: Gives the batches.
        keys: Which predictions, or None for all.
        hooks: Hooks of the session.
        checkpoint: What is restored, or None to initialise.
        single: Whether to yield examples instead of batches.

    Yields:
        Predictions: arrays by name, or an array alone.

    Raises:
        ValueError: If there are no such predictions, or the checkpoint is one
            of another model.
    """
    with tf.Graph().as_default():
        built = build(plan, input_fn, ModeKeys.PREDICT)
        predictions = _chosen(built.spec.predictions, keys)
        hooks = [*built.hooks, *hooks, *built.spec.prediction_hooks]
        session = restored_session(plan, built, hooks, checkpoint)
    with session:
        while not session.should_stop():
            try:
                batch = session.run(predictions)
            except tf.errors.OutOfRangeError:
                return
            if single:
                yield from _examples(batch)
            else:
                yield batch


def _chosen(predictions: Any, keys: Sequence[str] | str | None) -> Any:
    if keys is None:
        return predictions
    keys = [keys] if isinstance(keys, str) else list(keys)
    if not isinstance(predictions, Mapping):
        msg = (
            "`predict_keys` chooses from predictions by name, but the model "
            f"function gives one tensor. Received: predict_keys={keys}."
        )
        raise ValueError(msg)
    missing = [key for key in keys if key not in predictions]
    if missing or not keys:
        msg = (
            f"`predict_keys` must be among {sorted(predictions)}. Received: "
            f"predict_keys={keys}."
        )
        raise ValueError(msg)
    return {key: predictions[key] for key in keys}


def _examples(batch: Any) -> Iterator[Any]:
    if not isinstance(batch, Mapping):
        yield from batch
        return
    sizes = {name: _size(value) for name, value in batch.items()}
    if len(set(sizes.values())) != 1 or None in sizes.values():
        msg = (
            "Predictions are not one for each example: they have sizes "
            f"{sizes}. Pass yield_single_examples=False to get batches."
        )
        raise ValueError(msg)
    for i in range(next(iter(sizes.values())) or 0):
        yield {name: value[i] for name, value in batch.items()}


def _size(value: Any) -> int | None:
    is_batch = isinstance(value, np.ndarray) and value.ndim
    return len(value) if is_batch else None
