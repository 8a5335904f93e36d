"""Ranks that make different calls of the same shapes learn of it by labels."""

import pytest

from distribute.launching import (
    RANKS,
    check_passed,
    needs_mpi,
    run_embedra,
    run_ranks,
)


pytestmark = pytest.mark.distributed


@needs_mpi
def test_ranks_that_look_up_in_opposite_order_fail_over_mpi():
    check_passed(run_ranks(2, "labels.py"), 2)


def test_ranks_that_look_up_in_opposite_order_fail_over_tensorflow():
    check_passed(run_embedra("-n", 2, "--engine", "tf", RANKS / "labels.py"), 2)
