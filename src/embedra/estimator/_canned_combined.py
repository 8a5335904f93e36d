"""DNNLinearCombinedClassifier and DNNLinearCombinedRegressor."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ._canned_classes import classification_head
from ._canned_heads import Head, RegressionHead
from ._canned_model import CannedModel, Part
from ._canned_parts import DeepPart, LinearPart, checked_columns
from ._estimator import Estimator
from ._run_config import RunConfig


_SUM: str = tf.compat.v1.losses.Reduction.SUM

# Those of `tf.estimator`, for optimizers that are given by their names.
_DEEP_RATE = 0.001
_MOST_LINEAR = 0.005


class _Combined(Estimator):
    """A linear and a deep part, of which either may be left out.

    Args:
        head: Makes losses and predictions of their logits.
        model_dir: See `Estimator`.
        linear_feature_columns: See `DNNLinearCombinedClassifier`, like all that
            is not named here.
        linear_optimizer: See there.
        dnn_feature_columns: See there.
        dnn_optimizer: See there.
        dnn_hidden_units: See there.
        dnn_activation_fn: See there.
        dnn_dropout: See there.
        input_layer_partitioner: See there.
        config: See `Estimator`.
        warm_start_from: See `Estimator`.
        batch_norm: See there.
        linear_sparse_combiner: See there.
    """

    def __init__(
        self,
        head: Head,
        model_dir: Any,
        linear_feature_columns: Sequence[Any] | None,
        linear_optimizer: Any,
        dnn_feature_columns: Sequence[Any] | None,
        dnn_optimizer: Any,
        dnn_hidden_units: Sequence[int] | None,
        dnn_activation_fn: Callable[[Any], Any] | None,
        dnn_dropout: float | None,
        input_layer_partitioner: Any,
        config: RunConfig | None,
        warm_start_from: Any,
        batch_norm: bool,
        linear_sparse_combiner: str,
    ) -> None:
        deep_columns = checked_columns(
            "dnn_feature_columns", dnn_feature_columns
        )
        linear_columns = checked_columns(
            "linear_feature_columns", linear_feature_columns
        )
        parts: list[Part] = []
        if deep_columns:
            deep = DeepPart(
                "dnn_",
                deep_columns,
                () if dnn_hidden_units is None else dnn_hidden_units,
                dnn_optimizer,
                _DEEP_RATE,
                dnn_activation_fn,
                dnn_dropout,
                input_layer_partitioner,
                batch_norm,
            )
            parts.append(deep)
        if linear_columns:
            linear = LinearPart(
                "linear_",
                linear_columns,
                linear_optimizer,
                min(_MOST_LINEAR, 1 / math.sqrt(len(linear_columns))),
                linear_sparse_combiner,
                input_layer_partitioner,
            )
            parts.append(linear)
        if not parts:
            msg = (
                "`linear_feature_columns` or `dnn_feature_columns` must have "
                "at least one column. Received: none."
            )
            raise ValueError(msg)
        super().__init__(
            CannedModel(head, parts).model_fn,
            model_dir,
            config,
            warm_start_from=warm_start_from,
        )


class DNNLinearCombinedClassifier(_Combined):
    """Classifies by a linear and a deep part: wide and deep.

    Their logits are added; each part has its own optimizer. A table that both
    use, of `shared_embedding_columns`, is trained by that of the deep part.

    Args:
        model_dir: See `Estimator`.
        linear_feature_columns: Columns of the linear part, as of
            `LinearClassifier`. None for no such part.
        linear_optimizer: As `optimizer` of `LinearClassifier`; here those given
            by name have the learning rate 0.005, or 1 / sqrt(number of
            columns) if that is lower.
        dnn_feature_columns: Columns of the deep part, as of `DNNClassifier`.
            None for no such part.
        dnn_optimizer: As `optimizer` of `DNNClassifier`; here those given by
            name have the learning rate 0.001.
        dnn_hidden_units: Widths of the hidden layers, in their order.
        dnn_activation_fn: Of hidden layers; None for none.
        dnn_dropout: Share of each hidden layer that training leaves out.
        n_classes: As of `LinearClassifier`, like the four that follow.
        weight_column: See there.
        label_vocabulary: See there.
        input_layer_partitioner: Of dense weights of columns.
        config: See `Estimator`.
        warm_start_from: See `Estimator`.
        loss_reduction: See there.
        batch_norm: Whether hidden layers are normalized over batches.
        linear_sparse_combiner: How the weights of an example's ids make one.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range, or does not suit another.

    Example:
        >>> from embedra import feature_column as fc
        >>> user = fc.categorical_column_with_embedding("user")
        >>> estimator = DNNLinearCombinedClassifier(
        ...     linear_feature_columns=[user],
        ...     dnn_feature_columns=[fc.embedding_column(user, 8)],
        ...     dnn_hidden_units=[16],
        ... )
        >>> estimator.latest_checkpoint() is None
        True
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] | None = tf.nn.relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            classification_head(
                n_classes, weight_column, label_vocabulary, loss_reduction
            ),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
            linear_sparse_combiner,
        )


class DNNLinearCombinedRegressor(_Combined):
    """Predicts numbers by a linear and a deep part: wide and deep.

    Args:
        model_dir: See `Estimator`.
        linear_feature_columns: As of `DNNLinearCombinedClassifier`, like all
            that is not named here.
        linear_optimizer: See there.
        dnn_feature_columns: See there.
        dnn_optimizer: See there.
        dnn_hidden_units: See there.
        dnn_activation_fn: See there.
        dnn_dropout: See there.
        label_dimension: How many numbers an example has.
        weight_column: See there.
        input_layer_partitioner: See there.
        config: See `Estimator`.
        warm_start_from: See `Estimator`.
        loss_reduction: See there; losses are squared errors.
        batch_norm: See there.
        linear_sparse_combiner: See there.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range, or does not suit another.

    Example:
        >>> from embedra import feature_column as fc
        >>> estimator = DNNLinearCombinedRegressor(
        ...     linear_feature_columns=[fc.numeric_column("age")]
        ... )
        >>> estimator.latest_checkpoint() is None
        True
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Any], Any] | None = tf.nn.relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            RegressionHead(label_dimension, weight_column, loss_reduction),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
            linear_sparse_combiner,
        )
