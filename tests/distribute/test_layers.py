"""Layers over tables that are split: N ranks equal one."""

import pytest

from distribute.launching import (
    TWO_OR_THREE,
    check_passed,
    needs_mpi,
    run_ranks,
)


@pytest.mark.distributed
@needs_mpi
@pytest.mark.parametrize("count", TWO_OR_THREE)
def test_d02_d04_layers_of_ranks_are_those_of_one(count):
    check_passed(run_ranks(count, "layers.py"), count)


@pytest.mark.distributed
@needs_mpi
@pytest.mark.parametrize("count", TWO_OR_THREE)
def test_variables_and_columns_of_ranks_are_those_of_one(count):
    check_passed(run_ranks(count, "variables.py"), count)
