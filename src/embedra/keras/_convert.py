"""convert: a Keras model over tables, with the rows that it has."""

import logging
from collections.abc import Collection
from typing import Any

import keras

from ._converted_graph import GraphCopy, like
from ._converted_layer import Rows, convertible
from ._methods import ModelMethods
from ._model import Functional, Model


_log = logging.getLogger(__name__)

# The class of Keras's functional models, which has no public name.
_PLAIN = (*Functional.__bases__[1:], Functional, keras.Sequential)


def convert(
    model: keras.Model,
    *,
    layers: Collection[str] | None = None,
    initializer: Any = None,
    inference_default: Any = "initializer",
) -> Model:
    """Makes a model with dynamic tables from one with `keras.layers.Embedding`.

    Each `keras.layers.Embedding(n, dim)` becomes an `embedra.layers.Embedding`
    of the same name, whose table holds its rows under the keys 0 to n - 1. All
    other layers are copied with their weights. The given model is left as it
    is, and both predict the same. Layers that are shared stay shared, also with
    and between models inside; `mask_zero`, dtype policies and `trainable` are
    kept. Inputs that only embeddings take become `int64`, since others do not
    tell large ids apart.

    Two things count less than before: a regularizer only rows of the batch, in
    training, and a constraint only rows that were updated. Those that look
    across rows are refused.

    The new model is not compiled: optimizers hold state for the variables that
    they were built with. Call `compile` on it.

    Args:
        model: A functional or `keras.Sequential` model, built. Models inside it
            are converted too if they are of these kinds.
        layers: Names of the embedding layers to convert; all by default.
        initializer: What rows of ids beyond n - 1 start from, for all of the
            layers; by default each layer's own initializer. See
            `embedra.table.resolve_initializer`.
        inference_default: What absent ids read as when they are not inserted;
            see `embedra.layers.Embedding`.

    Returns:
        The new model, of the same name; functional, also for a Sequential.

    Raises:
        TypeError: If the model is of a class of its own, as subclassed models
            are, whose code cannot be converted, or `layers` are no names.
        ValueError: If it is not built, a layer cannot be converted, or `layers`
            has names that are not there.

    Example:
        >>> import numpy as np
        >>> ids = keras.Input((2,), name="ids")
        >>> rows = keras.layers.Embedding(100, 4, name="items")(ids)
        >>> plain = keras.Model(ids, keras.layers.Flatten()(rows))
        >>> model = convert(plain, initializer="zeros")
        >>> model.get_layer("items").size()
        100
        >>> x = np.array([[3, 99]])
        >>> same = model.predict(x, verbose=0) == plain.predict(x, verbose=0)
        >>> bool(same.all())
        True
    """
    _check_kind(model)
    chosen = _chosen(model, layers)
    rows = Rows(initializer, inference_default)
    copy = GraphCopy(chosen, rows, is_plain)
    inputs, outputs = copy.graph(model)
    converted: Model = like(model, Model(inputs, outputs, name=model.name))
    copy.finish()
    _log.info(
        "Converted %d embedding layers of model %r: %s",
        len(chosen),
        model.name,
        ", ".join(layer.name for layer in chosen),
    )
    return converted


def is_plain(layer: Any) -> bool:
    """Whether a layer is a model of which the graph says everything.

    Args:
        layer: Of any kind.
    """
    cls = type(layer)
    if cls.__bases__[:1] == (ModelMethods,):  # made by `wraps`
        cls = cls.__bases__[1]
    return cls in _PLAIN


def _check_kind(model: Any) -> None:
    if not isinstance(model, keras.Model):
        msg = (
            "`convert` takes a keras.Model. Received: an object of class "
            f"{type(model).__module__}.{type(model).__qualname__}."
        )
        raise TypeError(msg)
    if not is_plain(model):
        msg = (
            f"`convert` takes functional and Sequential models. Model "
            f"{model.name!r} is of class {type(model).__qualname__}, whose "
            "code would be lost. Derive the class from embedra.keras.Model, "
            "make embedra.layers.Embedding(dim, name=...) where it makes "
            "keras.layers.Embedding(n, dim, name=...), and copy the rows: "
            "new_layer.table.assign(range(n), old_layer.embeddings)."
        )
        raise TypeError(msg)


def _chosen(model: Any, names: Collection[str] | None) -> list[Any]:
    """Finds the embedding layers to convert.

    Raises:
        ValueError: If there are none, some are in places where they cannot be
            replaced, or a name is not that of one.
    """
    found = list(_reachable(model))
    hidden = [
        layer
        for layer in model._flatten_layers(include_self=False)
        if isinstance(layer, keras.layers.Embedding) and layer not in found
    ]
    names = _checked_names(names)
    if names is None:
        if hidden:
            msg = (
                f"Model {model.name!r} has embeddings inside of other layers, "
                "or of classes of their own, which cannot be converted: "
                f"{_listed(hidden)}. Name those to convert to leave these as "
                f"they are: layers={[layer.name for layer in found]}."
            )
            raise ValueError(msg)
        chosen = found
    else:
        chosen = [layer for layer in found if layer.name in names]
        unknown = set(names) - {layer.name for layer in chosen}
        if unknown:
            msg = (
                f"`layers` names {sorted(unknown)}, but the embeddings of "
                f"model {model.name!r} that can be converted are "
                f"{_listed(found)}."
            )
            raise ValueError(msg)
    if not chosen:
        msg = f"There is no keras.layers.Embedding in model {model.name!r}."
        raise ValueError(msg)
    return chosen


def _checked_names(names: Any) -> list[str] | None:
    """Returns the names of layers as a list; None for all of them."""
    if names is None:
        return None
    if isinstance(names, str):
        return [names]
    if isinstance(names, Collection) and not isinstance(names, bytes):
        listed = list(names)
        if listed and all(isinstance(name, str) for name in listed):
            return listed
    msg = (
        "`layers` must be names of layers, at least one; leave it out to "
        f"convert all embeddings. Received: layers={names!r}."
    )
    raise TypeError(msg)


def _reachable(model: Any) -> list[Any]:
    """Lists the embeddings of a model and of plain ones inside, each once."""
    found: dict[int, Any] = {}
    for layer in model.layers:
        if convertible(layer):
            found[id(layer)] = layer
        elif is_plain(layer):
            found |= {id(inside): inside for inside in _reachable(layer)}
    return list(found.values())


def _listed(layers: Collection[Any]) -> str:
    return ", ".join(repr(layer.name) for layer in layers) or "none"
