"""Estimators of ranks that have uneven data."""

import pathlib
import sys

import pytest
import uneven_models as models

from embedra.distribute import job_communicator


ranks = job_communicator()
folder = pathlib.Path(sys.argv[1])
rows_of_batches = models.batches(ranks.rank)

for name in models.OPTIMIZERS:
    models.train(folder / name, name, rows_of_batches)

models.train(
    folder / "averages", "adam", rows_of_batches, models.averaging_model_fn
)

# They begin with what others have learnt: one process, and ranks.
for name, (source, which) in models.WARM_STARTS.items():
    warm = (folder / source, which)
    models.train(folder / f"from_{name}", "adam", rows_of_batches, warm=warm)

# Steps are those of all ranks.
stopped = models.train(folder / "stopped", "sgd", rows_of_batches, max_steps=3)
assert int(stopped.get_variable_value("global_step")) == 3

with pytest.raises(ValueError, match="of all ranks gave no batch"):
    models.train(folder / "none", "sgd", [])

print("passed")
