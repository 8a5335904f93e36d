"""Tables: growable maps from 64-bit keys to rows."""

from ._arguments import check_ids as check_ids
from ._checkpoint import restore_tables, save_tables
from ._initializers import (
    InitializerSpec as InitializerSpec,
    initializer_config as initializer_config,
    resolve_initializer as resolve_initializer,
)
from ._keys import (
    STRING_HASH_BUCKETS as STRING_HASH_BUCKETS,
    KeyDtypeError as KeyDtypeError,
    to_keys as to_keys,
    to_tensor as to_tensor,
)
from ._records import (
    Records as Records,
    Slot as Slot,
    TableStatistics as TableStatistics,
)
from ._registration import register
from ._state import TableHeader as TableHeader, header_of as header_of
from ._store import (
    load_from_store as load_from_store,
    read_header as read_header,
    save_to_store as save_to_store,
)
from ._table import Table as Table


register(Table, save_tables, restore_tables)
