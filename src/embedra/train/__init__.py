"""Training in TF1 graphs: sessions, hooks, savers and optimizers.

They have the names of HybridBackend's `train`;
docs/migrate-from-hybridbackend.md lists all of them.
"""

from . import _gone
from ._checkpoint_source import (
    RESTORE_ERRORS as RESTORE_ERRORS,
    CheckpointSource as CheckpointSource,
    explained as explained,
)
from ._evaluation_hook import EvaluationHook as EvaluationHook
from ._evaluation_spec import EvaluationSpec as EvaluationSpec
from ._export import export as export, export_all as export_all
from ._optimizers import (
    AdadeltaOptimizer as AdadeltaOptimizer,
    AdagradDAOptimizer as AdagradDAOptimizer,
    AdagradOptimizer as AdagradOptimizer,
    AdamOptimizer as AdamOptimizer,
    FtrlOptimizer as FtrlOptimizer,
    GradientDescentOptimizer as GradientDescentOptimizer,
    MomentumOptimizer as MomentumOptimizer,
    ProximalAdagradOptimizer as ProximalAdagradOptimizer,
    ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer,
    RMSPropOptimizer as RMSPropOptimizer,
)
from ._policy import Policy as Policy
from ._rank_hooks import (
    FirstWeightsHook as FirstWeightsHook,
    RankSaverHook as RankSaverHook,
    save_by_all as save_by_all,
)
from ._run_folder import (
    check_whole as check_whole,
    latest_whole as latest_whole,
    reading as reading,
    remove_leftovers as remove_leftovers,
)
from ._saved_states import (
    SavedState as SavedState,
    saved_states as saved_states,
)
from ._saver import (
    Saver as Saver,
    replace_default_saver as replace_default_saver,
)
from ._server import (
    Server as Server,
    target as target,
    wraps_server as wraps_server,
)
from ._session import monitored_session as monitored_session
from ._session_config import (
    get_session_config as get_session_config,
    wraps_session_config as wraps_session_config,
)
from ._slots_hook import TableSlotsHook as TableSlotsHook
from ._step_stat_hook import (
    StepStatHook as StepStatHook,
    StepStatistics as StepStatistics,
)
from ._summaries import (
    is_number as is_number,
    write_summary as write_summary,
)


# For names of HybridBackend's that are not here.
__getattr__ = _gone.missing
