"""Variables as plain files: `save_to_file_system` and what reads them."""

import contextlib
import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de

from .states import make, records_of, train


v1 = tf.compat.v1


def trained(devices=1, **kwargs):
    variable = make(devices, name="tower/user", **kwargs)
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1))
    train(variable, optimizer, 3)
    return variable


def empty(devices=1, **kwargs):
    return make(devices, name="tower/user", **kwargs)


def only_file(folder, ending):
    (path,) = folder.glob(f"*{ending}")
    return path


def leave_what_tfra_writes(folder):
    for path in folder.iterdir():
        if not path.name.endswith(("-keys", "-values")):
            path.unlink()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("devices", [1, 3])
def test_files_hold_everything(tmp_path, devices, dtype):
    variable = trained(devices, value_dtype=dtype)
    assert variable.save_to_file_system(str(tmp_path)) is None
    loaded = empty(devices, value_dtype=dtype)
    loaded.load_from_file_system(str(tmp_path))
    assert records_of(loaded) == records_of(variable)
    np.testing.assert_array_equal(
        tf.cast(loaded.lookup([77]), tf.float32),
        tf.cast(variable.lookup([77]), tf.float32),
    )


def test_keys_and_values_are_as_tfra_reads_them(tmp_path):
    variable = empty()
    variable.upsert([3, -7], [[1.0, 2.0], [3.0, 4.0]])
    variable.save_to_file_system(str(tmp_path))
    prefix = "tower_user_mht_1of1_rank0_size1"
    keys = np.fromfile(tmp_path / f"{prefix}-keys", "<i8").tolist()
    values = np.fromfile(tmp_path / f"{prefix}-values", "<f4").reshape(-1, 2)
    assert dict(zip(keys, values.tolist(), strict=True)) == {
        3: [1.0, 2.0],
        -7: [3.0, 4.0],
    }


def test_narrow_keys_are_written_as_narrow(tmp_path):
    variable = empty(key_dtype=tf.int32)
    variable.upsert(tf.constant([3], tf.int32), [[1.0, 2.0]])
    variable.save_to_file_system(str(tmp_path))
    assert np.fromfile(only_file(tmp_path, "-keys"), "<i4").tolist() == [3]
    loaded = empty(key_dtype=tf.int32)
    loaded.load_from_file_system(str(tmp_path))
    assert records_of(loaded) == records_of(variable)


@pytest.mark.parametrize("is_narrow", [False, True])
def test_files_that_tfra_wrote_are_loaded_and_what_they_lack_is_said(
    tmp_path, is_narrow
):
    key_dtype = "int32" if is_narrow else "int64"
    prefix = tmp_path / "tower_user_mht_1of1_rank0_size1"
    np.array([3, -7], key_dtype).tofile(f"{prefix}-keys")
    np.array([[1, 2], [3, 4]], np.float32).tofile(f"{prefix}-values")
    variable = empty(key_dtype=key_dtype)
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1))
    train(variable, optimizer, 1)
    with pytest.warns(UserWarning, match="keys and values only"):
        variable.load_from_file_system(str(tmp_path))
    assert records_of(variable) == {
        3: ([1.0, 2.0], [0.0] * 4, 0, 0),
        -7: ([3.0, 4.0], [0.0] * 4, 0, 0),
    }


def test_c01_any_number_of_processes_and_devices_loads_any_other(tmp_path):
    parts = [trained(2) for _ in range(2)]
    for rank, part in enumerate(parts):
        others = [k for k in records_of(part) if k % 2 != rank]
        part.remove(others)
        part.save_to_file_system(str(tmp_path), proc_size=2, proc_rank=rank)
    records = {**records_of(parts[0]), **records_of(parts[1])}
    assert len(records) == 5
    found: dict = {}
    for rank in range(3):
        variable = empty(3)
        variable.load_from_file_system_with_restore_function(
            str(tmp_path), proc_size=3, proc_rank=rank
        )
        mine = records_of(variable)
        assert not set(mine) & set(found)
        assert (de.default_partition_fn(list(mine), 3).numpy() == rank).all()
        found |= mine
    assert found == records
    whole = empty()
    whole.load_from_file_system(str(tmp_path), load_entire_dir=True)
    assert records_of(whole) == records


def test_c01_a_save_with_a_file_missing_is_refused(tmp_path):
    trained(1).save_to_file_system(str(tmp_path), proc_size=2, proc_rank=0)
    with pytest.raises(FileNotFoundError, match=r"_mht_1of1_rank1_size2-keys"):
        empty().load_from_file_system_with_restore_function(str(tmp_path))


def test_c01_two_saves_in_one_folder_are_refused(tmp_path):
    trained(1).save_to_file_system(str(tmp_path))
    trained(2).save_to_file_system(str(tmp_path))
    with pytest.raises(ValueError, match="several saves"):
        empty().load_from_file_system_with_restore_function(str(tmp_path))


@pytest.mark.parametrize(
    "ending", ["-keys", "-values", "-slots", "-frequencies", "-last_steps"]
)
@pytest.mark.parametrize("harm", ["missing", "truncated", "changed"])
def test_c08_a_harmed_file_is_named_and_nothing_is_loaded(
    tmp_path, ending, harm
):
    trained().save_to_file_system(str(tmp_path))
    path = only_file(tmp_path, ending)
    content = path.read_bytes()
    if harm == "missing":
        path.unlink()
    elif harm == "truncated":
        path.write_bytes(content[:-3])
    else:
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    for variable in (empty(), trained()):
        before = records_of(variable)
        with pytest.raises((ValueError, FileNotFoundError), match=path.name):
            variable.load_from_file_system(str(tmp_path))
        assert records_of(variable) == before


@pytest.mark.parametrize(
    "header",
    [None, "", "[]", "{}", '{"format": 1}', '{"format": 1, "table": {}}'],
)
def test_c08_a_harmed_header_is_named_and_nothing_is_loaded(tmp_path, header):
    trained().save_to_file_system(str(tmp_path))
    path = only_file(tmp_path, "-table.json")
    path.unlink()
    if header is not None:
        path.write_text(header)
    variable = trained()
    before = records_of(variable)
    with pytest.raises((ValueError, FileNotFoundError), match=path.name):
        variable.load_from_file_system(str(tmp_path))
    assert records_of(variable) == before


def test_c08_a_save_that_fails_leaves_the_previous_one(tmp_path, monkeypatch):
    variable = trained()
    variable.save_to_file_system(str(tmp_path))
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def fail(*_):
        msg = "no space left"
        raise OSError(msg)

    variable.upsert([100], [[1.0, 2.0]])
    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        variable.save_to_file_system(str(tmp_path))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_c08_what_a_killed_save_left_is_removed_by_the_next(tmp_path):
    leftover = "tower_user_mht_1of1_rank0_size1-keys.writing-0123"
    (tmp_path / leftover).write_bytes(b"half")
    trained().save_to_file_system(str(tmp_path))
    assert not list(tmp_path.glob("*.writing-*"))


def test_c08_a_mixture_of_two_saves_is_refused(tmp_path):
    variable = trained()
    variable.save_to_file_system(str(tmp_path))
    old = only_file(tmp_path, "-values").read_bytes()
    train(
        variable,
        de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1)),
        1,
    )
    variable.save_to_file_system(str(tmp_path))
    only_file(tmp_path, "-values").write_bytes(old)
    with pytest.raises(ValueError, match="a save that was interrupted"):
        empty().load_from_file_system(str(tmp_path))


@pytest.mark.parametrize(
    ("devices", "renames"),
    [*((1, n) for n in range(7)), (2, 0), (2, 6), (2, 7), (2, 12)],
)
def test_c08_a_save_that_ends_between_two_renames_is_never_a_mixture(
    tmp_path, monkeypatch, devices, renames
):
    variable = trained(devices)
    variable.save_to_file_system(str(tmp_path))
    old = records_of(variable)
    train(variable, de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1)), 1)
    left = iter(range(renames))
    rename = pathlib.Path.replace

    def replace(path, target):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "replace", replace)
        with contextlib.suppress(KeyboardInterrupt):
            variable.save_to_file_system(str(tmp_path))
    loaded = empty(devices)
    try:
        loaded.load_from_file_system(str(tmp_path))
    except ValueError as error:
        assert "a save that was interrupted" in str(error)  # noqa: PT017
        assert 0 < renames < 6 * devices
        assert not records_of(loaded)
    else:
        new = records_of(variable)
        assert records_of(loaded) == (old if renames == 0 else new)


def test_another_width_is_refused_and_both_sides_are_named(tmp_path):
    trained().save_to_file_system(str(tmp_path))
    with pytest.raises(ValueError, match="dim=2 in the file, 4 in the table"):
        empty(dim=4).load_from_file_system(str(tmp_path))
    leave_what_tfra_writes(tmp_path)
    with (
        pytest.warns(UserWarning, match="keys and values only"),
        pytest.raises(ValueError, match=r"-values has 40 bytes"),
    ):
        empty(dim=4).load_from_file_system(str(tmp_path))


def test_a_later_format_is_refused(tmp_path):
    trained().save_to_file_system(str(tmp_path))
    path = only_file(tmp_path, "-table.json")
    fields = json.loads(path.read_text()) | {"format": 2}
    path.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match="format 2"):
        empty().load_from_file_system(str(tmp_path))


def test_appended_records_follow_those_that_are_there(tmp_path):
    variable = trained()
    variable.save_to_file_system(str(tmp_path))
    expected = records_of(variable)
    variable.remove([1, 2])
    variable.upsert([100], [[1.0, 2.0]])
    variable.save_to_file_system(str(tmp_path), append_to_file=True)
    loaded = empty()
    loaded.load_from_file_system(str(tmp_path), buffer_size=2)
    assert records_of(loaded) == expected | records_of(variable)


def test_files_that_tfra_wrote_are_not_appended_to(tmp_path):
    variable = trained()
    variable.save_to_file_system(str(tmp_path))
    leave_what_tfra_writes(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match="cannot be appended to"):
        variable.save_to_file_system(str(tmp_path), append_to_file=True)
    assert sorted(tmp_path.iterdir()) == before


def test_files_of_other_slots_are_not_appended_to(tmp_path):
    trained().save_to_file_system(str(tmp_path))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"Cannot append to .*slots is"):
        empty().save_to_file_system(str(tmp_path), append_to_file=True)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("is_files", [False, True])
def test_gradients_for_a_step_to_come_are_part_of_the_state(tmp_path, is_files):
    def optimizer():
        return de.DynamicEmbeddingOptimizer(
            keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)
        )

    kept = empty(2)
    kept_steps = optimizer()
    train(kept, kept_steps, 1)
    before = records_of(kept)
    moved = empty(3)
    moved_steps = optimizer()
    names = {"optimizer": kept_steps} | ({} if is_files else {"user": kept})
    path = tf.train.Checkpoint(**names).save(str(tmp_path / "model"))
    if is_files:
        kept.save_to_file_system(str(tmp_path))
        moved.load_from_file_system_with_restore_function(str(tmp_path))
    tf.train.Checkpoint(user=moved, optimizer=moved_steps).restore(path)
    train(kept, kept_steps, 1)
    train(moved, moved_steps, 1)
    assert records_of(moved) == records_of(kept) != before


def test_the_environment_overrules_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TFRA_SAVED_KV", str(tmp_path / "there"))
    trained().save_to_file_system(str(tmp_path / "here"))
    assert (tmp_path / "there").is_dir()
    assert not (tmp_path / "here").exists()


def test_short_names_leave_out_the_scope(tmp_path):
    make(name="tower/user", short_file_name=True).save_to_file_system(
        str(tmp_path)
    )
    assert only_file(tmp_path, "-keys").name.startswith("user_mht_")


def test_names_can_be_given(tmp_path):
    variable = trained(2)
    variable.save_to_file_system(str(tmp_path), file_name_list=["a", "b"])
    loaded = empty(2)
    loaded.load_from_file_system(str(tmp_path), file_name_list=["b", "a"])
    assert records_of(loaded) == records_of(variable)
    with pytest.raises(ValueError, match="each of the 2 devices"):
        variable.save_to_file_system(str(tmp_path), file_name_list=["a"])


def test_a_saver_has_the_settings(tmp_path):
    saver = de.FileSystemSaver(
        proc_size=2, proc_rank=1, save_path=str(tmp_path)
    )
    variable = empty(kv_creator=de.CuckooHashTableCreator(saver=saver))
    variable.upsert([3], [[1.0, 2.0]])
    variable.save_to_file_system()
    assert "rank1_size2" in only_file(tmp_path, "-keys").name
    variable.clear()
    variable.load_from_file_system()
    assert int(variable.size()) == 1
    with pytest.raises(ValueError, match="`dirpath` is needed"):
        empty().save_to_file_system()


@pytest.mark.parametrize("devices", [1, 3])
def test_tf1_graphs_write_and_read_the_same_files(tmp_path, devices):
    variable = trained(devices)
    variable.save_to_file_system(str(tmp_path / "eager"))
    with tf.Graph().as_default():
        copy = empty(devices)
        load = copy.load_from_file_system(
            str(tmp_path / "eager"), buffer_size=2
        )
        save = copy.save_to_file_system(str(tmp_path / "graph"), buffer_size=2)
        with v1.Session() as session:
            session.run(copy.upsert([100], [[1.0, 2.0]]))
            for _ in range(2):
                session.run(load)
                session.run(save)
    loaded = empty(devices)
    loaded.load_from_file_system(str(tmp_path / "graph"))
    assert records_of(loaded) == records_of(variable)
    np.testing.assert_array_equal(loaded.lookup([77]), variable.lookup([77]))


def test_tf1_graphs_load_the_share_of_a_process(tmp_path):
    trained(2).save_to_file_system(str(tmp_path))
    counts = []
    for rank in range(2):
        with tf.Graph().as_default():
            part = empty(3)
            load = part.load_from_file_system_with_restore_function(
                str(tmp_path), proc_size=2, proc_rank=rank
            )
            size = part.size()
            with v1.Session() as session:
                session.run(load)
                counts.append(session.run(size))
    assert sum(counts) == 5
    assert min(counts) > 0


def test_tf1_graphs_load_nothing_of_a_harmed_file(tmp_path):
    trained().save_to_file_system(str(tmp_path))
    path = only_file(tmp_path, "-slots")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with tf.Graph().as_default():
        variable = empty()
        store = variable.upsert([4], [[1.0, 2.0]])
        load = variable.load_from_file_system(str(tmp_path))
        size = variable.size()
        with v1.Session() as session:
            session.run(store)
            with pytest.raises(tf.errors.InvalidArgumentError, match=path.name):
                session.run(load)
            assert session.run(size) == 1
