"""A rank that fails ends the job, with a message that names it."""

import pytest

from distribute.launching import needs_mpi, run_ranks


pytestmark = [pytest.mark.distributed, needs_mpi]


def run(way):
    result = run_ranks(2, "failing.py", way)
    assert result.returncode != 0
    assert "went on" not in result.stdout
    return result.stderr


def test_exception_of_a_rank_ends_the_job():
    errors = run("raises")
    assert "ArithmeticError: the loss is not a number" in errors
    assert "rank 1 ended with the exception above" in errors


def test_killed_rank_ends_the_job():
    assert "signal 9" in run("is killed").lower()


def test_late_rank_is_named_and_one_that_left_ends_the_job():
    errors = run("leaves")
    assert (
        "in collective 2, barrier 'epoch': rank 1 has last finished "
        "collective 1, all_reduce 'weights'."
    ) in errors
    assert (
        "in collective 3, all_reduce 'gradients': rank 1 has ended. The job "
        "is aborted."
    ) in errors


def test_stopped_rank_ends_the_job_after_the_timeout():
    errors = run("stops")
    assert "all_reduce 'gradients': rank 1 does not answer. That is" in errors
