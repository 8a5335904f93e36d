"""Checkpoints in folders: kept by number, safe from crashes, read by name."""

from ._folder import CheckpointFolder as CheckpointFolder, find as find
from ._loading import (
    LoadReport as LoadReport,
    MismatchError as MismatchError,
    load as load,
)
from ._saved_objects import SavedObjects as SavedObjects
from ._saving import (
    improves as improves,
    is_due as is_due,
    save_after_step as save_after_step,
)
from ._stopping import (
    StopRequest as StopRequest,
    TrainingStopped as TrainingStopped,
)
