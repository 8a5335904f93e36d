"""Keras layers over tables."""

from ._collection import EmbeddingCollection as EmbeddingCollection
from ._embedding import Embedding as Embedding
from ._masks import ids_mask as ids_mask
from ._shapes import output_spec as output_spec
from ._table_layer import TableLayer as TableLayer, TableOwner as TableOwner
