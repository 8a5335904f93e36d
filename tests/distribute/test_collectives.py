"""Collectives over MPI: values, gradients, order and errors."""

import pytest

from distribute.launching import check_passed, needs_mpi, run_ranks


pytestmark = [pytest.mark.distributed, needs_mpi]


@pytest.mark.parametrize("count", [2, 3])
def test_collectives(count):
    check_passed(run_ranks(count, "collectives.py"), count)
