"""What importing the package checks."""

import pytest

from embedra._checks import check_keras_backend


def test_another_keras_backend_is_refused_with_the_remedy():
    with pytest.raises(ImportError, match="'jax'.*KERAS_BACKEND=tensorflow"):
        check_keras_backend("jax")


def test_the_tensorflow_backend_is_accepted():
    check_keras_backend("tensorflow")
