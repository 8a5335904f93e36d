"""Native ops: loading, one typed function for each op, gradients."""

from . import _communication_gradients as _communication_gradients
from ._communication_ops import (
    MpiPlace as MpiPlace,
    all_gather_v as all_gather_v,
    all_reduce as all_reduce,
    all_to_all_v as all_to_all_v,
    barrier as barrier,
    broadcast as broadcast,
    mpi_abort as mpi_abort,
    mpi_communicator as mpi_communicator,
    mpi_end as mpi_end,
    mpi_place as mpi_place,
    mpi_start as mpi_start,
    route_keys as route_keys,
)
from ._edit_ops import (
    table_accumulate as table_accumulate,
    table_assign as table_assign,
    table_clear as table_clear,
    table_remove as table_remove,
    table_reserve as table_reserve,
    table_size as table_size,
)
from ._gradients import shape_of_slices as shape_of_slices
from ._graph_order import captured as captured, chain as chain
from ._handle_ops import (
    anonymous_table as anonymous_table,
    table as table,
    table_close as table_close,
)
from ._hash_ops import PerfectHash as PerfectHash, perfect_hash as perfect_hash
from ._library import BuildInfo as BuildInfo, build_info as build_info
from ._lookup_ops import (
    TableLookup as TableLookup,
    TablePooledLookup as TablePooledLookup,
    table_lookup as table_lookup,
    table_missing as table_missing,
    table_pooled_gradient as table_pooled_gradient,
    table_pooled_lookup as table_pooled_lookup,
)
from ._record_ops import (
    table_read_records as table_read_records,
    table_write_records as table_write_records,
)
from ._restrict_ops import (
    table_count_uses as table_count_uses,
    table_restrict as table_restrict,
    table_uses as table_uses,
)
from ._state_ops import (
    TableExport as TableExport,
    table_export as table_export,
    table_import as table_import,
    table_initializer as table_initializer,
    table_keys as table_keys,
    table_set_initializer as table_set_initializer,
    table_set_slots as table_set_slots,
    table_set_step as table_set_step,
    table_slots as table_slots,
    table_statistics as table_statistics,
    table_step as table_step,
)
from ._update_ops import (
    table_accumulate_gradients as table_accumulate_gradients,
    table_deduplicate as table_deduplicate,
    table_take_gradients as table_take_gradients,
    table_update as table_update,
)
