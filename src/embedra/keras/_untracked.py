"""Layers that TensorFlow does not find, as Keras keeps them in lists."""

from typing import Any

import tensorflow as tf


def untracked_layers(
    model: Any, children: dict[str, Any], before: tf.train.Checkpoint | None
) -> tf.train.Checkpoint | None:
    """Finds layers with state that no object leads TensorFlow to.

    Args:
        model: The model.
        children: What it leads TensorFlow to.
        before: What the last call returned.

    Returns:
        A holder of the layers, by number; the same one for the same layers.
        None if there are none.
    """
    reached = {
        id(found)
        for child in children.values()
        for found in tf.train.TrackableView(child).descendants()
    }
    missed = []
    for layer in model._flatten_layers(include_self=False):
        if id(layer) in reached or not layer.variables:
            continue
        missed.append(layer)
        inside = tf.train.TrackableView(layer).descendants()
        reached.update(id(found) for found in inside)
    if not missed:
        return None
    if before is not None:
        held = before._trackable_children().values()
        if [id(layer) for layer in held] == [id(layer) for layer in missed]:
            return before
    holder = tf.train.Checkpoint()
    for number, layer in enumerate(missed):
        setattr(holder, str(number), layer)
    return holder
