"""What Keras models of a job do besides training."""

import numpy as np
import pytest
import tensorflow as tf

from distribute.launching import needs_mpi, written_by_two_ranks
from distribute.ranks import keras_job


pytestmark = [pytest.mark.distributed, needs_mpi]


written_by_two = written_by_two_ranks("keras_job.py")


@pytest.mark.parametrize("name", keras_job.FILES)
def test_one_process_reads_what_ranks_saved(written_by_two, name):
    model, expected = keras_job.read(written_by_two, name)
    found = model.predict(keras_job.IDS, verbose=0)
    np.testing.assert_allclose(found, expected, 1e-5)
    assert model.get_layer("ids").size() == len(np.unique(keras_job.IDS))


@pytest.mark.parametrize("name", keras_job.EXPORTS)
def test_one_process_serves_what_ranks_saved(written_by_two, name):
    served = tf.saved_model.load(str(written_by_two / name))
    expected = np.load((written_by_two / name).parent / "predictions.npy")
    np.testing.assert_allclose(served.serve(keras_job.IDS), expected, 1e-5)
