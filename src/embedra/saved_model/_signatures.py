"""Signatures: what the functions of a SavedModel are, and what they take."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from embedra._checks import check_takes_nothing

from ._inputs import (
    Named,
    inputs_of,
    is_spec,
    model_inputs,
    named,
    outputs_of,
    spec_of_output,
)


DEFAULT = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class Endpoint(NamedTuple):
    """A function that is served.

    Attributes:
        name: Name of the signature.
        function: What it computes, given `structure`.
        arguments: Its arguments: structures of specs.
        inputs: All inputs in these, in flat order.
    """

    name: str
    function: Callable[..., Any]
    arguments: Sequence[Any]
    inputs: list[Named]

    @property
    def attribute(self) -> str:
        """What the loaded object calls the function itself."""
        return "serve" if self.name == DEFAULT else self.name

    def trace(self, autograph: bool) -> tuple[Any, Any]:
        """Traces the function.

        Args:
            autograph: Whether Python's control flow becomes TensorFlow's.

        Returns:
            A function with structured arguments and results, and the concrete
            function that it calls, which takes and gives tensors by name.
        """
        results: list[Any] = []

        def by_name(**tensors: tf.Tensor) -> dict[str, tf.Tensor]:
            values = [
                one.pack(*(tensors[name] for name in one.tensors))
                for one in self.inputs
            ]
            result = self.function(
                *tf.nest.pack_sequence_as(self.arguments, values)
            )
            results.append(tf.nest.map_structure(spec_of_output, result))
            return named(outputs_of(result), result)

        specs = {
            name: spec
            for one in self.inputs
            for name, spec in one.tensors.items()
        }
        signature = tf.function(by_name, autograph=autograph)
        signature = signature.get_concrete_function(**specs)
        outputs = outputs_of(results[-1])

        def structured(*arguments: Any) -> Any:
            tensors = signature(**named(self.inputs, arguments))
            values = [
                one.pack(*(tensors[name] for name in one.tensors))
                for one in outputs
            ]
            return tf.nest.pack_sequence_as(results[-1], values)

        function = tf.function(structured, autograph=False)
        function.get_concrete_function(*self.arguments)
        return function, signature


def endpoints_of(model: Any, signature: Any) -> list[Endpoint]:
    """Finds out what is to be served.

    Args:
        model: A Keras model, or a callable.
        signature: See `embedra.saved_model.export`.

    Returns:
        The functions.

    Raises:
        TypeError: If `signature` is none of what it may be.
        ValueError: If inputs are unknown.
    """
    if _is_function(signature):
        check_takes_nothing("signature", signature)
        signature = signature()
    if not _is_by_name(signature):
        signature = {DEFAULT: signature}
    return [_endpoint(model, *pair) for pair in signature.items()]


def _is_by_name(signature: Any) -> bool:
    """Whether a signature is a dict of several, by their names."""
    if not isinstance(signature, Mapping):
        return False
    if not signature:
        msg = "`signature` is an empty dict: there is nothing to serve."
        raise ValueError(msg)
    return DEFAULT in signature or not all(map(is_spec, signature.values()))


def _endpoint(model: Any, name: Any, entry: Any) -> Endpoint:
    if not isinstance(name, str) or not name.isidentifier():
        msg = f"Signatures need names that are identifiers. Received: {name!r}"
        raise ValueError(msg)
    function, specs = model, entry
    if _is_function(entry):
        function, specs = entry, None
    elif isinstance(entry, tuple) and entry and _is_function(entry[0]):
        function, specs = entry[0], entry[1:]
        if len(specs) == 1 and isinstance(specs[0], tuple):
            specs = specs[0]
        specs = specs or None
    else:
        specs = None if entry is None else (entry,)
    if specs is None:
        specs = _own_specs(function, name)
    if not callable(function):
        msg = (
            "What is exported must be a Keras model or layer, or a function, "
            f"for signature {name!r}. Received: {function!r}"
        )
        raise TypeError(msg)
    inputs = inputs_of(specs)
    if not inputs:
        msg = f"Signature {name!r} has no inputs. Received: {entry!r}"
        raise ValueError(msg)
    arguments = tf.nest.pack_sequence_as(specs, [one.spec for one in inputs])
    return Endpoint(name, _as_called(function), arguments, inputs)


def _is_function(value: Any) -> bool:
    return callable(value) and not is_spec(value)


def _own_specs(function: Any, name: str) -> tuple[Any, ...]:
    """Returns the arguments that a function is known to take."""
    if isinstance(function, keras.Model):
        return (model_inputs(function),)
    known = getattr(function, "input_signature", None)
    if known is None:
        msg = (
            f"The inputs of signature {name!r} are unknown. Give the function "
            "with specs of its arguments, (function, spec, ...), or a "
            "tf.function with an `input_signature`."
        )
        raise ValueError(msg)
    return tuple(known)


def _as_called(function: Any) -> Callable[..., Any]:
    if isinstance(function, keras.Model | keras.layers.Layer):
        return lambda *arguments: function(*arguments, training=False)
    # A function of TensorFlow keeps what it traced, with the native ops.
    plain: Callable[..., Any] = getattr(function, "python_function", function)
    return plain
