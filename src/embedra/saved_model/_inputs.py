"""Inputs and outputs of a signature: structures as tensors by name."""

import keyword
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf


class Named(NamedTuple):
    """An input or output, and the tensors that a signature has for it.

    Attributes:
        spec: Describes it.
        tensors: The tensors by name.
        pack: Makes it of these tensors.
    """

    spec: Any
    tensors: dict[str, tf.TensorSpec]
    pack: Callable[..., Any]


def model_inputs(model: Any) -> Any:
    """Returns a model's symbolic inputs, in their structure.

    Args:
        model: A functional or `Sequential` model.

    Raises:
        ValueError: If the model does not know its inputs.
    """
    inputs = getattr(model, "inputs", None)
    if not inputs:
        msg = (
            f"Model {model.name!r} does not say what its inputs are. Pass "
            "`signature`, a structure of tf.TensorSpec as its `call` takes "
            'it, e.g. {"user": tf.TensorSpec([None], tf.int64)}.'
        )
        raise ValueError(msg)
    if isinstance(model, keras.Sequential):
        return inputs[0]
    return model.input


def is_spec(value: Any) -> bool:
    """Returns whether a value describes one input.

    Args:
        value: Any value.
    """
    return isinstance(
        value, tf.TypeSpec | keras.KerasTensor | keras.InputSpec
    ) or tf.is_tensor(value)


def inputs_of(structure: Any) -> list[Named]:
    """Describes all inputs in a structure, with a free batch size.

    In dicts an input is called by its key, and its number if it is in a list
    there; elsewhere by its own name, or else "inputs". A ragged input is
    `NAME_values` and `NAME_row_splits` (with `_0`, `_1`, ... from the outermost
    on, if there are several); if its rank is unknown, its values are a vector.
    A sparse one is `NAME_values`, `NAME_indices` and `NAME_dense_shape`.

    Args:
        structure: Specs of TensorFlow or Keras, symbolic inputs, or tensors
            that are examples.

    Returns:
        The inputs, in the order of `tf.nest.flatten`.

    Raises:
        TypeError: If something else is in the structure.
        ValueError: If two tensors would have the same name.
    """
    flat = tf.nest.flatten(structure)
    names = _names_of(structure, [getattr(v, "name", None) for v in flat])
    inputs = [
        _named(name, _spec_of(value))
        for name, value in zip(names, flat, strict=True)
    ]
    tensors = [name for one in inputs for name in one.tensors]
    if len(set(tensors)) != len(tensors):
        msg = (
            "The inputs of a signature need different names. Received: "
            f"{tensors}. Give the specs names."
        )
        raise ValueError(msg)
    return inputs


def outputs_of(structure: Any) -> list[Named]:
    """Describes all outputs in a structure.

    In a dict an output is called by its key, elsewhere `output_0`, `output_1`
    and so on; ragged and sparse ones as for `inputs_of`.

    Args:
        structure: Outputs, or their specs.

    Returns:
        The outputs, in the order of `tf.nest.flatten`.

    Raises:
        ValueError: If there are structures in a dict.
    """
    flat = tf.nest.flatten(structure)
    names = [f"output_{i}" for i in range(len(flat))]
    if isinstance(structure, dict):
        names = [str(name) for name in sorted(structure)]
        if len(names) != len(flat):
            msg = "Outputs in a dict must be tensors, not structures of them."
            raise ValueError(msg)
    specs = map(spec_of_output, flat)
    return [_named(*pair) for pair in zip(names, specs, strict=True)]


def spec_of_output(value: Any) -> Any:
    """Returns the spec of an output; of a spec, itself.

    Args:
        value: A tensor of any kind, what can be converted to one, or a spec.
    """
    if isinstance(value, tf.TypeSpec):
        return value
    if not isinstance(value, tf.RaggedTensor | tf.SparseTensor):
        value = tf.convert_to_tensor(value)
    return tf.type_spec_from_value(value)


def named(described: Sequence[Named], structure: Any) -> dict[str, tf.Tensor]:
    """Takes inputs or outputs apart into tensors by name.

    Args:
        described: What they are.
        structure: They themselves.

    Returns:
        Tensors by name.
    """
    tensors: dict[str, tf.Tensor] = {}
    values = tf.nest.flatten(structure)
    for one, value in zip(described, values, strict=True):
        tensors.update(zip(one.tensors, _parts(value), strict=True))
    return tensors


def _parts(value: Any) -> tuple[tf.Tensor, ...]:
    if isinstance(value, tf.RaggedTensor):
        return (value.flat_values, *value.nested_row_splits)
    if isinstance(value, tf.SparseTensor):
        return (value.values, value.indices, value.dense_shape)
    return (tf.convert_to_tensor(value),)


def _spec_of(value: Any) -> Any:
    if isinstance(value, tf.RaggedTensor | tf.SparseTensor):
        value = tf.type_spec_from_value(value)
    if isinstance(value, tf.RaggedTensorSpec):
        shape = _free_batch(value.shape)
        if shape.rank is None:
            shape = tf.TensorShape([None] * (value.ragged_rank + 1))
        return tf.RaggedTensorSpec(
            shape,
            value.dtype,
            value.ragged_rank,
            value.row_splits_dtype,
        )
    if isinstance(value, tf.SparseTensorSpec):
        return tf.SparseTensorSpec(_free_batch(value.shape), value.dtype)
    of_other_kind = isinstance(value, tf.TypeSpec) and not isinstance(
        value, tf.TensorSpec
    )
    if of_other_kind or not is_spec(value):
        msg = (
            "Inputs of a signature are described by tf.TensorSpec, "
            "tf.RaggedTensorSpec, tf.SparseTensorSpec, keras.InputSpec or "
            f"keras.Input. Received: {value!r}"
        )
        raise TypeError(msg)
    shape, dtype = _free_batch(value.shape), value.dtype or "float32"
    if getattr(value, "ragged", False):
        rank = getattr(value, "ragged_rank", None) or 1
        return tf.RaggedTensorSpec(shape, dtype, rank)
    if getattr(value, "sparse", False):
        return tf.SparseTensorSpec(shape, dtype)
    return tf.TensorSpec(shape, dtype)


def _free_batch(shape: Any) -> tf.TensorShape:
    shape = tf.TensorShape(shape)
    return (
        tf.TensorShape([None]).concatenate(shape[1:]) if shape.rank else shape
    )


def _named(name: str, spec: Any) -> Named:
    if isinstance(spec, tf.RaggedTensorSpec):
        return _named_ragged(name, spec)
    if isinstance(spec, tf.SparseTensorSpec):
        return _named_sparse(name, spec)
    tensor = tf.TensorSpec(spec.shape, spec.dtype, name)
    return Named(spec, {name: tensor}, lambda value: value)


def _named_ragged(name: str, spec: Any) -> Named:
    rank = spec.ragged_rank
    values = tf.TensorShape([None]).concatenate(spec.shape[rank + 1 :])
    tensors = {f"{name}_values": (values, spec.dtype)}
    for splits in _split_names(name, rank):
        tensors[splits] = (tf.TensorShape([None]), spec.row_splits_dtype)

    def pack(values: tf.Tensor, *splits: tf.Tensor) -> tf.RaggedTensor:
        return tf.RaggedTensor.from_nested_row_splits(values, splits)

    return Named(spec, _named_specs(tensors), pack)


def _named_sparse(name: str, spec: Any) -> Named:
    rank = spec.shape.rank
    tensors = {
        f"{name}_values": (tf.TensorShape([None]), spec.dtype),
        f"{name}_indices": (tf.TensorShape([None, rank]), tf.int64),
        f"{name}_dense_shape": (tf.TensorShape([rank]), tf.int64),
    }

    def pack(
        values: tf.Tensor, indices: tf.Tensor, dense_shape: tf.Tensor
    ) -> tf.SparseTensor:
        return tf.SparseTensor(indices, values, dense_shape)

    return Named(spec, _named_specs(tensors), pack)


def _named_specs(tensors: dict[str, Any]) -> dict[str, tf.TensorSpec]:
    return {
        name: tf.TensorSpec(shape, dtype, name)
        for name, (shape, dtype) in tensors.items()
    }


def _split_names(name: str, rank: int) -> list[str]:
    if rank == 1:
        return [f"{name}_row_splits"]
    return [f"{name}_row_splits_{i}" for i in range(rank)]


def _names_of(structure: Any, own: Sequence[str | None]) -> list[str]:
    """Names what is in a structure, in the order of `tf.nest.flatten`."""
    paths = _paths_of(structure)
    names = []
    for i, (path, name) in enumerate(zip(paths, own, strict=True)):
        keys = _keys_in(path)
        unnamed = "inputs" if len(paths) == 1 else f"inputs_{i}"
        names.append(_as_identifier("_".join(keys) or name or unnamed))
    return names


def _keys_in(path: Sequence[Any]) -> list[str]:
    """Returns the keys of a path, and the numbers after the first of them."""
    while path and isinstance(path[0], int):
        path = path[1:]
    return [str(key) for key in path]


def _as_identifier(name: str) -> str:
    """Replaces what signatures do not take, as TensorFlow itself does."""
    name = re.sub(r"\W", "_", name)
    usable = name.isidentifier() and not keyword.iskeyword(name)
    return name if usable else f"arg_{name}"


def _paths_of(structure: Any) -> list[tuple[Any, ...]]:
    if isinstance(structure, dict):
        return [
            (key, *path)
            for key in sorted(structure)
            for path in _paths_of(structure[key])
        ]
    if isinstance(structure, list | tuple):
        return [
            (i, *path)
            for i, value in enumerate(structure)
            for path in _paths_of(value)
        ]
    return [()]
