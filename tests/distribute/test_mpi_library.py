"""Finding and loading libmpi, in processes of one rank."""

import os
import shutil
import subprocess
import sys

import pytest

from distribute.launching import environment, needs_mpi


pytestmark = pytest.mark.multiprocess

CODE = """
from embedra.distribute import communicator
print(communicator("mpi").all_reduce([1.0, 2.0]).numpy().tolist())
"""


def run(code=CODE, **variables):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**environment(), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_missing_library_is_an_error_that_says_what_to_install():
    result = run(EMBEDRA_MPI_LIBRARY="/nowhere/libmpi.so.40")
    assert result.returncode == 1
    assert "'/nowhere/libmpi.so.40' could not be loaded" in result.stderr
    assert "pip install embedra[mpi]" in result.stderr


def test_library_of_another_kind_is_refused(tmp_path):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler to make an MPI of another kind")
    names = (
        "Initialized Finalized Init_thread Query_thread Finalize Abort "
        "Comm_dup Comm_rank Comm_size Comm_split_type Comm_free "
        "Comm_set_errhandler Error_string Type_contiguous Type_commit "
        "Type_free Send Recv Iprobe Ibarrier Test Bcast Allgather Allgatherv "
        "Alltoall Alltoallv Allreduce"
    )
    source = tmp_path / "mpi.c"
    source.write_text(
        "#include <string.h>\n"
        + "".join(
            f"int MPI_{name}(void) {{ return 0; }}\n" for name in names.split()
        )
        + "int MPI_Get_library_version(char* text, int* length) {\n"
        '  strcpy(text, "MPICH Version: 4.2"); *length = 18; return 0; }\n'
    )
    library = tmp_path / "libmpi.so.12"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", library, source], check=True
    )
    result = run(EMBEDRA_MPI_LIBRARY=os.fspath(library))
    assert result.returncode == 1
    assert "kind that is not supported: MPICH Version: 4.2" in result.stderr


@needs_mpi
def test_mpi_starts_without_a_launcher():
    result = run()
    assert result.stdout == "[1.0, 2.0]\n", result.stderr


@needs_mpi
def test_programs_of_tf1_start_and_end_it_too():
    result = run("""
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
from embedra.distribute import communicator
comm = communicator("mpi")
x = tf.placeholder(tf.float32, [2])
total = comm.all_reduce(x * 2.0)
(gradient,) = tf.gradients(total, x)
done = comm.barrier()
with tf.Session() as session:
    print(session.run([total, gradient, done], {x: [1.0, 2.0]}))
""")
    assert result.returncode == 0, result.stderr
    assert "[2., 4.]" in result.stdout
    assert "[2., 2.]" in result.stdout


@needs_mpi
def test_mpi4py_may_have_started_mpi():
    result = run("from mpi4py import MPI" + CODE + "print(MPI.COMM_WORLD.size)")
    assert result.stdout == "[1.0, 2.0]\n1\n", result.stderr
