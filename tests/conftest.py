"""Fixtures of all tests."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from absl import logging as absl_logging


def pytest_addoption(parser):
    """Options of pytest that are ours."""
    parser.addoption(
        "--kills",
        type=int,
        default=5,
        help="how often to kill a training in tests that do so (default: 5)",
    )
    parser.addoption(
        "--megabytes",
        type=int,
        default=38,
        help="of files to read where memory is measured (default: 38)",
    )
    parser.addoption(
        "--more-ranks",
        action="store_true",
        help="also start jobs of three and four ranks",
    )


def pytest_collection_modifyitems(config, items):
    """Leaves out what takes more ranks than most machines have cores."""
    if config.getoption("more_ranks"):
        return
    left_out = pytest.mark.skip(reason="runs with --more-ranks")
    for item in items:
        if item.get_closest_marker("more_ranks"):
            item.add_marker(left_out)


@pytest.fixture(autouse=True)
def _seeded():
    """Makes every test start from the same random state."""
    keras.utils.set_random_seed(20240607)


@pytest.fixture(autouse=True)
def _same_loggers():
    """Sets levels of logging back, which commands raise for their process."""
    level, verbosity = tf.get_logger().level, absl_logging.get_verbosity()
    yield
    tf.get_logger().setLevel(level)
    absl_logging.set_verbosity(verbosity)


@pytest.fixture
def rng():
    """A seeded NumPy generator."""
    return np.random.default_rng(20240607)


@pytest.fixture(scope="session")
def shared_data():
    """The folder of small extracts of public data sets, never committed."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the public extracts in {folder}")
    return folder
