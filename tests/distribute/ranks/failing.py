"""Ranks of which the last one fails, in the way that the argument says."""

import os
import signal
import sys
import time

import tensorflow as tf

from embedra.distribute import communicator


way = sys.argv[1]
comm = communicator(
    warn_after=1.0 if way == "leaves" else 60.0,
    timeout=4.0 if way == "stops" else 0.0,
)
last = comm.rank == comm.size - 1
tf.function(lambda: comm.all_reduce(tf.ones([2]), label="weights"))()

if way == "raises" and last:
    msg = "the loss is not a number"
    raise ArithmeticError(msg)
if way == "is killed" and last:
    os.kill(os.getpid(), signal.SIGKILL)
if way == "stops" and last:
    os.kill(os.getpid(), signal.SIGSTOP)
if way == "leaves":
    if last:
        time.sleep(4)
    comm.barrier(label="epoch")
    if last:
        sys.exit(0)
comm.all_reduce(tf.ones([2]), label="gradients")
print("went on", flush=True)
