"""VariableLayer: what layers over a `de.Variable` have in common."""

from typing import Any

import keras
import tensorflow as tf

from embedra import table as table_lib
from embedra.dynamic_embedding.shadow_ops import ShadowVariable
from embedra.layers import ids_mask

from ._outputs import RowsOfIds
from ._rows import RowSource, insert_mode
from ._settings import Settings


class VariableLayer(RowsOfIds):
    """A layer of Keras or tf_keras that owns a `de.Variable`.

    Attributes:
        params: The variable.
        shadow: Stands for its rows in tapes and optimizers.
        settings: The arguments that made it.
    """

    def __init__(
        self,
        embedding_size: int,
        key_dtype: Any = tf.int64,
        value_dtype: Any = tf.float32,
        combiner: str = "sum",
        initializer: Any = None,
        devices: Any = None,
        name: str = "DynamicEmbeddingLayer",
        with_unique: bool = True,
        short_file_name: bool = False,
        **kwargs: Any,
    ) -> None:
        settings = Settings.take(
            {
                "embedding_size": embedding_size,
                "key_dtype": key_dtype,
                "value_dtype": value_dtype,
                "combiner": combiner,
                "initializer": initializer,
                "devices": devices,
                "with_unique": with_unique,
                "short_file_name": short_file_name,
            },
            kwargs,
        )
        if settings.value_dtype != tf.float32:
            kwargs.setdefault("dtype", settings.value_dtype.name)
        super().__init__(name=name, **kwargs)
        self.settings = settings
        self.embedding_size = settings.embedding_size
        self.combiner = settings.combiner
        self.max_norm = settings.max_norm
        self.with_unique = settings.with_unique
        self.keep_distribution = settings.keep_distribution
        # Neither XLA nor the casting of float inputs apply to ids.
        self.supports_jit = False
        self.autocast = False
        self.supports_masking = settings.mask_zero
        self.params = settings.make_variable(self.name)
        with keras.name_scope(self.name.replace("/", "_")):
            self.shadow = ShadowVariable(
                self.params,
                name=f"{self.name.replace('/', '_')}-shadow",
                max_norm=settings.max_norm,
            )
        # A frozen layer's variables stay known as ones that may be trained.
        self.shadow.trainable = self.trainable
        self.source = RowSource(self.params, self.shadow, settings.max_norm)

    @property
    def table_group(self) -> table_lib.TableGroup:
        """The tables."""
        group: table_lib.TableGroup = self.params.state.group
        return group

    def call(self, ids: Any, training: Any = None) -> Any:
        """Looks up ids.

        Args:
            ids: Ids.
            training: Whether absent ids are inserted; None: if and when
                gradients are asked for.

        Returns:
            The layer's output, of its compute dtype.
        """
        insert = insert_mode(self.trainable, training)
        return tf.cast(self.outputs(ids, insert), self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Returns which ids are not padding, if there are any such.

        Args:
            inputs: Ids.
            mask: Unused.

        Returns:
            `bool`, of the shape of the ids, or None.
        """
        del mask
        if not self.settings.mask_zero or self.pools:
            return None
        return ids_mask(inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the shape of the output for ids of a shape.

        Args:
            input_shape: Of the ids.
        """
        return self.output_shape(tuple(input_shape))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, as JSON."""
        return {
            **super().get_config(),
            **self.settings.to_config(),
            **self.extra_config(),
        }

    def save_own_variables(self, store: Any) -> None:
        """Writes the tables to a weights store, unless `checkpoint=False`.

        Args:
            store: Of Keras.
        """
        if self.settings.checkpoint:
            super().save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        """Replaces the tables by those in a weights store.

        Args:
            store: Of Keras.
        """
        if self.settings.checkpoint:
            super().load_own_variables(store)
