"""An export is there whole or not at all, and replaces nothing unasked."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from embedra.layers import Embedding
from embedra.saved_model import _folders, _table_files, export


SPEC = tf.TensorSpec([None], tf.int64)
IDS = np.arange(50)


def served(path, ids):
    # What is loaded goes with its variables.
    loaded = tf.saved_model.load(path)
    return loaded.serve(ids)


@pytest.fixture
def layer():
    made = Embedding(8, name="table", embeddings_initializer="random_normal")
    made(IDS, training=True)
    return made


def test_versions(layer, tmp_path):
    first, second = (
        export(layer, tmp_path, signature=SPEC, versioned=True).path
        for _ in range(2)
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        Path(first).name,
        Path(second).name,
    ]
    assert int(Path(second).name) > int(Path(first).name) > 1_600_000_000


def test_empty_folders_are_filled(layer, tmp_path):
    export(layer, tmp_path, signature=SPEC)
    assert (tmp_path / "saved_model.pb").is_file()


def test_what_is_there_is_kept(layer, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "mine").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError, match="other files"):
            export(layer, kept, signature=SPEC, overwrite=overwrite)
    for versioned in (False, True):
        with pytest.raises(FileExistsError, match="a file"):
            export(layer, kept / "mine", signature=SPEC, versioned=versioned)
    assert [path.name for path in kept.iterdir()] == ["mine"]
    model = tmp_path / "model"
    export(layer, model, signature=SPEC)
    with pytest.raises(FileExistsError, match="a SavedModel"):
        export(layer, model, signature=SPEC)
    layer.table.assign([3], np.ones((1, 8)))
    export(layer, model, signature=SPEC, overwrite=True)
    rows = served(str(model), tf.constant([3], tf.int64))
    np.testing.assert_array_equal(rows, np.ones((1, 8)))
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "model"}


def test_failures_leave_nothing_behind(layer, tmp_path, monkeypatch):
    model = tmp_path / "model"
    before = export(layer, model, signature=SPEC).path

    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(_table_files, "write_table", fail)
    for folder, overwrite in ((model, True), (tmp_path / "new", False)):
        with pytest.raises(KeyboardInterrupt):
            export(layer, folder, signature=SPEC, overwrite=overwrite)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    rows = served(before, tf.constant(IDS))
    np.testing.assert_array_equal(rows, layer(IDS, training=False))


def _fill(folder, text, meanwhile=None, **options):
    """Exports a text, as it were."""
    place = _folders.final_folder(
        folder,
        versioned=options["versioned"],
        overwrite=options.get("overwrite", False),
    )
    with _folders.appearing(place, **options) as new:
        Path(new.temporary, "saved_model.pb").write_text(text)
        if meanwhile is not None:
            meanwhile()
    return new.path


def test_versions_of_the_same_second_are_several(tmp_path):
    others = []

    def meanwhile():
        others.append(_fill(tmp_path, "other", versioned=True))

    mine = _fill(tmp_path, "mine", meanwhile, versioned=True)
    [other] = others
    assert {path.name for path in tmp_path.iterdir()} == {
        Path(mine).name,
        Path(other).name,
    }
    assert Path(mine, "saved_model.pb").read_text() == "mine"
    assert Path(other, "saved_model.pb").read_text() == "other"


def test_what_appears_meanwhile_is_kept(tmp_path):
    folder = tmp_path / "model"

    def meanwhile():
        _fill(folder, "other", versioned=False)

    with pytest.raises(FileExistsError, match="something by now"):
        _fill(folder, "mine", meanwhile, versioned=False)
    assert (folder / "saved_model.pb").read_text() == "other"
    options = {"versioned": False, "overwrite": True}

    def replace():
        _fill(folder, "other", **options)

    _fill(folder, "mine", replace, **options)
    assert (folder / "saved_model.pb").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_cannot_be_replaced_is_put_back(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    _fill(folder, "old", versioned=False)
    rename = tf.io.gfile.rename

    calls = []

    def fail_once(source, target, overwrite=False):
        if target == str(folder) and source.endswith(".tmp") and calls:
            raise tf.errors.PermissionDeniedError(None, None, "no")
        calls.append(source)
        rename(source, target, overwrite)

    monkeypatch.setattr(tf.io.gfile, "rename", fail_once)
    with pytest.raises(tf.errors.PermissionDeniedError):
        _fill(folder, "new", versioned=False, overwrite=True)
    assert (folder / "saved_model.pb").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("full", [False, True])
def test_links_stay_links(full, tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    if full:
        (real / "saved_model.pb").write_text("old")
    link.symlink_to(real)
    path = _fill(link, "new", versioned=False, overwrite=full)
    assert path == str(link)
    assert link.is_symlink()
    assert (real / "saved_model.pb").read_text() == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"real", "link"}


def test_exports_at_the_same_time(layer, tmp_path):
    paths = []

    def go():
        exported = export(layer, tmp_path, signature=SPEC, versioned=True)
        paths.append(exported.path)

    threads = [threading.Thread(target=go) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(os.listdir(tmp_path)) == sorted(
        Path(path).name for path in paths
    )
    for path in paths:
        rows = served(path, tf.constant(IDS))
        np.testing.assert_array_equal(rows, layer(IDS, training=False))
