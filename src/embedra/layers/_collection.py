"""EmbeddingCollection: layers of many features, looked up together."""

from collections.abc import Mapping
from typing import Any

import keras

from embedra import table as table_lib
from embedra._checks import check_one_of, check_positive
from embedra.lookup import look_up, with_rank
from embedra.scopes import WIRE_DTYPES

from ._embedding import Embedding
from ._plan import plan_of


@keras.saving.register_keras_serializable(package="embedra")
class EmbeddingCollection(keras.layers.Layer):
    """Looks up many features at once.

    It does what the `Embedding` layers of the features do, one by one, but with
    fewer ops, as one reads all tables of a kind; and in a job of several ranks
    with one exchange of ids, one of rows and one of gradients for all. Features
    that are given the same layer share its table.

    Inputs and outputs are dicts by feature: ids as the feature's layer takes
    them, and the rows that it gives. Inputs may have other entries, which are
    left alone. As features are read together, those on which a loss does not
    depend have gradients of zero, where a layer by itself would have none.

    Args:
        embeddings: The layer of each feature, by name.
        num_groups: How many exchanges of rows the features are divided into in
            a job. With more than one, ids of a group travel while rows of
            another are read.
        wire_dtype: What ranks send rows and their gradients as, "float32",
            "bfloat16" or "float16"; None for what each layer says.
        name: Name of the layer.
        dtype: Has no effect: rows have the compute dtypes of the layers.
        **kwargs: Those of `keras.layers.Layer`.

    Raises:
        TypeError: If a feature's layer is no `Embedding`.
        ValueError: If there is no feature, or an argument is out of range.

    Example:
        >>> items = Embedding(4, name="items")
        >>> collection = EmbeddingCollection(
        ...     {"user": Embedding(8), "item": items, "last_item": items}
        ... )
        >>> ids = {"user": [7, 8], "item": [1, 2], "last_item": [2, 3]}
        >>> rows = collection(ids, training=True)
        >>> rows["last_item"].shape, items.size()
        (TensorShape([2, 4]), 3)
    """

    def __init__(
        self,
        embeddings: Mapping[str, Embedding],
        *,
        num_groups: int = 1,
        wire_dtype: str | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, **kwargs)
        _check_layers(embeddings, self.name)
        if wire_dtype is not None:
            check_one_of("wire_dtype", wire_dtype, WIRE_DTYPES)
        self.num_groups = check_positive("num_groups", num_groups)
        self.wire_dtype = wire_dtype
        self.supports_jit = False
        self.autocast = False
        layers = list(dict.fromkeys(embeddings.values()))
        self._place_of = {
            feature: layers.index(layer)
            for feature, layer in embeddings.items()
        }
        self._count = len(layers)
        for place, layer in enumerate(layers):
            # Checkpoints of TensorFlow find attributes, and no dicts of Keras.
            setattr(self, f"embedding_{place}", layer)
            # It is never called itself, and would count as not built.
            layer.build(None)
        self.supports_masking = any(layer.supports_masking for layer in layers)

    @property
    def embeddings(self) -> dict[str, Embedding]:
        """The layer of each feature."""
        layers = self._distinct()
        return {f: layers[place] for f, place in self._place_of.items()}

    def size(self) -> Any:
        """Returns the number of ids in the tables; in a job, of this rank's."""
        return sum(layer.size() for layer in self._distinct())

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Checks the ids, then calls the layer.

        Args:
            inputs: Ids by feature; nested lists and NumPy arrays too.
            *args: See `call`.
            **kwargs: See `call`.

        Returns:
            Rows by feature.

        Raises:
            KeyDtypeError: If ids are floats, also symbolic ones.
            ValueError: If a feature has no ids.
        """
        self._check_features(inputs)
        ids = {}
        for feature, layer in self.embeddings.items():
            owner = f"Feature {feature!r} of layer {self.name!r}"
            ids[feature] = with_rank(
                table_lib.to_tensor(inputs[feature], owner)
            )
            table_lib.check_ids(layer.table.key_dtype, ids[feature], owner)
        return super().__call__(ids, *args, **kwargs)

    def call(
        self,
        inputs: Mapping[str, Any],
        weights: Mapping[str, Any] | None = None,
        training: bool | None = None,
    ) -> dict[str, Any]:
        """Looks up ids.

        Args:
            inputs: Ids by feature.
            weights: Weights of ids, for features whose layers have a combiner;
                others are left out.
            training: Whether absent ids are inserted and lookups counted.

        Returns:
            Rows by feature, of the compute dtypes of their layers.
        """
        weights = weights or {}
        plans = {
            feature: plan_of(
                layer,
                inputs[feature],
                with_rank(weights.get(feature)),
                training,
            )
            for feature, layer in self.embeddings.items()
        }
        found = look_up(
            [plan.request for plan in plans.values()],
            self.num_groups,
            self.wire_dtype,
        )
        return {
            feature: plan.finish(rows)
            for (feature, plan), rows in zip(plans.items(), found, strict=True)
        }

    def compute_mask(
        self, inputs: Mapping[str, Any], mask: Any = None
    ) -> dict[str, Any]:
        """Returns which ids are not padding, by feature; None where all count.

        Args:
            inputs: Ids by feature.
            mask: Unused.

        Returns:
            Masks by feature.
        """
        del mask
        return {
            feature: layer.compute_mask(inputs[feature])
            for feature, layer in self.embeddings.items()
        }

    def compute_output_shape(
        self, input_shape: Mapping[str, Any], weights_shape: Any = None
    ) -> dict[str, tuple[int | None, ...]]:
        """Returns the shapes of the rows for ids of given shapes.

        Args:
            input_shape: Of the ids, by feature.
            weights_shape: Unused: they are the same.

        Returns:
            The shapes by feature.
        """
        del weights_shape
        return {
            feature: layer.compute_output_shape(input_shape[feature])
            for feature, layer in self.embeddings.items()
        }

    def compute_output_spec(
        self,
        inputs: Mapping[str, Any],
        weights: Mapping[str, Any] | None = None,
        training: bool | None = None,
    ) -> dict[str, Any]:
        """Describes the outputs for symbolic ids.

        Args:
            inputs: Symbolic ids by feature.
            weights: Symbolic weights.
            training: Unused.

        Returns:
            Symbolic tensors by feature.
        """
        weights = weights or {}
        return {
            feature: layer.compute_output_spec(
                inputs[feature], weights.get(feature), training
            )
            for feature, layer in self.embeddings.items()
        }

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, as JSON."""
        return {
            **super().get_config(),
            "embeddings": {
                "layers": [
                    keras.saving.serialize_keras_object(layer)
                    for layer in self._distinct()
                ],
                "features": [list(item) for item in self._place_of.items()],
            },
            "num_groups": self.num_groups,
            "wire_dtype": self.wire_dtype,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "EmbeddingCollection":
        """Rebuilds a collection from `get_config`."""
        saved = config["embeddings"]
        layers = [
            keras.saving.deserialize_keras_object(layer)
            for layer in saved["layers"]
        ]
        embeddings = {
            feature: layers[place] for feature, place in saved["features"]
        }
        return cls(**{**config, "embeddings": embeddings})

    def _distinct(self) -> list[Embedding]:
        return [getattr(self, f"embedding_{i}") for i in range(self._count)]

    def _check_features(self, inputs: Any) -> None:
        given = list(inputs) if isinstance(inputs, Mapping) else type(inputs)
        if not isinstance(inputs, Mapping) or set(self.embeddings) - set(
            inputs
        ):
            msg = (
                f"Layer {self.name!r} needs a dict with ids of each of its "
                f"features {list(self.embeddings)}. Received: {given}."
            )
            raise ValueError(msg)


def _check_layers(embeddings: Any, name: str) -> None:
    if not isinstance(embeddings, Mapping) or not embeddings:
        msg = (
            f"`embeddings` of layer {name!r} must be a dict with an Embedding "
            f"for each feature. Received: {embeddings!r}."
        )
        raise ValueError(msg)
    for feature, layer in embeddings.items():
        if not isinstance(layer, Embedding):
            msg = (
                f"Feature {feature!r} of layer {name!r} must have an "
                f"embedra.layers.Embedding. Received: {layer!r}."
            )
            raise TypeError(msg)
