"""Trainings that are killed while they save."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

import forked_training
from embedra.checkpoint import CheckpointFolder


@pytest.fixture
def forking():
    """A process that starts trainings, much faster than a new one would."""
    with subprocess.Popen(
        [sys.executable, forked_training.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    ) as process:
        yield process
        process.stdin.close()


def next_of(process, word):
    """Reads up to the next line that begins with a word; its number."""
    for line in process.stdout:
        first, *rest = line.split()
        if first == word:
            return int(rest[0]) if rest else None
    msg = f"The process ended before it said {word!r}."
    raise AssertionError(msg)


def train_and_kill(process, folder, saved, generator):
    """Kills a training at a random point of a step or of what it saves.

    Args:
        process: What starts trainings.
        folder: Where to save.
        saved: Steps that were saved before: they are only passed over.
        generator: Of random numbers.

    Returns:
        Steps that the training said it had done.
    """
    process.stdin.write(f"{folder}\n")
    process.stdin.flush()
    number = next_of(process, "process")
    try:
        done = 0
        while done <= saved:
            done = next_of(process, "step")
        begun = time.monotonic()
        for _ in range(generator.integers(1, 4)):
            done, before = next_of(process, "step"), begun
            begun = time.monotonic()
        # What lies between two steps is saving, for the most part.
        time.sleep((begun - before) * generator.random())
    finally:
        os.kill(number, signal.SIGKILL)
    for line in iter(process.stdout.readline, "ended\n"):
        done = int(line.split()[1])
    return done


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.multiprocess
def test_c08_kills_leave_a_state_that_loads_and_no_leftovers(
    forking, tmp_path, pytestconfig
):
    generator = np.random.default_rng(20240607)
    unfinished = steps = 0
    kills = pytestconfig.getoption("--kills")
    for _ in range(kills):
        done = train_and_kill(forking, tmp_path, steps, generator)
        before = names(tmp_path)
        folder = CheckpointFolder(tmp_path)
        left = names(tmp_path)
        unfinished += before != left
        known = [os.path.basename(path) for path in folder.paths]
        assert {name.split(".")[0] for name in left} == {*known, "checkpoint"}
        assert not any(n.endswith((".partial", ".tmp")) for n in left), left
        steps = tf.train.load_variable(
            folder.latest, "step/.ATTRIBUTES/VARIABLE_VALUE"
        )
        # The step that it said last may not have been saved.
        assert done - 1 <= steps <= done
        model = forked_training.model()
        model.fit(
            forked_training.data(), epochs=0, verbose=0, checkpoint_dir=tmp_path
        )
        assert int(model.get_layer("rows").table.size()) == steps
        assert int(model.optimizer.iterations) == steps
    assert kills < 20 or unfinished, "No kill came while it saved."
