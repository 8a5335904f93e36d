"""Embedding layers of Keras 3 over a `de.Variable`."""

from typing import Any

import keras

from embedra.dynamic_embedding.keras._all_to_all import AllToAll
from embedra.dynamic_embedding.keras._outputs import (
    PooledExamples,
    PooledFields,
)
from embedra.dynamic_embedding.keras._variable_layer import VariableLayer
from embedra.layers import TableLayer, output_spec


PACKAGE = "embedra.dynamic_embedding"


@keras.saving.register_keras_serializable(package=PACKAGE)
class Embedding(VariableLayer, TableLayer):
    """Turns ids into rows of a `de.Variable`, one for each id.

    The variable is `layer.params`. Among `trainable_variables` is
    `layer.shadow`, which has no elements, stands for the rows and gets their
    gradients; plain Keras optimizers train it. With `training=True` absent ids
    are inserted; with `training=False`, with `trainable=False` and after
    `de.enable_inference_mode()` they read as they would start. A call that does
    not say inserts ids if and when a tape computes their gradients.

    Inputs and outputs: ids of shape `(...)`, integers or strings, give rows of
    shape `(..., embedding_size)`; ragged ids keep their row splits.

    Args:
        embedding_size: Width of a row.
        key_dtype: Dtype of the ids: an integer dtype, or `tf.string`.
        value_dtype: Dtype of the rows: float32, bfloat16 or float16.
        combiner: How layers that pool make one row of several: "sum", "mean",
            "sqrtn", "max", "min" or "prod". This layer pools nothing.
        initializer: What absent ids start from; see
            `embedra.table.resolve_initializer`. By default a random normal.
        devices: Devices that hold a table each, one table by default.
        name: Name of the layer and of its variable. Layers of one name have
            variables of their own all the same.
        with_unique: Accepted. Repeated ids are always one row.
        short_file_name: See `de.Variable`.
        **kwargs: Those of `keras.layers.Layer`, and

            * `restrict_policy`, `partitioner`, `kv_creator`, `bp_v2`,
              `checkpoint`, `shared_name`: see `de.Variable`. Variables of one
              `shared_name` have their rows in common, and are trained together
              by `de.DynamicEmbeddingOptimizer`;
            * `init_capacity`: ids to make room for up front;
            * `max_norm`: longest L2 norm of a row that is returned;
            * `keep_distribution`: whether `get_config` has `devices` in it;
            * `mask_zero`: whether id 0, or the empty string, is padding: masked
              here, left out by layers that pool;
            * `distribute_strategy`: accepted, and unused.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> import numpy as np
        >>> import embedra.dynamic_embedding as de
        >>> layer = de.keras.layers.Embedding(4, initializer="ones")
        >>> layer(np.array([[15, 2], [4, 92]]), training=True).shape
        TensorShape([2, 2, 4])
        >>> int(layer.params.size())
        4
    """

    def compute_output_spec(self, ids: Any, training: Any = None) -> Any:
        """Describes the output for symbolic ids.

        Args:
            ids: Symbolic ids.
            training: Unused.

        Returns:
            A symbolic tensor.
        """
        del training
        if not self.pools:
            return output_spec(
                ids,
                self.embedding_size,
                pools=False,
                dtype=self.compute_dtype,
            )
        shape = self.output_shape(tuple(ids.shape))
        return keras.KerasTensor(shape, dtype=self.compute_dtype)


# TFRA's other name of it.
BasicEmbedding = Embedding


@keras.saving.register_keras_serializable(package=PACKAGE)
class SquashedEmbedding(PooledExamples, Embedding):
    """Turns the ids of an example into one row, pooled by `combiner`.

    Inputs and outputs: dense, ragged or sparse ids of shape `(batch, ...)` give
    `(batch, embedding_size)`. Ids of shape `(n,)` are a single example and give
    `(embedding_size,)`. Examples without ids give zeros.

    See `Embedding` for the arguments.

    Example:
        >>> import numpy as np
        >>> import embedra.dynamic_embedding as de
        >>> layer = de.keras.layers.SquashedEmbedding(2, initializer="ones")
        >>> layer(np.array([[15, 2, 4], [4, 92, 7]])).numpy().tolist()
        [[3.0, 3.0], [3.0, 3.0]]
    """


@keras.saving.register_keras_serializable(package=PACKAGE)
class FieldWiseEmbedding(PooledFields, Embedding):
    """Turns the ids of each field of an example into one row.

    Inputs and outputs: dense, ragged or sparse ids of shape `(batch, ...)` give
    `(batch, nslots, embedding_size)`. Fields without ids give zeros.

    Args:
        embedding_size: Width of a row.
        nslots: Number of fields.
        slot_map_fn: Given ids, gives the field of each, 0 to `nslots - 1`.
        *args: Those of `Embedding` after `embedding_size`.
        **kwargs: Those of `Embedding`.

    Raises:
        ValueError: If `slot_map_fn` is not callable.

    Example:
        >>> import numpy as np
        >>> import embedra.dynamic_embedding as de
        >>> layer = de.keras.layers.FieldWiseEmbedding(
        ...     2, 3, slot_map_fn=lambda ids: ids % 3, initializer="ones"
        ... )
        >>> layer(np.array([[23, 12, 0]])).numpy().tolist()
        [[[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]]
    """


@keras.saving.register_keras_serializable(package=PACKAGE)
class HvdAllToAllEmbedding(AllToAll, Embedding):
    """An `Embedding`, under the name that it has in TFRA for many processes.

    In a job its rows are split over the ranks, as those of `Embedding` are.

    Args:
        with_unique: Accepted. Repeated ids are always one row.
        with_secondary_unique: Accepted, for the same reason.
        mpi_size: Number of processes, by default that of the launcher.
        batch_size: Unused.
        *args: Those of `Embedding`.
        **kwargs: Those of `Embedding`.

    Raises:
        ValueError: If `mpi_size` is another number of processes than the
            launcher has started.
    """
