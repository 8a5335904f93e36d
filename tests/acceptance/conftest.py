"""Settings shared by the acceptance tests."""

import keras
import pytest


@pytest.fixture(autouse=True)
def seeded():
    """Starts every test from the same random state."""
    keras.utils.set_random_seed(20)
