"""A training that goes on where it was; rank 1 may be killed in it."""

import os
import signal
import sys
from pathlib import Path

import doors
import keras

from embedra.distribute import communicator


EPOCHS = 3


class KillRank1(keras.callbacks.Callback):
    """Kills rank 1 in the second epoch, after the step that is saved."""

    def on_train_batch_end(self, batch, logs=None):
        del logs
        if self.epoch == 1 and batch == 4 and comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_epoch_begin(self, epoch, logs=None):
        del logs
        self.epoch = epoch


if __name__ == "__main__":
    comm = communicator()
    kills = sys.argv[2:] == ["kill"]
    keras.utils.set_random_seed(1)
    model = doors.model_of()
    doors.fit(
        model,
        Path(sys.argv[1]),
        EPOCHS,
        comm.rank,
        comm.size,
        [KillRank1()] if kills else [],
    )
    print(f"rank {comm.rank} passed", flush=True)
