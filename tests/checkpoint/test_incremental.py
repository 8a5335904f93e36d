"""Full checkpoints and deltas: what they hold, and what is refused."""

import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra
from embedra import dynamic_embedding as de
from embedra.checkpoint import (
    ChainError,
    CheckpointFolder,
    IncrementalCheckpoints,
    SavedTables,
)
from embedra.layers import Embedding
from embedra.table import Slot, Table


def records_of(table):
    """All of a table, by key, as bytes, so that bits are compared."""
    found = {}
    for chunk in table.export_chunks():
        for key, *record in zip(*chunk, strict=True):
            assert key not in found
            found[int(key)] = tuple(
                np.asarray(part).tobytes() for part in record
            )
    return found


def names(folder):
    return sorted(path.name for path in Path(folder).glob("*.index"))


def size_of(path):
    return sum(
        file.stat().st_size
        for file in Path(path).parent.glob(f"{Path(path).name}.*")
    )


def make_table(dim=2, **kwargs):
    return Table(dim, name="t", initializer=0.5, **kwargs)


def saves_of(folder, **tables):
    return IncrementalCheckpoints(tf.train.Checkpoint(**tables), folder)


def restored(folder, **kwargs):
    """A new table with the newest state of a folder, and its step."""
    table = make_table(**kwargs)
    step = saves_of(folder, table=table).restore()
    return table, step


@pytest.fixture
def chain(tmp_path):
    """A folder with saves of steps 20, 40, 60, and the table as of then."""
    table = make_table()
    saves = saves_of(tmp_path, table=table)
    table.assign(range(10), np.zeros((10, 2)))
    saves.save(20)
    for step in (40, 60):
        table.assign([1, step], np.full((2, 2), step))
        table.remove([step // 20])
        saves.save(step)
    return tmp_path, table, saves


class TwoTowers(keras.Model):
    """Two tables and dense weights."""

    def __init__(self):
        super().__init__()
        self.user = Embedding(4, name="user")
        self.item = Embedding(4, name="item")
        self.head = keras.layers.Dense(1)

    def call(self, inputs):
        both = keras.ops.concatenate(
            [self.user(inputs[:, 0]), self.item(inputs[:, 1])], axis=-1
        )
        return self.head(both)


def compiled():
    model = TwoTowers()
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model


def model_state(model):
    variables = [*model.head.variables, *model.optimizer.variables]
    arrays = [np.asarray(variable).tobytes() for variable in variables]
    tables = [model.user.table, model.item.table]
    headers = [
        embedra.table.header_of(table).to_json().replace(table.name, "")
        for table in tables
    ]
    return arrays, headers, [records_of(table) for table in tables]


def test_c10_base_and_deltas_equal_the_state_at_60(tmp_path, rng):
    model = compiled()

    def train(first, steps=20):
        for step in range(first, first + steps):
            # A window that moves on, from which old users are evicted.
            users = rng.integers(step * 4, step * 4 + 32, 16)
            ids = np.stack([users, rng.integers(0, 500, 16)], axis=1)
            model.train_on_batch(ids, np.ones((16, 1), "float32"))
            model.user.table.restrict(64)

    def incremental(one):
        return IncrementalCheckpoints(
            tf.train.Checkpoint(model=one, optimizer=one.optimizer), tmp_path
        )

    saves = incremental(model)
    for step in (20, 40, 60):
        train(step - 20)
        if step == 60:
            model.item.table.remove(range(250))
            # Known changes: one row of one table, to a value no step gives.
            model.item.table.assign([499], [[1.0, 2.0, 3.0, 4.0]])
        saves.save(step)
    assert names(tmp_path) == [
        "delta-40.index",
        "delta-60.index",
        "full-20.index",
    ]
    assert model.user.table.size() == 64
    expected = model_state(model)

    keras.utils.set_random_seed(1)
    other = compiled()
    other.train_on_batch(np.ones((2, 2), "int64"), np.ones((2, 1)))
    again = incremental(other)
    assert again.restore() == 60
    assert model_state(other) == expected
    np.testing.assert_array_equal(
        other.item.table.lookup([499])[0], [1.0, 2.0, 3.0, 4.0]
    )
    assert not set(range(250)) & set(expected[2][1])

    # It goes on alike, with a delta after those of the other process.
    state = rng.bit_generator.state
    train(60)
    expected = model_state(model)
    rng.bit_generator.state = state
    model = other
    train(60)
    assert model_state(other) == expected
    assert again.save(80).endswith("delta-80")


def test_c10_per_step_changes_are_those_in_each_delta(chain):
    folder, table, _ = chain
    # What a delta holds, told by the reader of tensors.
    for step in (40, 60):
        reader = tf.train.load_checkpoint(str(folder / f"delta-{step}"))
        tensors = {
            name.rsplit("/", 1)[-1]: reader.get_tensor(name)
            for name in reader.get_variable_to_shape_map()
            if name.startswith("table/")
        }
        assert sorted(tensors["keys_000000"]) == [1, step]
        np.testing.assert_array_equal(
            tensors["rows_000000"], np.full((2, 2), step)
        )
        assert tensors["removed_keys"].tolist() == [step // 20]
    again, step = restored(folder)
    assert step == 60
    assert records_of(again) == records_of(table)
    assert set(records_of(again)) == {0, 1, 4, 5, 6, 7, 8, 9, 40, 60}


@pytest.mark.parametrize("missing", ["full-20", "delta-40", "delta-60"])
def test_c10_a_missing_save_is_named_and_nothing_changes(chain, missing):
    folder, _, saves = chain
    for file in folder.glob(f"{missing}.*"):
        file.unlink()
    other = make_table()
    other.assign([5], [[7.0, 7.0]])
    dense = tf.Variable(3.0)
    checkpoint = tf.train.Checkpoint(table=other, dense=dense)
    match = "no full checkpoint" if missing == "full-20" else missing
    with pytest.raises(ChainError, match=match):
        IncrementalCheckpoints(checkpoint, folder).restore()
    assert float(dense) == 3.0
    assert records_of(other).keys() == {5}
    # The one that wrote them cannot write a delta that would be of no use.
    assert saves.save(80).endswith("full-80")
    assert restored(folder)[1] == 80


def test_a_missing_data_file_is_named(chain):
    folder, _, _ = chain
    next(folder.glob("delta-40.data-*")).unlink()
    with pytest.raises(ChainError, match=r"delta-40: \d+ data files"):
        restored(folder)


def test_the_newest_save_may_be_given_up(chain):
    folder, _, _ = chain
    for file in [*folder.glob("delta-60.*"), folder / "checkpoint"]:
        file.unlink()
    table, step = restored(folder)
    assert step == 40
    assert set(records_of(table)) == {0, 1, *range(3, 10), 40}


def test_a_delta_of_another_chain_is_named_and_nothing_changes(chain, tmp_path):
    folder, _, _ = chain
    other = tmp_path / "other"
    table = make_table()
    saves = saves_of(other, table=table)
    for step in (20, 40):
        table.assign([step], [[1.0, 1.0]])
        saves.save(step)
    for file in other.glob("delta-40.*"):
        shutil.copy(file, folder)
    fresh = make_table()
    fresh.assign([5], [[7.0, 7.0]])
    with pytest.raises(ChainError, match=r"delta-40 does not follow the full"):
        saves_of(folder, table=fresh).restore()
    assert records_of(fresh).keys() == {5}


def test_deltas_are_as_large_as_what_changed(tmp_path):
    table = make_table(dim=8)
    saves = saves_of(tmp_path, table=table)
    keys = np.arange(70_000)
    table.assign(keys, np.zeros((len(keys), 8)))
    full = size_of(saves.save(1))
    empty = size_of(saves.save(2))
    sizes = []
    for step, count in enumerate((700, 7_000), start=3):
        table.assign(keys[::-1][:count], np.full((count, 8), step))
        sizes.append(size_of(saves.save(step)) - empty)
    assert empty < full / 500
    record = 8 + 8 * 4 + 8 + 8
    assert sizes[0] == pytest.approx(700 * record, rel=0.05)
    assert sizes[1] == pytest.approx(7_000 * record, rel=0.05)
    again, step = restored(tmp_path, dim=8)
    assert step == 4
    assert records_of(again) == records_of(table)


def test_deltas_larger_than_a_chunk(tmp_path):
    table = make_table()
    saves = saves_of(tmp_path, table=table)
    saves.save(1)
    table.assign(range(70_000), np.ones((70_000, 2)))
    saves.save(2)
    table.remove(range(69_990))
    saves.save(3)
    again, _ = restored(tmp_path)
    assert records_of(again) == records_of(table)
    assert again.size() == 10


def test_a_delta_with_no_change_keeps_the_state(chain):
    folder, table, saves = chain
    assert saves.save(80).endswith("delta-80")
    again, step = restored(folder)
    assert step == 80
    assert records_of(again) == records_of(table)


def test_a_key_that_goes_and_comes_back(tmp_path):
    table = make_table()
    saves = saves_of(tmp_path, table=table)
    table.assign([1, 2], [[1.0, 1.0], [2.0, 2.0]])
    saves.save(1)
    table.remove([1])
    saves.save(2)
    table.assign([1], [[9.0, 9.0]])
    saves.save(3)
    again, _ = restored(tmp_path)
    assert records_of(again) == records_of(table)


def test_counters_alone_are_a_change(tmp_path):
    table = make_table()
    saves = saves_of(tmp_path, table=table)
    table.lookup([1, 2, 3], insert=True)
    saves.save(1)
    table.count_uses([2])
    saves.save(2)
    again, _ = restored(tmp_path)
    assert records_of(again) == records_of(table)
    assert again.step == table.step == 1


def test_signs_that_flip_in_pairs_are_a_change(tmp_path):
    table = make_table(dim=4)
    saves = saves_of(tmp_path, table=table)
    rows = np.array([[1, 2, 3, 4]] * 2, "float32")
    table.assign([1, 2], rows)
    saves.save(1)
    table.assign([1, 2], rows * [[1, -1, -1, -1], [-1, -1, -1, -1]])
    saves.save(2)
    again, _ = restored(tmp_path, dim=4)
    assert records_of(again) == records_of(table)


def test_slots_that_change_have_all_records_written(tmp_path):
    table = make_table()
    table.set_slots([Slot("m", 2, 0.0), Slot("v", 1, 1.0)])
    table.assign(range(3), np.zeros((3, 2)))
    saves = saves_of(tmp_path, table=table)
    saves.save(1)
    # As wide as before, and of the same bytes.
    table.set_slots([Slot("v", 1, 0.0), Slot("m", 2, 0.0)])
    table.remove([0])
    saves.save(2)
    table.set_slots([])
    table.assign([7], [[7.0, 7.0]])
    saves.save(3)
    again, _ = restored(tmp_path)
    assert again.slots == ()
    assert records_of(again) == records_of(table)


def test_gradients_that_are_pending_are_in_deltas(tmp_path):
    ids, labels = np.array([[1, 2], [3, 4]]), np.ones((2, 1))

    def make():
        model = TwoTowers()
        sgd = embedra.DynamicEmbeddingOptimizer(
            keras.optimizers.SGD(0.5, gradient_accumulation_steps=2)
        )
        model.compile(sgd, "mse")
        model.train_on_batch(ids, labels)
        checkpoint = tf.train.Checkpoint(model=model, optimizer=sgd)
        return model, IncrementalCheckpoints(checkpoint, tmp_path)

    model, saves = make()
    model.train_on_batch(ids, labels)
    saves.save(2)
    model.train_on_batch(ids, labels)
    saves.save(3)
    group = embedra.table.TableGroup([model.user.table])
    keys, pending = embedra.table.group_pending(group)
    assert sorted(keys) == [1, 3]
    assert np.all(pending != 0)
    other, again = make()
    assert again.restore() == 3
    for one in (model, other):
        one.train_on_batch(ids, labels)
    assert model_state(other) == model_state(model)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rows_of_half_the_width(tmp_path, dtype):
    table = make_table(dim=3, dtype=dtype)
    saves = saves_of(tmp_path, table=table)
    table.assign(range(5), np.arange(15).reshape(5, 3))
    saves.save(1)
    table.assign([2], [[-1.5, 2.5, 0.0]])
    saves.save(2)
    again, _ = restored(tmp_path, dim=3, dtype=dtype)
    assert records_of(again) == records_of(table)


def test_a_bounded_table_takes_a_chain_as_one(tmp_path):
    table = make_table(max_capacity=16)
    saves = saves_of(tmp_path, table=table)
    for step in range(1, 6):
        table.lookup(range(step * 10, step * 10 + 10), insert=True)
        saves.save(step)
    again, _ = restored(tmp_path, max_capacity=16)
    assert records_of(again) == records_of(table)
    assert again.statistics().evictions == 0


def test_tables_of_several_savers_in_one_checkpoint(tmp_path):
    def make():
        variable = de.get_variable(
            f"v{len(made)}", dim=2, devices=["/CPU:0"] * 2, initializer=0.0
        )
        made.append(variable)
        return variable, make_table()

    made = []
    variable, table = make()
    saves = saves_of(tmp_path, variable=variable, table=table)
    variable.upsert(tf.range(9, dtype=tf.int64), tf.ones((9, 2)))
    table.assign([1, 2], np.ones((2, 2)))
    saves.save(1)
    variable.upsert(tf.constant([3], tf.int64), tf.fill((1, 2), 4.0))
    variable.remove(tf.constant([5], tf.int64))
    table.remove([1])
    saves.save(2)
    variable_2, table_2 = make()
    assert saves_of(tmp_path, variable=variable_2, table=table_2).restore() == 2
    assert records_of(table_2) == records_of(table)
    for one, other in zip(variable.tables, variable_2.tables, strict=True):
        assert records_of(one) == records_of(other)


def test_a_table_that_joins_later_is_whole_in_its_first_delta(tmp_path):
    one, two = make_table(), Table(3, name="two")
    one.assign([1], [[1.0, 1.0]])
    two.assign([2], [[2.0, 2.0, 2.0]])
    checkpoint = tf.train.Checkpoint(one=one)
    saves = IncrementalCheckpoints(checkpoint, tmp_path)
    saves.save(1)
    checkpoint.two = two
    saves.save(2)
    two.assign([3], [[3.0, 3.0, 3.0]])
    assert saves.save(3).endswith("delta-3")
    again = {"one": make_table(), "two": Table(3, name="two")}
    assert saves_of(tmp_path, **again).restore() == 3
    assert records_of(again["one"]) == records_of(one)
    assert records_of(again["two"]) == records_of(two)


def test_two_objects_at_one_folder_write_what_can_be_restored(tmp_path):
    tables = [make_table(), make_table()]
    both = [saves_of(tmp_path, table=table) for table in tables]
    for step in range(1, 7):
        one = step % 2
        tables[one].assign([step], np.full((1, 2), step))
        assert both[one].save(step).endswith(f"full-{step}")
        again, found = restored(tmp_path)
        assert found == step
        assert records_of(again) == records_of(tables[one])


def test_a_full_checkpoint_is_one_of_tensorflow(chain):
    folder, table, saves = chain
    path = saves.save(80, full=True)
    other = make_table()
    tf.train.Checkpoint(table=other).restore(path).assert_consumed()
    assert records_of(other) == records_of(table)
    assert saves.save(100).endswith("delta-100")


def test_a_delta_is_refused_by_those_who_read_it_alone(chain):
    folder, _, _ = chain
    path = tf.train.latest_checkpoint(folder)
    assert path.endswith("delta-60")
    other = make_table()
    other.assign([5], [[7.0, 7.0]])
    with pytest.raises(ValueError, match=r"delta-60 .*IncrementalCheckpoints"):
        tf.train.Checkpoint(table=other).restore(path)
    assert records_of(other).keys() == {5}
    model = embedra.keras.Model()
    for given in (path, folder):
        with pytest.raises(ChainError, match=r"delta-60 .*changed since del"):
            model.load_weights(given)
    with pytest.raises(ChainError, match=r"IncrementalCheckpoints"):
        SavedTables(path)


def test_a_table_that_is_made_after_the_restore_is_refused(chain):
    folder, _, _ = chain
    checkpoint = tf.train.Checkpoint()
    saves = IncrementalCheckpoints(checkpoint, folder)
    assert saves.restore() == 60
    table = make_table()
    with pytest.raises(ValueError, match=r"delta-60 .*when the model is built"):
        checkpoint.table = table
    assert table.size() == 0


def test_old_chains_are_removed(chain):
    folder, table, _ = chain
    saves = IncrementalCheckpoints(
        tf.train.Checkpoint(table=table), folder, keep=2
    )
    saves.restore()
    for step in (80, 100, 120, 140):
        saves.save(step, full=step in (80, 120))
    assert names(folder) == [
        "delta-100.index",
        "delta-140.index",
        "full-120.index",
        "full-80.index",
    ]
    assert not list(folder.glob("*-20.*")) + list(folder.glob("*-60.*"))


@pytest.mark.parametrize("step", [-1, 0, 40, 60])
def test_a_step_that_is_not_later_is_refused(chain, step):
    folder, _, saves = chain
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(ValueError, match=r"must (be later|not be negative)"):
        saves.save(step)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_delta_that_has_nothing_to_follow_is_refused(tmp_path):
    saves = saves_of(tmp_path / "new", table=make_table())
    with pytest.raises(ValueError, match="cannot be saved as a delta"):
        saves.save(1, full=False)
    assert not (tmp_path / "new").exists()


def test_an_empty_folder_restores_nothing(tmp_path):
    assert restored(tmp_path)[1] is None
    assert restored(tmp_path / "missing")[1] is None


def test_arguments_are_checked(tmp_path):
    checkpoint = tf.train.Checkpoint()
    with pytest.raises(ValueError, match="keep"):
        IncrementalCheckpoints(checkpoint, tmp_path, keep=0)
    with pytest.raises(TypeError, match=r"tf\.train\.Checkpoint"):
        IncrementalCheckpoints(make_table(), tmp_path)
    with pytest.raises(ValueError, match="wildcards"):
        IncrementalCheckpoints(checkpoint, tmp_path / "a*")


def test_a_save_that_fails_is_as_if_it_had_not_been(chain, monkeypatch):
    folder, table, saves = chain
    table.assign([77], [[7.0, 7.0]])
    before = sorted(path.name for path in folder.iterdir())

    def fail(source, target, overwrite):
        del overwrite
        msg = f"full disk: {source} -> {target}"
        raise OSError(msg)

    with monkeypatch.context() as patched:
        patched.setattr(tf.io.gfile, "rename", fail)
        with pytest.raises(OSError, match="full disk"):
            saves.save(80)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert saves.save(80).endswith("delta-80")
    assert records_of(restored(folder)[0]) == records_of(table)


def test_a_folder_of_checkpoints_may_be_beside(tmp_path):
    table = make_table()
    checkpoint = tf.train.Checkpoint(table=table)
    IncrementalCheckpoints(checkpoint, tmp_path / "deltas").save(1)
    assert CheckpointFolder(tmp_path / "deltas").latest is None


def rows_at(step):
    return np.arange(12, dtype="float32").reshape(6, 2) * step


def save_all(folder, last):
    """Goes on to a step with a save of each; each state lacks its own key."""
    table = make_table()
    checkpoint = tf.train.Checkpoint(table=table)
    saves = IncrementalCheckpoints(checkpoint, folder, keep=1)
    for step in range((saves.restore() or 0) + 1, last + 1):
        table.assign(range(6), rows_at(step))
        table.remove([step])
        saves.save(step, full=step >= 3 or None)


def check_saved(folder):
    """Checks what a folder holds; returns its step."""
    table, step = restored(folder)
    if step is None:
        return 0
    kept = [key for key in range(6) if key != step]
    assert set(records_of(table)) == set(kept)
    np.testing.assert_array_equal(table.lookup(kept), rows_at(step)[kept])
    return step


def test_a_kill_at_any_time_leaves_a_state_that_goes_on(tmp_path, monkeypatch):
    folder = tmp_path / "saves"
    folder.mkdir()
    # What a process leaves that is killed before an operation on files.
    left = []

    def noting(function):
        def call(*args, **kwargs):
            left.append(shutil.copytree(folder, tmp_path / str(len(left))))
            return function(*args, **kwargs)

        return call

    with monkeypatch.context() as patched:
        for name in ("makedirs", "rename", "rmtree", "remove"):
            patched.setattr(
                tf.io.gfile, name, noting(getattr(tf.io.gfile, name))
            )
        save_all(folder, 3)
    assert any(list(killed.glob("*.partial")) for killed in left)
    steps = []
    for killed in left:
        steps.append(check_saved(killed))
        save_all(killed, 4)
        assert check_saved(killed) == 4
        names_left = {path.name.split(".")[0] for path in killed.iterdir()}
        assert names_left == {"checkpoint", "full-4"}
    assert steps == sorted(steps)
    assert set(steps) == {0, 1, 2, 3}
