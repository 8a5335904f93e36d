"""Ranks of which one is killed, a few times, and that go on from a checkpoint.

Arguments: a folder, and how often to kill. Each attempt leaves a file there.
"""

import os
import pathlib
import random
import signal
import sys
import threading

import tensorflow as tf

from embedra.distribute import communicator


STEPS_BETWEEN_SAVES = 2
STEPS_PER_KILL = 4

folder, kills = pathlib.Path(sys.argv[1]), int(sys.argv[2])
comm = communicator()
attempt = int(comm.broadcast(len(list(folder.glob("attempt *")))))
comm.barrier(label="counted")
rng = random.Random(attempt)
victim = rng.randrange(comm.size)
if comm.rank == 0:
    (folder / f"attempt {attempt}").write_text(str(victim))

total = tf.Variable(0.0)
step = tf.Variable(0, dtype=tf.int64)
manager = tf.train.CheckpointManager(
    tf.train.Checkpoint(total=total, step=step), folder / "model", max_to_keep=2
)
manager.restore_or_initialize()
# Within STEPS_PER_KILL of here, so that each attempt comes to it.
last = int(step) + rng.randrange(1, STEPS_PER_KILL + 1)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@tf.function
def train():
    step.assign_add(1)
    own = tf.cast(step, tf.float32) * (comm.rank + 1)
    total.assign_add(comm.all_reduce(own, label="own"))


while step < STEPS_PER_KILL * (kills + 1) or attempt < kills:
    if comm.rank == victim and step == last and attempt < kills:
        # While a step runs, or a checkpoint is written, or between.
        threading.Timer(rng.uniform(0.0, 0.02), die).start()
    train()
    if step % STEPS_BETWEEN_SAVES == 0:
        if comm.rank == 0:
            manager.save(int(step))
        comm.barrier(label="saved")
steps = int(step)
expected = comm.size * (comm.size + 1) / 2 * steps * (steps + 1) / 2
assert float(total) == expected, (float(total), expected)
print("passed", flush=True)
