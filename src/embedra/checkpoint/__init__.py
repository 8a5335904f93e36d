"""Checkpoints in folders: kept by number, safe from crashes, read by name."""

from ._finding import find as find, find_together as find_together
from ._folder import CheckpointFolder as CheckpointFolder
from ._incremental import IncrementalCheckpoints as IncrementalCheckpoints
from ._loading import (
    LoadReport as LoadReport,
    MismatchError as MismatchError,
    load as load,
)
from ._loading_by_name import load_by_name as load_by_name
from ._named_header import (
    FIELDS as FIELDS,
    SavedShape as SavedShape,
    to_header as to_header,
)
from ._read_table import read_table as read_table
from ._saved_objects import (
    SavedObjects as SavedObjects,
    has_objects as has_objects,
)
from ._saved_tables import (
    SavedTable as SavedTable,
    SavedTables as SavedTables,
    slot_columns as slot_columns,
)
from ._saves import ChainError as ChainError
from ._saving import (
    improves as improves,
    is_due as is_due,
    save_after_step as save_after_step,
)
from ._stopping import (
    StopRequest as StopRequest,
    TrainingStopped as TrainingStopped,
)
from ._variable_names import (
    VARIABLE_NAMES as VARIABLE_NAMES,
    VariableNames as VariableNames,
)
