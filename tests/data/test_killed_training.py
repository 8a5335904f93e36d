"""`fit` on Parquet files, killed within epochs: each row counts once."""

import signal
import subprocess
import sys

import numpy as np
import pytest

import reading_training


# Keras says so where a training goes on at the very end of an epoch.
@pytest.mark.filterwarnings("ignore:.*ran out of data:UserWarning")
@pytest.mark.multiprocess
def test_killed_trainings_use_each_row_once_in_each_epoch(write, tmp_path):
    rows = np.arange(reading_training.ROWS)
    path = write(group=20, id=rows, label=np.full(len(rows), -1e6, np.float32))
    folder = tmp_path / "state"
    # In the first of three epochs, and at the end of the second.
    for steps in (6, 2 * reading_training.STEPS - 1):
        program = [sys.executable, reading_training.__file__]
        died = subprocess.run(
            [*program, str(steps), path, str(folder)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert died.returncode == -signal.SIGKILL, died.stderr
    for pipeline in reading_training.PIPELINES:
        uses = reading_training.train(pipeline, path, folder)
        np.testing.assert_array_equal(
            uses, reading_training.EPOCHS, err_msg=pipeline
        )
