"""Keras layers over tables."""

from ._embedding import Embedding as Embedding
