"""What Keras models of a job do besides training."""

import numpy as np
import pytest

from distribute.launching import check_passed, needs_mpi, run_ranks
from distribute.ranks import keras_job


pytestmark = [pytest.mark.distributed, needs_mpi]


@pytest.fixture(scope="module")
def written_by_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    check_passed(run_ranks(2, "keras_job.py", folder), 2)
    return folder


@pytest.mark.parametrize("name", keras_job.CALLBACK_FILES)
def test_one_process_reads_what_callbacks_of_ranks_saved(written_by_two, name):
    model, expected = keras_job.read_callback_file(written_by_two, name)
    found = model.predict(keras_job.IDS, verbose=0)
    np.testing.assert_allclose(found, expected, 1e-5)
    assert model.get_layer("ids").size() == len(np.unique(keras_job.IDS))
