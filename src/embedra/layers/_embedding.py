"""Embedding: a Keras layer over a dynamic table."""

from typing import Any

import keras

from embedra import table as table_lib
from embedra.distribute import table_communicator
from embedra.lookup import RowReader, look_up
from embedra.optimizers import TableVariable

from ._masks import ids_mask
from ._plan import plan_of
from ._saved import checked_default
from ._shapes import output_shape, output_spec
from ._table_layer import TableLayer


_COMBINERS = ("sum", "mean", "sqrtn")


@keras.saving.register_keras_serializable(package="embedra")
class Embedding(TableLayer):
    """Turns ids into rows of a table that grows as ids appear.

    Ids are integers of any width and sign, or strings; there is no vocabulary.
    A row is made when its id is first seen in training. With `training=False`
    and with `trainable=False` the table is only read: absent ids give
    `inference_default`. In a call that does not say whether it is training, as
    in a custom loop or a model whose `call` has no such argument, ids are
    inserted if and when a tape computes their gradients.

    Inputs and outputs: without a combiner, ids of shape `(...)` give rows of
    shape `(..., output_dim)`; ragged ids keep their row splits. With one, the
    last dimension of the ids is pooled, `(..., k)` to `(..., output_dim)`,
    and ids of one dimension are bags of one id. Ids may be dense, ragged or
    sparse (with a combiner). Every input row gives one output row; empty ones
    give zeros.

    The rows are in no array variable: `trainable_variables` holds one variable
    of no elements that stands for them, and gets their gradients. All
    optimizers move only the rows of ids in the batch.

    In a job of several ranks each holds the rows of some ids, unless the layer
    is made in `embedra.scope(sharding=False)`. All ranks must call the layer
    together, with ids of their own, or with none.

    Args:
        output_dim: Width of a row.
        combiner: None, or how the rows of a bag become one: "sum", "mean" or
            "sqrtn", each by weight as `tf.nn.embedding_lookup_sparse` does.
        embeddings_initializer: What new rows start from; see
            `embedra.table.resolve_initializer`.
        embeddings_regularizer: A Keras regularizer, applied in training to the
            rows of the batch, each once.
        embeddings_constraint: A Keras constraint, applied after each update to
            the rows that were touched, as a `(rows, output_dim)` matrix.
        mask_zero: Whether id 0 (or the empty string) is padding: masked, or
            with a combiner left out of its bag.
        key_dtype: What ids are meant to be: an integer dtype, or "string",
            which refuses integers.
        initial_capacity: Ids to make room for up front.
        optimizer: A Keras optimizer for this table alone, in place of the
            model's; its name or config.
        inference_default: What absent ids read as when they are not inserted:
            "initializer" (the row that they would start with), "zeros", or a
            row. With a Python function as initializer, the first gives zeros.
        seed: Seed of initial rows; see `embedra.table.Table`.
        wire_dtype: What the ranks of a job send rows and their gradients as;
            None for `embedra.scope`'s, which is "float32" if not set.
        name: Name of the layer and of its table.
        dtype: Dtype or policy. The rows have its variable dtype, the outputs
            its compute dtype.
        **kwargs: Those of `keras.layers.Layer`.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> import numpy as np
        >>> layer = Embedding(4, embeddings_initializer="ones")
        >>> layer(np.array([[7, -1]]), training=True).shape
        TensorShape([1, 2, 4])
        >>> layer.size()
        2
        >>> bags = Embedding(2, combiner="sum", embeddings_initializer="ones")
        >>> bags(np.array([[1, 2, 3]]), training=True).numpy().tolist()
        [[3.0, 3.0]]
    """

    def __init__(
        self,
        output_dim: int,
        *,
        combiner: str | None = None,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        key_dtype: str = "int64",
        initial_capacity: int = 0,
        optimizer: Any = None,
        inference_default: Any = "initializer",
        seed: int | None = None,
        wire_dtype: str | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, **kwargs)
        if combiner is not None and combiner not in _COMBINERS:
            msg = (
                f"`combiner` must be one of {_COMBINERS} or None. Received: "
                f"{combiner!r}"
            )
            raise ValueError(msg)
        self.combiner = combiner
        self.embeddings_regularizer = keras.regularizers.get(
            embeddings_regularizer
        )
        self.embeddings_constraint = keras.constraints.get(
            embeddings_constraint
        )
        self.mask_zero = mask_zero
        self.optimizer = (
            None if optimizer is None else keras.optimizers.get(optimizer)
        )
        self.seed = seed
        self.wire_dtype = wire_dtype
        # Neither XLA nor the casting of float inputs apply to ids.
        self.supports_jit = False
        self.autocast = False
        self.supports_masking = mask_zero
        self.table = table_lib.Table(
            output_dim,
            name=self.name,
            initializer=embeddings_initializer,
            key_dtype=key_dtype,
            dtype=self.variable_dtype,
            seed=seed,
            initial_capacity=initial_capacity,
            communicator=table_communicator(),
        )
        self.output_dim = self.table.dim
        self.embeddings_initializer = embeddings_initializer
        self.inference_default = checked_default(
            inference_default, self.output_dim, self.name
        )
        with keras.name_scope(self.name):
            self.embeddings = TableVariable(
                self.table,
                optimizer=self.optimizer,
                constraint=self.embeddings_constraint,
            )
        # A frozen layer's variables stay known as ones that may be trained.
        self.embeddings.trainable = self.trainable
        self.reader = RowReader(
            self.table, self.embeddings, self.inference_default, wire_dtype
        )

    def call(
        self, inputs: Any, weights: Any = None, training: bool | None = None
    ) -> Any:
        """Looks up ids.

        Args:
            inputs: Ids: dense, ragged or sparse.
            weights: Weights of the ids, of the same structure, for a combiner.
            training: Whether absent ids are inserted and lookups counted.

        Returns:
            Rows of the compute dtype.

        Raises:
            ValueError: If `weights` or sparse ids come without a combiner.
        """
        plan = plan_of(self, inputs, weights, training)
        return plan.finish(look_up([plan.request])[0])

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Returns which ids are not padding, if there are any such.

        Args:
            inputs: Ids.
            mask: Unused.

        Returns:
            `bool`, of the shape of the ids, or None.
        """
        del mask
        if not self.mask_zero or self.combiner is not None:
            return None
        return ids_mask(inputs)

    def compute_output_shape(
        self, input_shape: Any, weights_shape: Any = None
    ) -> tuple[int | None, ...]:
        """Returns the shape of the rows for ids of a shape.

        Args:
            input_shape: Of the ids.
            weights_shape: Unused: it is the same.

        Returns:
            The shape.
        """
        del weights_shape
        pools = self.combiner is not None
        return output_shape(tuple(input_shape), self.output_dim, pools=pools)

    def compute_output_spec(
        self, inputs: Any, weights: Any = None, training: bool | None = None
    ) -> Any:
        """Describes the output for symbolic ids.

        Args:
            inputs: Symbolic ids.
            weights: Symbolic weights.
            training: Unused.

        Returns:
            A symbolic tensor.
        """
        del training
        if weights is not None and self.combiner is None:
            msg = f"{self.owner} was given `weights`, but has no combiner."
            raise ValueError(msg)
        return output_spec(
            inputs,
            self.output_dim,
            pools=self.combiner is not None,
            dtype=self.compute_dtype,
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, as JSON."""
        optimizer = self.optimizer
        return {
            **super().get_config(),
            "output_dim": self.output_dim,
            "combiner": self.combiner,
            "embeddings_initializer": table_lib.initializer_config(
                self.embeddings_initializer, self.output_dim
            ),
            "embeddings_regularizer": keras.regularizers.serialize(
                self.embeddings_regularizer
            ),
            "embeddings_constraint": keras.constraints.serialize(
                self.embeddings_constraint
            ),
            "mask_zero": self.mask_zero,
            "key_dtype": self.table.key_dtype,
            "initial_capacity": self.table.initial_capacity,
            "optimizer": optimizer and keras.optimizers.serialize(optimizer),
            "inference_default": self.inference_default,
            "seed": self.seed,
            "wire_dtype": self.wire_dtype,
        }
