"""Collectives: values, gradients, order and errors."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from distribute.launching import (
    RANKS,
    TIMEOUT,
    TWO_OR_THREE,
    check_passed,
    environment,
    mpirun,
    needs_mpi,
    run_embedra,
    run_ranks,
)


pytestmark = pytest.mark.distributed
NAMESPACES = ["unshare", "--map-root-user", "--net", "--mount", "--uts"]


@needs_mpi
@pytest.mark.parametrize("count", TWO_OR_THREE)
def test_collectives_over_mpi(count):
    check_passed(run_ranks(count, "collectives.py"), count)


@needs_mpi
@pytest.mark.more_ranks
def test_collectives_on_more_ranks_than_cores():
    check_passed(run_ranks(4, "collectives.py"), 4)


@pytest.mark.parametrize("count", TWO_OR_THREE)
def test_collectives_of_tensorflow(count):
    check_passed(
        run_embedra("-n", count, "--engine", "tf", RANKS / "collectives.py"),
        count,
    )


@needs_mpi
def test_collectives_between_two_networks():
    """Over TCP: each rank sees a network, and a machine's name, of its own."""
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("needs the programs ip and unshare")
    probe = subprocess.run(
        [*NAMESPACES, "sh", "-c", "mount -t tmpfs none /run && ip netns add a"],
        check=False,
        capture_output=True,
        text=True,
    )
    if probe.returncode != 0:
        pytest.skip(f"networks cannot be made here: {probe.stderr}")
    result = subprocess.run(
        [
            *[
                *NAMESPACES,
                "sh",
                str(Path(__file__).parent / "two_networks.sh"),
            ],
            *[mpirun(), sys.executable, str(RANKS / "collectives.py")],
            "apart",
        ],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    check_passed(result, 2)
