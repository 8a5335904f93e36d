"""What the signatures of an exported model give."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf


_SIGNATURES: Any = tf.compat.v1.saved_model


class ExportOutput:
    """What one signature of an exported model gives."""

    def outputs(self) -> dict[str, Any]:
        """Returns the outputs of the signature by name."""
        raise NotImplementedError

    def signature(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """Returns the signature.

        Args:
            receiver_tensors: What it takes, by name.

        Returns:
            A `SignatureDef`.
        """
        return _SIGNATURES.predict_signature_def(
            dict(receiver_tensors), self.outputs()
        )


class PredictOutput(ExportOutput):
    """Any tensors.

    Args:
        outputs: A tensor, or tensors by name.

    Raises:
        TypeError: If there is something else.
    """

    def __init__(self, outputs: Any) -> None:
        if not isinstance(outputs, Mapping):
            outputs = {"output": outputs}
        for name, value in outputs.items():
            if not isinstance(name, str) or not tf.is_tensor(value):
                msg = (
                    "`outputs` must be a tensor, or tensors by name. Received: "
                    f"{name}={value!r}."
                )
                raise TypeError(msg)
        self._outputs = dict(outputs)

    def outputs(self) -> dict[str, Any]:
        """Returns the tensors by name."""
        return self._outputs


class ClassificationOutput(ExportOutput):
    """Scores of classes, their names, or both.

    A signature for TensorFlow Serving's Classify API takes one `tf.string`
    tensor of serialized examples. If a model takes anything else, the signature
    is one for the Predict API.

    Args:
        scores: Floats, shape `(batch, classes)`, or None.
        classes: Strings, shape `(batch, classes)` or `(classes,)`, or None.

    Raises:
        ValueError: If there is neither, or one is of a wrong dtype.
    """

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is None and classes is None:
            msg = "Give ClassificationOutput `scores`, `classes` or both."
            raise ValueError(msg)
        _check_dtype("scores", scores, "floats", lambda d: d.is_floating)
        _check_dtype("classes", classes, "strings", lambda d: d == tf.string)
        self.scores = scores
        self.classes = classes

    def outputs(self) -> dict[str, Any]:
        """Returns the tensors by name."""
        named = {"scores": self.scores, "classes": self.classes}
        return {name: one for name, one in named.items() if one is not None}

    def signature(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """Returns the signature; see `ExportOutput.signature`."""
        examples = _serialized(receiver_tensors)
        if examples is None:
            return super().signature(receiver_tensors)
        return _SIGNATURES.classification_signature_def(
            examples, self.classes, self.scores
        )


class RegressionOutput(ExportOutput):
    """Values of a regression.

    A signature for TensorFlow Serving's Regress API takes one `tf.string`
    tensor of serialized examples. If a model takes anything else, the signature
    is one for the Predict API.

    Args:
        value: Floats.

    Raises:
        ValueError: If they are something else.
    """

    def __init__(self, value: Any) -> None:
        _check_dtype("value", value, "floats", lambda d: d.is_floating)
        self.value = value

    def outputs(self) -> dict[str, Any]:
        """Returns the tensor by its name."""
        return {"outputs": self.value}

    def signature(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """Returns the signature; see `ExportOutput.signature`."""
        examples = _serialized(receiver_tensors)
        if examples is None or self.value.dtype != tf.float32:
            return super().signature(receiver_tensors)
        return _SIGNATURES.regression_signature_def(examples, self.value)


def _serialized(receiver_tensors: Mapping[str, Any]) -> Any:
    """Returns the one input of serialized examples, or None."""
    tensors = list(receiver_tensors.values())
    if len(tensors) != 1 or not isinstance(tensors[0], tf.Tensor):
        return None
    return tensors[0] if tensors[0].dtype == tf.string else None


def _check_dtype(name: str, value: Any, wanted: str, is_one: Any) -> None:
    if value is None:
        return
    if not tf.is_tensor(value) or not is_one(value.dtype):
        msg = f"`{name}` must be a tensor of {wanted}. Received: {value!r}."
        raise ValueError(msg)
