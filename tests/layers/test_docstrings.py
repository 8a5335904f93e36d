"""The examples in docstrings do what they say."""

import doctest
import importlib
import pkgutil

import pytest

import embedra.checkpoint
import embedra.distribute
import embedra.dynamic_embedding
import embedra.estimator
import embedra.keras
import embedra.layers
import embedra.lookup
import embedra.optimizers
import embedra.table
import embedra.wrapping


_PACKAGES = (
    embedra.checkpoint,
    embedra.distribute,
    embedra.dynamic_embedding,
    embedra.estimator,
    embedra.keras,
    embedra.layers,
    embedra.lookup,
    embedra.optimizers,
    embedra.table,
    embedra.wrapping,
)
_MODULES = [
    f"{package.__name__}.{module.name}"
    for package in _PACKAGES
    for module in pkgutil.iter_modules(package.__path__)
]


@pytest.mark.parametrize("name", _MODULES)
def test_examples(name):
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0
