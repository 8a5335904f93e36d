"""What exported models take: placeholders, and what is made of them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf


v1: Any = tf.compat.v1

# What a tensor alone is called.
_FEATURE = "feature"
_INPUT = "input"


class _Fields(NamedTuple):
    features: Any
    receiver_tensors: dict[str, Any]
    receiver_tensors_alternatives: dict[str, dict[str, Any]]


class ServingInputReceiver(_Fields):
    """What an exported model takes.

    Args:
        features: What the model function sees: tensors by name, or a tensor,
            which is then called "feature".
        receiver_tensors: Placeholders by name, dense or sparse, or one alone,
            which is then called "input". What clients feed.
        receiver_tensors_alternatives: By name, other such dicts, of tensors
            that may be fed instead; each has a signature of that name.

    Raises:
        TypeError: If something else than tensors is given.
    """

    __slots__ = ()

    def __new__(
        cls,
        features: Any,
        receiver_tensors: Any,
        receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    ) -> "ServingInputReceiver":
        return super().__new__(
            cls,
            _checked(features, "features", _FEATURE),
            _checked(receiver_tensors, "receiver_tensors", _INPUT),
            _checked_alternatives(receiver_tensors_alternatives),
        )


class TensorServingInputReceiver(ServingInputReceiver):
    """What a model takes whose model function sees one tensor, not a dict.

    Args:
        features: The tensor.
        receiver_tensors: See `ServingInputReceiver`.
        receiver_tensors_alternatives: See there.

    Raises:
        TypeError: If something else than tensors is given.
    """

    __slots__ = ()

    def __new__(
        cls,
        features: Any,
        receiver_tensors: Any,
        receiver_tensors_alternatives: Mapping[str, Any] | None = None,
    ) -> "TensorServingInputReceiver":
        if isinstance(features, Mapping):
            msg = (
                "`features` of a TensorServingInputReceiver must be one "
                "tensor; ServingInputReceiver takes a dict. Received: "
                f"{features!r}."
            )
            raise TypeError(msg)
        receiver: Any = super().__new__(
            cls, features, receiver_tensors, receiver_tensors_alternatives
        )
        alone: TensorServingInputReceiver = receiver._replace(features=features)
        return alone


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Makes a function for models that are fed serialized `tf.train.Example`s.

    Args:
        feature_spec: How they are parsed; see `tf.io.parse_example`.
        default_batch_size: Number of examples, or None for any.

    Returns:
        The function. Its placeholder, of strings, is called "examples".
    """

    def receive() -> ServingInputReceiver:
        examples = v1.placeholder(
            tf.string, (default_batch_size,), name="input_example_tensor"
        )
        features = v1.io.parse_example(examples, feature_spec)
        return ServingInputReceiver(features, {"examples": examples})

    return receive


def build_raw_serving_input_receiver_fn(
    features: Any, default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Makes a function for models that are fed features as they are.

    Args:
        features: By name, what the features are like: tensors, or specs of
            tensors, dense, sparse or ragged. Their first dimension is taken to
            be the batch.
        default_batch_size: Number of examples, or None for any.

    Returns:
        The function. Its placeholders are called as the features are.
    """
    specs = _checked(features, "features", _FEATURE, tf.type_spec_from_value)

    def receive() -> ServingInputReceiver:
        placeholders = {
            name: _placeholder(name, spec, default_batch_size)
            for name, spec in specs.items()
        }
        return ServingInputReceiver(placeholders, placeholders)

    return receive


def _placeholder(name: str, spec: Any, batch: int | None) -> Any:
    dims = spec.shape.dims
    shape = None if dims is None else tf.TensorShape([batch, *dims[1:]])
    if isinstance(spec, tf.SparseTensorSpec):
        return v1.sparse_placeholder(spec.dtype, shape, name=name)
    if isinstance(spec, tf.RaggedTensorSpec):
        return v1.ragged.placeholder(
            spec.dtype,
            spec.ragged_rank,
            value_shape=spec.shape[spec.ragged_rank + 1 :],
            name=name,
        )
    return v1.placeholder(spec.dtype, shape, name=name)


def _checked(
    tensors: Any,
    argument: str,
    alone: str,
    convert: Callable[[Any], Any] = lambda tensor: tensor,
) -> dict[str, Any]:
    named = tensors if isinstance(tensors, Mapping) else {alone: tensors}
    checked = {}
    for name, tensor in named.items():
        is_spec = isinstance(tensor, tf.TypeSpec)
        if not isinstance(name, str) or not (tf.is_tensor(tensor) or is_spec):
            msg = (
                f"`{argument}` must be a tensor, or tensors by name. Received: "
                f"{name}={tensor!r}."
            )
            raise TypeError(msg)
        checked[name] = tensor if is_spec else convert(tensor)
    if not checked:
        msg = f"`{argument}` is empty: there is nothing to serve."
        raise TypeError(msg)
    return checked


def _checked_alternatives(
    alternatives: Mapping[str, Any] | None,
) -> dict[str, dict[str, Any]]:
    return {
        name: _checked(one, f"receiver_tensors_alternatives[{name!r}]", _INPUT)
        for name, one in (alternatives or {}).items()
    }
