"""`tensorflow.compat.v1.feature_column`, with columns of tables that grow.

>>> import embedra.compat.v1 as tf
>>> user = tf.feature_column.categorical_column_with_embedding("user")
>>> tf.feature_column.embedding_column(user, dimension=8).name
'user_embedding'
"""

import tensorflow as _tf

from embedra.compat._names import names_of as _names_of
from embedra.feature_column import (
    categorical_column_with_embedding as categorical_column_with_embedding,
    dense_features as dense_features,
    embedding_column as embedding_column,
    indicator_column as indicator_column,
    input_layer as input_layer,
    linear_model as linear_model,
    make_parse_example_spec as make_parse_example_spec,
    sequence_categorical_column_with_embedding as sequence_categorical_column_with_embedding,  # noqa: E501
    sequence_input_layer as sequence_input_layer,
    shared_embedding_columns as shared_embedding_columns,
    weighted_categorical_column as weighted_categorical_column,
)


__getattr__, __dir__ = _names_of(__name__, (), _tf.compat.v1.feature_column)
