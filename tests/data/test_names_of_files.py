"""Names of files, and files that go away."""

import os

import pytest
import tensorflow as tf

from embedra.data import DataError, ParquetDataset


def rows(data):
    return [row for batch in data for row in batch["i"].numpy().tolist()]


@pytest.fixture
def paths(write):
    return [write(f"{n}.parquet", i=[n]) for n in range(5)]


@pytest.mark.parametrize("kind", ["bytes", "array", "tensor"])
def test_names_as_tensorflow_gives_them(paths, kind):
    tensor = tf.constant(paths)
    names = {
        "bytes": [path.encode() for path in paths],
        "array": tensor.numpy(),
        "tensor": tensor,
    }[kind]
    assert rows(ParquetDataset(names, 2)) == [0, 1, 2, 3, 4]
    assert rows(ParquetDataset(names[1], 2)) == [1]


def test_shuffled_dataset_of_names_is_the_same_for_all_ranks(paths):
    names = tf.data.Dataset.from_tensor_slices(paths).shuffle(5)
    for _ in range(3):
        assert rows(ParquetDataset(names, 2)) == [0, 1, 2, 3, 4]


def test_empty_name_is_not_the_current_folder(paths, monkeypatch):
    monkeypatch.chdir(os.path.dirname(paths[0]))
    with pytest.raises(DataError, match="is empty"):
        ParquetDataset("", 2)


def test_names_that_are_not_known_yet_are_refused(paths):
    with pytest.raises(Exception, match="interleave"):
        tf.data.Dataset.from_tensor_slices(paths).interleave(
            lambda name: ParquetDataset(name, 2)
        )
    with tf.Graph().as_default(), pytest.raises(DataError, match="graph"):
        ParquetDataset(tf.data.Dataset.from_tensor_slices(paths), 2)


@pytest.mark.usefixtures("paths")
def test_link_to_a_folder_above_does_not_repeat_rows(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "loop").symlink_to(tmp_path)
    assert rows(ParquetDataset(str(tmp_path), 2)) == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("paths")
def test_pattern_does_not_look_into_folders_it_cannot_match(
    tmp_path, monkeypatch
):
    import pyarrow.fs

    chosen = []
    selector = pyarrow.fs.FileSelector

    def recorded(*args, **options):
        chosen.append(options["recursive"])
        return selector(*args, **options)

    monkeypatch.setattr(pyarrow.fs, "FileSelector", recorded)
    assert rows(ParquetDataset(f"{tmp_path}/[01]*.parquet", 2)) == [0, 1]
    assert len(rows(ParquetDataset(f"{tmp_path}/**/*.parquet", 2))) == 5
    assert chosen == [False, True]


def test_url_in_messages_can_be_used_again(tmp_path):
    (tmp_path / "x.parquet").write_text("not Parquet")
    with pytest.raises(DataError, match=f"file://{tmp_path}/x.parquet: not"):
        ParquetDataset(f"file://{tmp_path}", 2)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_file_that_goes_while_others_are_read(paths, on_error):
    data = ParquetDataset(paths, 2, on_error=on_error)
    os.remove(paths[3])
    if on_error == "raise":
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"3\.parquet: row group 0"
        ):
            rows(data)
        return
    assert rows(data) == [0, 1, 2, 4]
    assert data.report.skipped_rows == 1
    assert "3.parquet" in data.report.reasons[0]


def test_one_file_of_many_that_does_not_fit_is_found_quickly(
    write, paths, monkeypatch
):
    from embedra.data import _make_source

    looks = []
    resolve = _make_source.resolve

    def counted(containers, fields):
        looks.append(len(containers))
        return resolve(containers, fields)

    monkeypatch.setattr(_make_source, "resolve", counted)
    odd = write("odd.parquet", i=["a"])
    data = ParquetDataset([*paths * 8, odd, *paths * 8], 9, on_error="skip")
    assert rows(data) == [0, 1, 2, 3, 4] * 16
    assert data.report.skipped_files == [odd]
    assert len(looks) < 20
