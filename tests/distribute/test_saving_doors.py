"""Models with tables that ranks hold together, through each door; resuming."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from distribute.launching import (
    check_passed,
    needs_mpi,
    run_ranks,
    written_by_two_ranks,
)
from distribute.ranks import doors
from embedra.checkpoint import CheckpointFolder, SavedTables


pytestmark = [pytest.mark.distributed, needs_mpi]


written_by_two = written_by_two_ranks("doors.py", "write")


def test_s02_one_process_reads_what_two_ranks_saved_by_each_door(
    written_by_two,
):
    for model in doors.check(written_by_two):
        assert doors.table_of(model).size() == len(np.unique(doors.IDS))
    assert not list(written_by_two.glob(".*"))


def test_two_ranks_read_what_one_process_saved_by_each_door(tmp_path):
    doors.write(tmp_path, 0, 1)
    check_passed(run_ranks(2, "doors.py", "read", tmp_path), 2)


def state_in(folder):
    """All tensors of the newest checkpoint, with records in order of keys."""
    saved = SavedTables(str(folder))
    reader = tf.train.load_checkpoint(saved.path)
    names = [
        name
        for name in saved.shapes
        if "/.ATTRIBUTES/" in name and not name.startswith("save_counter")
    ]
    state = {name: reader.get_tensor(name) for name in names}
    for name, table in saved.tables.items():
        columns = {
            column: np.concatenate(
                [reader.get_tensor(chunk[column]) for chunk in table.chunks]
            )
            for column in table.chunks[0]
        }
        order = np.argsort(columns["keys"])
        for column, values in columns.items():
            state[f"{name}/{column}"] = values[order]
        state[f"{name}/header"] = table.header.to_json()
    return state


@pytest.mark.slow
def test_d06_a_killed_rank_and_a_new_start_equal_an_unbroken_run(
    tmp_path, pytestconfig
):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    check_passed(run_ranks(2, "resuming.py", whole), 2)
    killed = run_ranks(2, "resuming.py", broken, "kill")
    assert killed.returncode != 0
    counts = {"one": 1, "three": 3}
    if not pytestconfig.getoption("more_ranks"):
        del counts["three"]
    for copy in counts:
        shutil.copytree(broken, tmp_path / copy)
    check_passed(run_ranks(2, "resuming.py", broken), 2)
    expected = state_in(whole)
    found = state_in(broken)
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)

    # With other numbers of ranks it goes on as well.
    keras.utils.set_random_seed(1)
    doors.fit(doors.model_of(), tmp_path / "one", 3, 0, 1)
    if "three" in counts:
        check_passed(run_ranks(3, "resuming.py", tmp_path / "three"), 3)
    for copy in counts:
        state = state_in(CheckpointFolder(tmp_path / copy).directory)
        assert state["epoch/.ATTRIBUTES/VARIABLE_VALUE"] == 3
        np.testing.assert_array_equal(
            state["users/keys"], expected["users/keys"]
        )
        assert np.isfinite(state["users/rows"]).all()
