"""Names of the package itself."""

import subprocess
import sys

import pytest

import embedra


@pytest.mark.parametrize(
    "name", ["data", "dynamic_embedding", "models", "saved_model"]
)
def test_packages_are_imported_when_asked_for(name):
    found = getattr(embedra, name)
    assert found is sys.modules[f"embedra.{name}"]
    assert name in dir(embedra)


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
