"""LinearClassifier and LinearRegressor."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ._canned_classes import classification_head
from ._canned_heads import RegressionHead
from ._canned_model import CannedModel
from ._canned_parts import LinearPart, checked_columns
from ._estimator import Estimator
from ._run_config import RunConfig


v1: Any = tf.compat.v1

_SUM: str = v1.losses.Reduction.SUM

# That of `tf.estimator`, for optimizers that are given by their names.
_RATE = 0.2


class LinearClassifier(Estimator):
    """Classifies by the sum of a weight for each id and number.

    Ids without a vocabulary have their weights in tables. Weights and tables
    are named as in `tf.estimator`: `linear/linear_model/<column>/weights`.

    Args:
        feature_columns: Columns, dense or of ids.
        model_dir: See `Estimator`.
        n_classes: How many classes there are. Two have one logit.
        weight_column: Name of the feature with weights of examples, or a
            numeric column of them.
        label_vocabulary: Names of the classes in their order, if labels are
            strings; else they are numbers from 0.
        optimizer: An optimizer of `tf.compat.v1.train`, or a function that
            makes one for each graph, or one of "Adagrad", "Adam", "Ftrl",
            "RMSProp" and "SGD". Those get the learning rate 0.2; None stands
            for "Ftrl" with 1 / sqrt(number of columns) if that is lower.
        config: See `Estimator`.
        partitioner: Of dense weights.
        warm_start_from: See `Estimator`.
        loss_reduction: How losses of examples make one: a
            `tf.compat.v1.losses.Reduction`; "sum" and "sum_over_batch_size"
            are taken too. As in TensorFlow 1 it is their sum, by default.
        sparse_combiner: How the weights of an example's ids make one: "sum",
            "mean" or "sqrtn".

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range, or does not suit another.

    Example:
        >>> import tensorflow as tf
        >>> from embedra import feature_column as fc
        >>> user = fc.categorical_column_with_embedding("user", tf.int64)
        >>> estimator = LinearClassifier([user])
        >>> def input_fn():
        ...     return {"user": tf.constant([7, 8])}, tf.constant([0, 1])
        >>> _ = estimator.train(input_fn, steps=5)
        >>> [int(p["class_ids"][0]) for p in estimator.predict(
        ...     lambda: tf.data.Dataset.from_tensors({"user": [8, 7]})
        ... )]
        [1, 0]
    """

    def __init__(
        self,
        feature_columns: Sequence[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = classification_head(
            n_classes, weight_column, label_vocabulary, loss_reduction
        )
        part = _part(feature_columns, optimizer, sparse_combiner, partitioner)
        super().__init__(
            CannedModel(head, [part]).model_fn,
            model_dir,
            config,
            warm_start_from=warm_start_from,
        )


class LinearRegressor(Estimator):
    """Predicts numbers by the sum of a weight for each id and number.

    Args:
        feature_columns: As of `LinearClassifier`, like all that is not named
            here.
        model_dir: See `Estimator`.
        label_dimension: How many numbers an example has.
        weight_column: See there.
        optimizer: See there.
        config: See `Estimator`.
        partitioner: See there.
        warm_start_from: See `Estimator`.
        loss_reduction: See there; losses are squared errors.
        sparse_combiner: See there.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range.

    Example:
        >>> from embedra import feature_column as fc
        >>> estimator = LinearRegressor([fc.numeric_column("age")])
        >>> estimator.config.model_dir == estimator.model_dir
        True
    """

    def __init__(
        self,
        feature_columns: Sequence[Any],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        part = _part(feature_columns, optimizer, sparse_combiner, partitioner)
        super().__init__(
            CannedModel(head, [part]).model_fn,
            model_dir,
            config,
            warm_start_from=warm_start_from,
        )


def _part(
    feature_columns: Any, optimizer: Any, sparse_combiner: str, partitioner: Any
) -> LinearPart:
    columns = checked_columns("feature_columns", feature_columns)
    if optimizer is None:
        rate = min(_RATE, 1 / math.sqrt(max(1, len(columns))))
        optimizer = functools.partial(v1.train.FtrlOptimizer, rate)
    return LinearPart(
        "", columns, optimizer, _RATE, sparse_combiner, partitioner
    )
