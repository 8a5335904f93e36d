"""Estimators of ranks that have uneven data."""

import pathlib
import sys

import pytest
import uneven_models as models

import embedra.compat.v1 as tf
from embedra.distribute import job_communicator


ranks = job_communicator()
folder = pathlib.Path(sys.argv[1])
rows_of_batches = models.batches(ranks.rank)

for name in models.OPTIMIZERS:
    models.train(folder / name, name, rows_of_batches)

models.train(
    folder / "averages", "adam", rows_of_batches, models.averaging_model_fn
)

# Tensors of an iterator end on all ranks at once, too.
iterated = models.make(folder / "iterated", "sgd")
iterated.train(models.iterated(models.input_fn(rows_of_batches)))

# They begin with what others have learnt: one process, and ranks.
for name, (source, which) in models.WARM_STARTS.items():
    warm = (folder / source, which)
    models.train(folder / f"from_{name}", "adam", rows_of_batches, warm=warm)

# Steps are those of all ranks.
stopped = models.train(folder / "stopped", "sgd", rows_of_batches, max_steps=3)
assert int(stopped.get_variable_value("global_step")) == 3

with pytest.raises(ValueError, match="of all ranks gave no batch"):
    models.train(folder / "none", "sgd", [])

# Loops of one's own, of which all ranks make as many steps.


class Stop(tf.train.SessionRunHook):
    def __init__(self, rank, steps):
        self.left = steps if rank == ranks.rank else -1

    def after_run(self, run_context, run_values):
        del run_values
        self.left -= 1
        if not self.left:
            run_context.request_stop()


where = folder / "session"
stop = Stop(1, 2)
losses = models.train_session(where, rows_of_batches, [stop])
assert len(losses) == 2
assert tf.train.latest_checkpoint(str(where)).endswith("-2")
losses = models.train_session(
    where, rows_of_batches, save_checkpoint_steps=4, save_summaries_steps=1
)
assert len(losses) == 6
assert tf.train.latest_checkpoint(str(where)).endswith("-8")
assert len(list(where.glob("events*"))) == 1, "of rank 0"
with pytest.raises(NotImplementedError, match="`train_and_evaluate`"):
    models.train_session(
        where, rows_of_batches, eval_every_n_iter=1, eval_fn=dict
    )

print("passed")
