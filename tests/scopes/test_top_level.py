"""Names of the package itself."""

import subprocess
import sys

import pytest

import embedra


@pytest.mark.parametrize(
    "name", ["data", "dynamic_embedding", "metrics", "saved_model", "train"]
)
def test_packages_are_imported_when_asked_for(name):
    found = getattr(embedra, name)
    assert found is sys.modules[f"embedra.{name}"]
    assert name in dir(embedra)


@pytest.mark.parametrize(
    "name", ["dense_features", "get_embedding_variable", "get_session_config"]
)
def test_names_of_such_packages_are_here_too(name):
    assert callable(getattr(embedra, name))
    assert name in dir(embedra)


@pytest.mark.parametrize(
    "name",
    ["enable_optimization", "disable_optimization", "embedding", "pipeline"],
)
def test_names_that_are_gone_say_what_to_use(name):
    with pytest.raises(AttributeError, match=f"{name}.*hybridbackend.md"):
        getattr(embedra, name)
    assert name not in dir(embedra)


def test_unknown_name_is_an_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = embedra.nonsense


def test_import_leaves_heavy_packages_out():
    code = (
        "import sys, embedra; print([n for n in ('tf_keras', "
        "'embedra.dynamic_embedding', 'embedra.train', 'embedra.metrics') "
        "if n in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
