"""Incremental checkpoints of tables that ranks hold together."""

import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra.checkpoint import IncrementalCheckpoints
from embedra.distribute import RankError, communicator, job_communicator
from embedra.table import Table


# More than a chunk on each of three ranks.
KEYS = np.arange(210_000)


class Job:
    """A split table, a split variable and a dense one, and their saves."""

    def __init__(self, folder):
        ranks = job_communicator()
        self.table = Table(1, name="t", seed=1, communicator=ranks)
        self.variable = de.Variable(dim=2, name="v", initializer=0.0)
        self.dense = tf.Variable(0)
        self.saves = IncrementalCheckpoints(
            tf.train.Checkpoint(
                table=self.table, variable=self.variable, dense=self.dense
            ),
            folder,
        )

    def begin(self):
        self.table.assign(KEYS, KEYS[:, None])
        self.upsert(range(10), 1)

    def change(self, step):
        """Changes ten rows, removes ten, and brings back one."""
        first = 1000 * step
        self.table.assign(range(first, first + 10), np.full((10, 1), -step))
        self.table.remove(range(first + 10, first + 20))
        self.table.assign([first - 990], [[step]])
        self.upsert([step], step)
        self.variable.remove(tf.constant([step + 4], tf.int64))
        self.dense.assign(step)

    def upsert(self, keys, value):
        keys = tf.constant(list(keys), tf.int64)
        values = tf.fill((len(keys), 2), float(value))
        self.variable.upsert(keys, values)

    def state(self):
        """Rows of this rank by key."""
        chunks = list(self.table.export_chunks())
        keys, values = self.variable.export()
        rows = {}
        for chunk in chunks:
            rows |= dict(
                zip(chunk.keys.tolist(), chunk.rows[:, 0], strict=True)
            )
        others = dict(
            zip(keys.numpy().tolist(), values.numpy()[:, 0], strict=True)
        )
        return {"t": rows, "v": others, "dense": int(self.dense)}


def expected(step):
    """Rows of all ranks after a step, by plain Python."""
    rows = dict(zip(KEYS.tolist(), KEYS.tolist(), strict=True))
    others = dict.fromkeys(range(10), 1)
    for now in range(2, step + 1):
        first = 1000 * now
        rows |= dict.fromkeys(range(first, first + 10), -now)
        for key in range(first + 10, first + 20):
            del rows[key]
        rows[first - 990] = now
        others[now] = now
        others.pop(now + 4, None)
    return {"t": rows, "v": others, "dense": step if step > 1 else 0}


def check_state(found, step, comm):
    """Whether this rank has those rows that are its own."""
    whole = expected(step)
    assert found["dense"] == whole["dense"]
    for name in ("t", "v"):
        sizes = len(found[name])
        total = int(comm.all_reduce(tf.constant(sizes)))
        assert total == len(whole[name]), (name, total, len(whole[name]))
        assert found[name].items() <= whole[name].items(), name


def write(folder, comm):
    """Saves in full, then two deltas; another object goes on with a third."""
    job = Job(folder)
    with pytest.raises(
        RankError, match="ValueError: Step 1 cannot be saved as"
    ):
        job.saves.save(1, full=False)
    assert job.saves.restore() is None
    job.begin()
    names = [job.saves.save(1)]
    for step in (2, 3):
        job.change(step)
        names.append(job.saves.save(step))
    with pytest.raises(RankError, match="Step 3 must be later than"):
        job.saves.save(3)
    check_state(job.state(), 3, comm)
    check_failure(job, folder, comm)
    names.append(go_on(folder, comm, 3))
    found = [Path(name).name for name in names]
    assert found == ["full-1", "delta-2", "delta-3", "delta-4"], found


def check_failure(job, folder, comm):
    """What fails on one rank leaves nothing; the next delta has it all."""
    files = sorted(path.name for path in folder.iterdir())
    counter = int(job.saves._checkpoint.save_counter)
    with pytest.MonkeyPatch.context() as patch:
        if comm.rank == 1:
            patch.setattr("embedra.checkpoint._incremental.write_save", _fail)
        with pytest.raises(RankError, match="Rank 1 .*OSError: the disk is"):
            job.saves.save(4)
    # Rank 0 removes what was written, and may still be at it.
    comm.barrier(label="failed save")
    assert sorted(path.name for path in folder.iterdir()) == files
    assert int(job.saves._checkpoint.save_counter) == counter


def _fail(*_):
    msg = "the disk is full"
    raise OSError(msg)


def go_on(folder, comm, step):
    """Restores what was saved at a step, and saves the next one as a delta."""
    job = Job(folder)
    job.table.assign([-1, -2], [[1.0], [2.0]])
    assert job.saves.restore() == step
    check_state(job.state(), step, comm)
    job.change(step + 1)
    return job.saves.save(step + 1)


if __name__ == "__main__":
    comm = communicator()
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), comm)
    else:
        name = go_on(sys.argv[2], comm, int(sys.argv[3]))
        assert Path(name).name == f"delta-{int(sys.argv[3]) + 1}"
    print("passed", flush=True)
