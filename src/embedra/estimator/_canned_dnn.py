"""DNNClassifier and DNNRegressor."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ._canned_classes import classification_head
from ._canned_heads import RegressionHead
from ._canned_model import CannedModel
from ._canned_parts import DeepPart, checked_columns
from ._estimator import Estimator
from ._run_config import RunConfig


_SUM: str = tf.compat.v1.losses.Reduction.SUM

# That of `tf.estimator`, for optimizers that are given by their names.
_RATE = 0.05


class DNNClassifier(Estimator):
    """Classifies by hidden layers over the tensors of columns.

    Weights and tables are named as in `tf.estimator`:
    `dnn/hiddenlayer_0/kernel`, and
    `dnn/input_from_feature_columns/input_layer/<column>/embedding_weights`.

    Args:
        hidden_units: Widths of the hidden layers, in their order.
        feature_columns: Dense columns, such as `embedding_column`.
        model_dir: See `Estimator`.
        n_classes: As of `LinearClassifier`, like `weight_column`,
            `label_vocabulary` and `loss_reduction`.
        weight_column: See there.
        label_vocabulary: See there.
        optimizer: See there; here those given by name have the learning rate
            0.05.
        activation_fn: Of hidden layers; None for none.
        dropout: Share of each hidden layer that training leaves out.
        input_layer_partitioner: Of dense weights of columns.
        config: See `Estimator`.
        warm_start_from: See `Estimator`.
        loss_reduction: See there.
        batch_norm: Whether hidden layers are normalized over batches.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range, or does not suit another.

    Example:
        >>> import tensorflow as tf
        >>> from embedra import feature_column as fc
        >>> user = fc.categorical_column_with_embedding("user", tf.int64)
        >>> estimator = DNNClassifier([4], [fc.embedding_column(user, 2)])
        >>> def input_fn():
        ...     return {"user": tf.constant([7, 8])}, tf.constant([0, 1])
        >>> _ = estimator.train(input_fn, steps=1)
        >>> estimator.get_variable_value("dnn/hiddenlayer_0/kernel").shape
        (2, 4)
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] | None = tf.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        head = classification_head(
            n_classes, weight_column, label_vocabulary, loss_reduction
        )
        part = DeepPart(
            "",
            checked_columns("feature_columns", feature_columns),
            hidden_units,
            optimizer,
            _RATE,
            activation_fn,
            dropout,
            input_layer_partitioner,
            batch_norm,
        )
        super().__init__(
            CannedModel(head, [part]).model_fn,
            model_dir,
            config,
            warm_start_from=warm_start_from,
        )


class DNNRegressor(Estimator):
    """Predicts numbers by hidden layers over the tensors of columns.

    Args:
        hidden_units: As of `DNNClassifier`, like all that is not named here.
        feature_columns: See there.
        model_dir: See `Estimator`.
        label_dimension: How many numbers an example has.
        weight_column: See there.
        optimizer: See there.
        activation_fn: See there.
        dropout: See there.
        input_layer_partitioner: See there.
        config: See `Estimator`.
        warm_start_from: See `Estimator`.
        loss_reduction: See there; losses are squared errors.
        batch_norm: See there.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range.

    Example:
        >>> from embedra import feature_column as fc
        >>> estimator = DNNRegressor([4], [fc.numeric_column("age")])
        >>> estimator.config.model_dir == estimator.model_dir
        True
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Any],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Any], Any] | None = tf.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        part = DeepPart(
            "",
            checked_columns("feature_columns", feature_columns),
            hidden_units,
            optimizer,
            _RATE,
            activation_fn,
            dropout,
            input_layer_partitioner,
            batch_norm,
        )
        super().__init__(
            CannedModel(head, [part]).model_fn,
            model_dir,
            config,
            warm_start_from=warm_start_from,
        )
