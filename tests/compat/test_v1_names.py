"""`embedra.compat.v1` has the names of `tensorflow.compat.v1`, and ours."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest
import tensorflow as tf

import embedra.compat.v1 as tf1


OURS = sorted(one.name for one in pkgutil.iter_modules(tf1.__path__))


def run(program):
    """Runs a program in a Python of its own; returns what it prints."""
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.split()


def test_all_public_names_of_tensorflow_are_there():
    public = {n for n in dir(tf.compat.v1) if not n.startswith("_")}
    assert public <= set(dir(tf1))
    for name in sorted(public - set(OURS)):
        assert getattr(tf1, name) is getattr(tf.compat.v1, name), name


def test_star_import_takes_the_public_names():
    names = {}
    exec("from embedra.compat.v1 import *", names)
    assert names["placeholder"] is tf.compat.v1.placeholder
    assert names["data"] is tf1.data
    assert not [n for n in names if n.startswith("_") and n != "__builtins__"]


def test_unknown_name_says_where_it_was_looked_for():
    with pytest.raises(AttributeError, match="'nope', and neither"):
        tf1.nope  # noqa: B018


def test_modules_of_ours_are_imported_when_asked_for():
    imported = run(
        "import sys, embedra.compat.v1 as tf\n"
        "tf.placeholder\n"
        "print(*(m for m in sys.modules if m.startswith(tf.__name__)))"
    )
    assert imported == ["embedra.compat.v1"]


@pytest.mark.parametrize("name", ["data", "keras"])
def test_a_module_of_ours_is_one_however_it_is_imported(name):
    printed = run(
        f"import sys, embedra.compat.v1.{name} as by_path\n"
        f"from embedra.compat.v1 import {name} as by_from\n"
        "import embedra.compat.v1 as tf\n"
        f"print(by_path is by_from is tf.{name}, by_path.__name__)"
    )
    assert printed == ["True", f"embedra.compat.v1.{name}"]


@pytest.mark.parametrize("name", OURS)
def test_modules_of_ours_have_the_names_of_tensorflow(name):
    theirs = getattr(tf.compat.v1, name, None)
    public = {n for n in dir(theirs) if not n.startswith("_")} - {"contextlib"}
    ours = getattr(tf1, name)
    assert public <= set(dir(ours))
    for one in public:
        assert getattr(ours, one) is not None, one


def test_tensorflow_is_left_as_it_is():
    printed = run(
        "import tensorflow as tf\n"
        "v1, before = tf.compat.v1, set(dir(tf.compat.v1))\n"
        "import embedra.compat.v1 as ours\n"
        "ours.data, ours.keras\n"
        "assert set(dir(v1)) == before, set(dir(v1)) - before\n"
        "print(tf.executing_eagerly(), v1.keras.Model is tf.keras.Model)"
    )
    assert printed == ["True", "True"]


@pytest.mark.parametrize(
    "name", ["embedra.compat.v1", "embedra.data._iterators"]
)
def test_examples(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted
    assert not results.failed
