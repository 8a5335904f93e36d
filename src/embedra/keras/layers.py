"""Layers of Keras over feature columns."""

from embedra.feature_column import (
    DenseFeatures as DenseFeatures,
    dense_features as dense_features,
)
