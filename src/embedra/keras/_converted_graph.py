"""The graph of a functional model anew, with some of its layers replaced."""

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import keras

from embedra import table as table_lib
from embedra.layers import Embedding

from ._converted_layer import Rows, converted


class GraphCopy:
    """Copies models layer by layer, with embeddings over tables.

    A layer that appears in several places is copied once.

    Args:
        chosen: The embedding layers to convert.
        rows: What rows of ids that they did not have are.
        is_plain: Whether a layer is a model whose graph says everything.
    """

    def __init__(
        self, chosen: Sequence[Any], rows: Rows, is_plain: Callable[[Any], bool]
    ) -> None:
        self._chosen = {id(layer) for layer in chosen}
        self._rows = rows
        self._is_plain = is_plain
        # Each old layer and its copy, by the id of the old one.
        self._pairs: dict[int, tuple[Any, Any]] = {}

    def graph(self, model: Any) -> tuple[Any, Any]:
        """Copies what leads from a model's inputs to its outputs.

        Args:
            model: A functional or Sequential model.

        Returns:
            New symbolic inputs and outputs, in the structure of the model's.

        Raises:
            ValueError: If the model is not built.
        """
        plain = _functional(model)
        inputs = keras.tree.map_structure(
            lambda tensor: self._input(plain, tensor), plain.input
        )
        copy = keras.models.clone_model(
            plain,
            input_tensors=inputs,
            clone_function=self.layer,
            call_function=_call,
        )
        return copy.input, copy.output

    def layer(self, layer: Any) -> Any:
        """Copies a layer, or converts it.

        Args:
            layer: A layer, or an operation of `keras.ops`.

        Returns:
            The same object for the same layer.
        """
        if id(layer) not in self._pairs:
            self._pairs[id(layer)] = (layer, self._new(layer))
        return self._pairs[id(layer)][1]

    def finish(self) -> None:
        """Copies the state of all layers that were only copied."""
        for old, new in self._pairs.values():
            if id(old) not in self._chosen and not self._is_plain(old):
                _copy_state(old, new)

    def _new(self, layer: Any) -> Any:
        if id(layer) in self._chosen:
            return converted(layer, self._rows)
        if self._is_plain(layer):
            return self._model(layer)
        if isinstance(layer, keras.layers.Lambda):
            # It has no state, and its function may have no config.
            return layer
        new = type(layer).from_config(layer.get_config())
        _copy_assets(layer, new)
        return new

    def _model(self, model: Any) -> Any:
        inputs, outputs = self.graph(model)
        if isinstance(model, keras.Sequential):
            layers = [inputs, *map(self.layer, model.layers)]
            return like(model, keras.Sequential(layers, name=model.name))
        return like(model, keras.Model(inputs, outputs, name=model.name))

    def _input(self, model: Any, tensor: Any) -> Any:
        """Makes an input anew; of any integers if only for converted ids."""
        layer = next(
            layer
            for layer in model.layers
            if isinstance(layer, keras.layers.InputLayer)
            and layer.output is tensor
        )
        config = layer.get_config()
        wide = tensor.dtype in ("int64", "uint64")
        if not wide and self._only_ids(model, tensor):
            config["dtype"] = "int64"
        return keras.layers.InputLayer.from_config(config).output

    def _only_ids(self, model: Any, tensor: Any) -> bool:
        """Whether only embeddings that are converted read an input."""
        reads = [
            (node.operation, place)
            for operation in model.operations
            for node in operation._inbound_nodes
            for place, source in enumerate(node.input_tensors)
            if source is tensor
        ]
        return bool(reads) and all(
            id(reader) in self._chosen
            or _is_mask(reader)
            or (
                self._is_plain(reader)
                and self._only_ids(_functional(reader), reader.inputs[place])
            )
            for reader, place in reads
        )


def like(model: Any, copy: Any) -> Any:
    """Gives a copy what a model has beside its graph.

    Args:
        model: The model.
        copy: Its copy.

    Returns:
        The copy.
    """
    copy.dtype_policy = model.dtype_policy
    if not model.trainable:
        copy.trainable = False
    return copy


def _functional(model: Any) -> Any:
    """Returns a new functional model of the same layers, not compiled."""
    if not isinstance(model, keras.Sequential):
        return keras.Model(model.input, model.output, name=model.name)
    if not model.built or not model.inputs:
        msg = (
            f"Sequential model {model.name!r} is not built. Call it on a "
            "batch, or give it a keras.Input, before it is converted."
        )
        raise ValueError(msg)
    return keras.Model(model.inputs[0], model.outputs[0], name=model.name)


def _is_mask(operation: Any) -> bool:
    """Whether an operation is how Keras computes masks of ids."""
    return type(operation).__name__ == "NotEqual"


def _call(layer: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a copied layer. Embeddings take no floats for ids, as Keras's do.

    Args:
        layer: The layer.
        *args: What it is called on.
        **kwargs: Further arguments.

    Returns:
        Its output.
    """
    if args and isinstance(layer, Embedding):
        ids, *rest = args
        if keras.backend.is_float_dtype(ids.dtype):
            ids = keras.ops.cast(ids, "int64")
        args = (ids, *rest)
    return layer(*args, **kwargs)


def _copy_assets(old: Any, new: Any) -> None:
    """Copies what layers keep in files, as vocabularies, before any call."""
    if not hasattr(old, "save_assets"):
        return
    with tempfile.TemporaryDirectory() as folder:
        old.save_assets(folder)
        if os.listdir(folder):
            new.load_assets(folder)


def _copy_state(old: Any, new: Any) -> None:
    """Copies variables, and what layers save by methods of their own."""
    if not isinstance(old, keras.layers.Layer):
        return
    for source, target in zip(old.variables, new.variables, strict=True):
        if 0 not in source.shape:
            target.assign(source)
    inside = zip(old._flatten_layers(), new._flatten_layers(), strict=True)
    default = keras.layers.Layer.save_own_variables
    for one, other in inside:
        tables = getattr(one, "table_group", None)
        if tables is not None and tables.communicator is not None:
            # What they save would go to rank 0.
            table_lib.copy_state(tables, other.table_group)
        elif type(one).save_own_variables is not default:
            store: dict[str, Any] = {}
            one.save_own_variables(store)
            other.load_own_variables(store)
