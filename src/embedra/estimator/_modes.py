"""ModeKeys: what a model function is asked to build."""

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from embedra.scopes import scope


class ModeKeys:
    """Names of the modes.

    Attributes:
        TRAIN: Training.
        EVAL: Evaluation.
        PREDICT: Prediction, also in an exported model.
    """

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


@contextlib.contextmanager
def building(mode: str, seed: int | None) -> Iterator[None]:
    """What a graph is built under.

    In all modes but TRAIN lookups only read.

    Args:
        mode: One of `ModeKeys`.
        seed: Seed of variables and of initial rows of tables, or None.

    Yields:
        Nothing; the graph that is current is to be built within.
    """
    options = {}
    if seed is not None:
        tf.compat.v1.set_random_seed(seed)
        options["seed"] = seed
    with scope(mode=mode, **options):
        yield
