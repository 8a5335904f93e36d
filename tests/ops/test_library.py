"""Loading of the op library."""

import subprocess
import sys

import pytest

from embedra import _ops
from embedra._ops import _library


def test_another_minor_version_of_tensorflow_is_refused_in_one_line():
    with pytest.raises(ImportError) as error:
        _library.check_tensorflow(found="2.16.2", built_for="2.21.0")
    message = str(error.value)
    assert message == (
        "Embedra was built for TensorFlow 2.21; found 2.16.2. Install "
        "TensorFlow 2.21, or rebuild Embedra with `pip install .`."
    )


@pytest.mark.parametrize("found", ["2.21.0", "2.21.3", "2.21.0-rc1"])
def test_any_patch_of_the_same_minor_version_will_do(found):
    _library.check_tensorflow(found=found, built_for="2.21.0")


def test_build_info_says_what_was_built_and_what_runs():
    info = _ops.build_info()
    assert info.tensorflow_version.startswith("2.21")
    assert info.compiler
    assert info.flags
    assert info.kernel_set in {"baseline", "avx2", "avx512"}


@pytest.mark.multiprocess
def test_a_mismatch_is_found_before_the_library_is_loaded():
    code = "import tensorflow as tf; tf.__version__ = '2.16.2'; import embedra"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    last_line = ran.stderr.strip().splitlines()[-1]
    assert last_line.startswith(
        "ImportError: Embedra was built for TensorFlow 2.21; found 2.16.2."
    )
