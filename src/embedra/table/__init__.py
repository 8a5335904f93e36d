"""Tables: growable maps from 64-bit keys to rows."""

from ._arguments import check_ids as check_ids
from ._chain import restoring_chain as restoring_chain
from ._checkpoint import (
    restore_groups as restore_groups,
    restore_tables,
    save_groups as save_groups,
    save_tables,
)
from ._delta import saving_changes as saving_changes
from ._group import TableGroup as TableGroup
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
from ._lists import (
    accumulate_tables as accumulate_tables,
    assign_tables as assign_tables,
    clear_tables as clear_tables,
    lookup_tables as lookup_tables,
    remove_from_tables as remove_from_tables,
    table_sizes as table_sizes,
)
from ._owned import own_records as own_records
from ._prefix_writer import PrefixWriter as PrefixWriter
from ._records import (
    Records as Records,
    Slot as Slot,
    TableStatistics as TableStatistics,
)
from ._registration import (
    register_saved_class,
    register_saver as register_saver,
    restore_of as restore_of,
)
from ._restore import (
    copy_state as copy_state,
    replace_state as replace_state,
)
from ._sampling import sample_records as sample_records
from ._snapshot import Snapshot as Snapshot
from ._stand_in import (
    StandIn as StandIn,
    current_stand_in as current_stand_in,
    reading_from as reading_from,
)
from ._state import (
    TableHeader as TableHeader,
    check_fits as check_fits,
    group_header as group_header,
    group_pending as group_pending,
    header_of as header_of,
)
from ._store import (
    load_from_store as load_from_store,
    read_header as read_header,
    save_to_store as save_to_store,
)
from ._table import Table as Table


register_saved_class(Table)
register_saver(Table, save_tables, restore_tables)
