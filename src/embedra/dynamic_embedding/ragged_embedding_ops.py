"""Lookups that combine the rows of ragged ids, under TFRA's name for them.

They are `de.embedding_lookup_sparse` and `de.safe_embedding_lookup_sparse`,
which take sparse and ragged ids alike.
"""

from ._sparse_lookup import (
    embedding_lookup_sparse,
    safe_embedding_lookup_sparse,
)


__all__ = ["embedding_lookup_sparse", "safe_embedding_lookup_sparse"]
