"""The MovieLens example, on made-up ratings in the format of MovieLens."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest


EXAMPLE = (
    Path(__file__).parents[2] / "examples" / "dynamic_embedding_movielens.py"
)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [EXAMPLE.name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")


def rmse(output):
    return float(re.search(r"RMSE on ua\.test: (\S+)", output)[1])


def write_ratings(folder, rng):
    """30 users of four tastes rate 40 movies of four kinds."""
    users = rng.integers(1, 31, size=1200)
    movies = rng.integers(1, 41, size=1200)
    ratings = np.where(users % 4 == movies % 4, 5, 2)
    lines = np.stack([users, movies, ratings, users + 880_000_000], axis=1)
    np.savetxt(folder / "ua.base", lines[:1100], fmt="%d", delimiter="\t")
    np.savetxt(folder / "ua.test", lines[1100:], fmt="%d", delimiter="\t")


def test_it_learns_tastes(tmp_path, monkeypatch, capsys, rng):
    write_ratings(tmp_path, rng)
    run(monkeypatch, tmp_path, "--epochs", 0)
    untrained = rmse(capsys.readouterr().out)
    assert untrained > 1.1
    run(monkeypatch, tmp_path, "--epochs", 150)
    output = capsys.readouterr().out
    assert "30 users, 40 movies" in output
    assert rmse(output) < untrained - 0.2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_its_error_on_movielens(seed, shared_data, monkeypatch, capsys):
    run(monkeypatch, shared_data / "ml-100k", "--seed", seed)
    assert rmse(capsys.readouterr().out) < 0.96


def test_a_wrong_folder_is_named(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match=r"ua\.base is not a file of MovieL"):
        run(monkeypatch, tmp_path)


@pytest.mark.parametrize("content", ["user,movie\n1,2\n", "1\t2\n", "a b c\n"])
def test_a_file_of_another_format_is_named(tmp_path, monkeypatch, content):
    (tmp_path / "ua.base").write_text(content)
    with pytest.raises(SystemExit, match=r"ua\.base is not a file of MovieL"):
        run(monkeypatch, tmp_path)
