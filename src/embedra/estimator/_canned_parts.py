"""Parts of canned models: a deep and a linear one, each with its optimizer."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from embedra import feature_column
from embedra._checks import check_one_of

from ._canned_layers import batch_norm, dense
from ._canned_optimizers import check_optimizer, optimizer_for_tables
from ._modes import ModeKeys
from ._numbers import is_integer, is_real


v1: Any = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class DeepPart:
    """Hidden layers over the tensors of columns.

    Attributes:
        prefix: What the names of its arguments begin with, for messages.
        columns: Dense columns.
        hidden_units: Widths of the hidden layers, in their order.
        optimizer: What trains the part.
        rate: Learning rate of an optimizer that is given by its name.
        activation: Of hidden layers; None for none.
        dropout: Share of a hidden layer that training leaves out, or None.
        partitioner: Of dense weights of columns, or None.
        batch_norm: Whether hidden layers are normalized over batches.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range.
    """

    prefix: str
    columns: Sequence[Any]
    hidden_units: Sequence[int]
    optimizer: Any
    rate: float
    activation: Any
    dropout: float | None
    partitioner: Any
    batch_norm: bool

    def __post_init__(self) -> None:
        widths = _as_list(self.hidden_units)
        if not widths or not all(is_integer(n) and n > 0 for n in widths):
            msg = (
                f"`{self.prefix}hidden_units` must be the widths of the hidden "
                f"layers, such as [64, 32]. Received: {self.hidden_units!r}."
            )
            raise ValueError(msg)
        # What gives widths only once is used for several graphs.
        object.__setattr__(self, "hidden_units", widths)
        if self.dropout is not None and not (
            is_real(self.dropout) and 0 <= self.dropout < 1
        ):
            msg = (
                f"`{self.prefix}dropout` must be from 0 to less than 1. "
                f"Received: {self.dropout!r}."
            )
            raise ValueError(msg)
        if self.activation is not None and not callable(self.activation):
            msg = (
                f"`{self.prefix}activation_fn` must be a function, such as "
                f"tf.nn.relu. Received: {self.activation!r}."
            )
            raise TypeError(msg)
        _check_part(self.prefix, self.columns, self.optimizer)
        _check_dense(self.prefix, self.columns)

    def logits(self, features: Any, units: int, mode: str) -> tf.Tensor:
        """Builds the part.

        Args:
            features: Tensors by name.
            units: Number of logits of an example.
            mode: One of `ModeKeys`.

        Returns:
            `float32`, shape `(batch, units)`.
        """
        with v1.variable_scope("dnn"):
            with v1.variable_scope(
                "input_from_feature_columns", partitioner=self.partitioner
            ):
                net = feature_column.input_layer(features, self.columns)
            for layer, width in enumerate(self.hidden_units):
                with v1.variable_scope(f"hiddenlayer_{layer}") as scope:
                    net = self._hidden(net, width, f"batchnorm_{layer}", mode)
                _add_summaries(net, scope.name, mode)
            with v1.variable_scope("logits") as scope:
                logits = dense(net, units, None)
            _add_summaries(logits, scope.name, mode)
        return logits

    def _hidden(self, net: Any, width: int, norm: str, mode: str) -> tf.Tensor:
        net = dense(net, width, self.activation)
        is_training = mode == ModeKeys.TRAIN
        if self.dropout and is_training:
            net = tf.nn.dropout(net, self.dropout)
        if self.batch_norm:
            with v1.variable_scope(norm):
                net = batch_norm(net, is_training=is_training)
        return net

    def made_optimizer(self) -> Any:
        """Returns what trains the part in the graph that is current."""
        return optimizer_for_tables(
            f"{self.prefix}optimizer", self.optimizer, self.rate
        )


@dataclasses.dataclass(frozen=True)
class LinearPart:
    """A weight for each id and number, and a bias.

    Attributes:
        prefix: What the names of its arguments begin with, for messages.
        columns: Columns, dense or of ids.
        optimizer: What trains the part.
        rate: Learning rate of an optimizer that is given by its name.
        sparse_combiner: How the weights of an example's ids make one.
        partitioner: Of dense weights, or None.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range.
    """

    prefix: str
    columns: Sequence[Any]
    optimizer: Any
    rate: float
    sparse_combiner: str
    partitioner: Any

    def __post_init__(self) -> None:
        check_one_of(
            "sparse_combiner", self.sparse_combiner, ("mean", "sqrtn", "sum")
        )
        _check_part(self.prefix, self.columns, self.optimizer)

    def logits(self, features: Any, units: int, mode: str) -> tf.Tensor:
        """Builds the part; see `DeepPart.logits`."""
        with v1.variable_scope("linear", partitioner=self.partitioner) as scope:
            logits = feature_column.linear_model(
                features, self.columns, units, self.sparse_combiner
            )
            _add_summaries(logits, scope.name, mode)
        return logits

    def made_optimizer(self) -> Any:
        """Returns what trains the part in the graph that is current."""
        return optimizer_for_tables(
            f"{self.prefix}optimizer", self.optimizer, self.rate
        )


def checked_columns(argument: str, given: Any) -> list[Any]:
    """Returns columns as a list, none for None.

    Args:
        argument: What the caller knows them by.
        given: Columns.

    Raises:
        TypeError: If these are no columns, or it is one of them alone.
    """
    if given is None:
        return []
    # Some columns of TensorFlow are tuples of their arguments.
    is_list = isinstance(given, Iterable) and not _is_column(given)
    columns = list(given) if is_list else []
    if not is_list or not all(map(_is_column, columns)):
        msg = (
            f"`{argument}` must be a list of feature columns. Received: "
            f"{given!r}."
        )
        raise TypeError(msg)
    return columns


def _is_column(given: Any) -> bool:
    # What columns of both TensorFlows have in common.
    return hasattr(given, "parents") and hasattr(given, "parse_example_spec")


def _as_list(given: Any) -> list[Any]:
    is_several = isinstance(given, Iterable) and not isinstance(given, Mapping)
    return [*given] if is_several else []


def _check_part(prefix: str, columns: Sequence[Any], optimizer: Any) -> None:
    if not columns:
        msg = (
            f"`{prefix}feature_columns` must have at least one column. "
            "Received: none."
        )
        raise ValueError(msg)
    check_optimizer(f"{prefix}optimizer", optimizer)


def _check_dense(prefix: str, columns: Sequence[Any]) -> None:
    for column in columns:
        if hasattr(column, "get_dense_tensor"):
            continue
        msg = (
            f"`{prefix}feature_columns` of a deep model must be dense: put "
            "columns of ids into embedding_column or indicator_column. "
            f"Received: {column!r}."
        )
        raise ValueError(msg)


def _add_summaries(values: tf.Tensor, scope: str, mode: str) -> None:
    if mode == ModeKeys.TRAIN:
        v1.summary.scalar(
            f"{scope}/fraction_of_zero_values", tf.math.zero_fraction(values)
        )
        v1.summary.histogram(f"{scope}/activation", values)
