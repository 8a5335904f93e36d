"""Incremental checkpoints that ranks write and read together."""

import os
import shutil

import pytest
import tensorflow as tf

from distribute.launching import (
    TWO_OR_THREE,
    check_passed,
    needs_mpi,
    run_ranks,
    written_by_two_ranks,
)
from distribute.ranks import incremental
from embedra.distribute import communicator


pytestmark = [pytest.mark.distributed, needs_mpi]


written_by_two = written_by_two_ranks("incremental.py", "write")


def test_c10_one_process_goes_on_from_deltas_of_two_ranks(
    written_by_two, tmp_path
):
    folder = tmp_path / "saves"
    shutil.copytree(written_by_two, folder)
    name = incremental.go_on(folder, communicator(), 4)
    assert os.path.basename(name) == "delta-5"
    again = incremental.Job(folder)
    assert again.saves.restore() == 5
    incremental.check_state(again.state(), 5, communicator())


def test_c10_deltas_of_ranks_hold_what_changed(written_by_two):
    reader = tf.train.load_checkpoint(str(written_by_two / "delta-2"))
    tensors = {
        name.rsplit("/", 1)[-1]: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if name.startswith("table/")
    }
    keys = [
        key
        for name, chunk in tensors.items()
        if name.startswith("keys_")
        for key in chunk.tolist()
    ]
    assert sorted(keys) == [1010, *range(2000, 2010)]
    assert sorted(tensors["removed_keys"]) == list(range(2010, 2020))


@pytest.mark.parametrize("count", TWO_OR_THREE)
def test_c10_ranks_go_on_from_deltas_of_one_process(
    written_by_two, tmp_path, count
):
    folder = tmp_path / "saves"
    shutil.copytree(written_by_two, folder)
    incremental.go_on(folder, communicator(), 4)
    check_passed(run_ranks(count, "incremental.py", "go on", folder, 5), count)
