"""Training with several processes: what ranks exchange, and how."""

from ._agreement import (
    RankError as RankError,
    gather_bytes as gather_bytes,
    gather_values as gather_values,
    known_to_all as known_to_all,
    together as together,
)
from ._communicator import Communicator as Communicator
from ._current import (
    communicator as communicator,
    job_communicator as job_communicator,
    table_communicator as table_communicator,
)
from ._gradients import (
    reduce_gradients as reduce_gradients,
    times_share as times_share,
)
from ._graph_ranks import (
    graph_communicator as graph_communicator,
    is_cluster_alone as is_cluster_alone,
)
from ._graph_share import (
    default_share as default_share,
    graph_share as graph_share,
    set_graph_share as set_graph_share,
)
from ._mpi import MpiCommunicator as MpiCommunicator
from ._one_writer import one_writer as one_writer
from ._ownership import owned as owned
from ._rank_batches import (
    RankBatch as RankBatch,
    empty_batch as empty_batch,
    is_none_spec as is_none_spec,
    lasting_batches as lasting_batches,
    rows_of_batch as rows_of_batch,
)
from ._sharded_lookup import (
    ShardedRead as ShardedRead,
    batch_share as batch_share,
    send_to_owners as send_to_owners,
    sharded_reads as sharded_reads,
    sharded_rows as sharded_rows,
)
from ._single import SingleCommunicator as SingleCommunicator
from ._strategies import check_strategy as check_strategy
from ._tensorflow import TensorFlowCommunicator as TensorFlowCommunicator
