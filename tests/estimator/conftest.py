"""Estimators that tests share, where they only read."""

import keras
import pytest

from . import small


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """An estimator that has been trained for five steps."""
    keras.utils.set_random_seed(7)
    estimator = small.make(tmp_path_factory.mktemp("trained"))
    return estimator.train(small.input_fn(5))
