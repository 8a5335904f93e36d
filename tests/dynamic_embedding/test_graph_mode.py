"""Variables in TF1 graphs: sessions, savers, what is in their checkpoints."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de

from .states import make, records_of
from .v1_runs import Model, run


v1 = tf.compat.v1


@pytest.fixture
def graph():
    """A TF1 graph that is current."""
    with tf.Graph().as_default() as made:
        yield made


@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.usefixtures("graph")
def test_every_method_is_an_operation_to_run(devices):
    user = make(devices, initializer=0.5)
    store = user.upsert([[7, 8], [8, 9]], np.arange(8.0).reshape(2, 2, 2))
    found = user.lookup([[7, 6]], return_exists=True)
    add = user.accum([7, 6], [[0, 1], [0, 0]], [[1, 2], [5, 5]], [True, False])
    remove = user.remove([8, 100])
    keys, rows = user.export()
    size = user.size()
    clear = user.clear()
    with v1.Session() as session:
        assert session.run(size) == 0
        session.run(store)
        assert session.run(size) == 3
        values, exists = session.run(found)
        assert values.tolist() == [[[0.0, 1.0], [0.5, 0.5]]]
        assert exists.tolist() == [[True, False]]
        session.run(add)
        session.run(remove)
        exported = dict(
            zip(*(a.tolist() for a in session.run((keys, rows))), strict=True)
        )
        assert exported == {7: [1.0, 2.0], 6: [5.0, 5.0], 9: [6.0, 7.0]}
        session.run(clear)
        assert session.run(size) == 0


@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.usefixtures("graph")
def test_lookups_insert_and_have_gradients(devices):
    user = make(devices, initializer=0.5)
    rows, trainable = de.embedding_lookup(
        user, [1, 2, 2], return_trainable=True
    )
    (gradient,) = tf.gradients(tf.reduce_sum(rows**2), [trainable.value])
    size = user.size()
    with v1.Session() as session:
        # Programs of TFRA initialise global variables alone.
        session.run(v1.global_variables_initializer())
        assert session.run(gradient).values.tolist() == [[1.0, 1.0]] * 3
        assert session.run(size) == 2


@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.usefixtures("graph")
def test_rows_of_a_python_initializer_are_there_before_they_are_read(devices):
    user = make(devices, initializer=lambda shape: tf.fill(shape, 3.0))
    rows = de.embedding_lookup(user, [1, 2, 1])
    with v1.Session() as session:
        assert session.run(rows).tolist() == [[3.0, 3.0]] * 3


@pytest.mark.usefixtures("graph")
def test_an_initializer_can_be_a_tensor_of_the_graph():
    user = make(initializer=tf.constant([1.0, 2.0]))
    rows = user.lookup([1])
    with v1.Session() as session:
        assert session.run(rows).tolist() == [[1.0, 2.0]]


@pytest.mark.usefixtures("graph")
def test_inference_mode_inserts_nothing():
    de.enable_inference_mode()
    try:
        user = make()
        rows = de.embedding_lookup(user, [1])
    finally:
        de.enable_train_mode()
    size = user.size()
    with v1.Session() as session:
        session.run(rows)
        assert session.run(size) == 0


@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.usefixtures("graph")
def test_what_stands_for_rows_is_trainable_local_and_initialised(devices):
    model = Model(devices)
    value = model.trainable.value
    assert any(v is value for v in v1.trainable_variables())
    assert any(v is value for v in v1.local_variables())
    assert not any(v is value for v in v1.global_variables())
    uninitialised = v1.report_uninitialized_variables()
    with v1.train.MonitoredTrainingSession() as session:
        assert session.run(uninitialised).size == 0


def test_variables_of_one_name_in_two_graphs_are_two():
    sizes = []
    for count in (3, 1):
        with tf.Graph().as_default():
            user = make()
            store = user.upsert(np.arange(count), np.ones((count, 2)))
            size = user.size()
            with v1.Session() as session:
                session.run(store)
                sizes.append(session.run(size))
    assert sizes == [3, 1]


@pytest.mark.usefixtures("graph")
def test_variables_of_one_name_in_one_graph_are_two():
    first, second = make(), make()
    store = first.upsert([1], [[1.0, 2.0]])
    sizes = [first.size(), second.size()]
    saver = v1.train.Saver()
    del saver
    with v1.Session() as session:
        session.run(store)
        assert session.run(sizes) == [1, 0]
    assert first.state.key != second.state.key


@pytest.mark.usefixtures("graph")
def test_variables_of_one_shared_name_are_one():
    first = make(shared_name="common")
    second = make(shared_name="common")
    store = first.upsert([1], [[1.0, 2.0]])
    rows = second.lookup([1])
    with v1.Session() as session:
        session.run(store)
        assert session.run(rows).tolist() == [[1.0, 2.0]]
    states = v1.get_collection(v1.GraphKeys.SAVEABLE_OBJECTS)
    assert states == [first.state]


@pytest.mark.parametrize(("before", "after"), [(1, 1), (3, 2)])
def test_training_resumes_exactly_on_any_number_of_devices(
    tmp_path, before, after
):
    keras.utils.set_random_seed(1)
    _, at_four, *_ = run(tmp_path, 4, before)
    restored, *resumed = run(tmp_path, 3, after)
    keras.utils.set_random_seed(1)
    _, *straight = run(None, 7, after)
    assert restored == at_four
    assert resumed == straight
    # And once more: what was restored is saved again as it was.
    _, _, _, absent = run(tmp_path, 0, after)
    assert absent == straight[2]


def test_a_meta_graph_is_written_without_warnings_and_works(tmp_path, caplog):
    run(tmp_path / "run", 2)
    assert "Issue encountered when serializing" not in caplog.text
    path = tf.train.latest_checkpoint(str(tmp_path / "run"))
    with tf.Graph().as_default() as graph:
        saver = v1.train.import_meta_graph(f"{path}.meta")
        (train,) = graph.get_collection(v1.GraphKeys.TRAIN_OP)
        with v1.Session() as session:
            saver.restore(session, path)
            session.run(v1.local_variables_initializer())
            session.run(train)
            again = saver.save(session, str(tmp_path / "again"))
    rows = tf.train.load_checkpoint(again).get_tensor("user/rows")
    before, after, *_ = run(tmp_path / "run", 1)
    assert sorted(rows.tolist()) == sorted(row for row, *_ in after.values())
    assert before != after


def test_c06_a_checkpoint_holds_nothing_of_what_stands_for_rows(tmp_path):
    run(tmp_path, 1)
    names = {name for name, _ in tf.train.list_variables(str(tmp_path))}
    dense = {name for name in names if not name.startswith("user/")}
    assert dense == {
        "beta1_power",
        "beta2_power",
        "dense",
        "dense/Adam",
        "dense/Adam_1",
        "global_step",
    }
    assert {name.partition("/")[2] for name in names - dense} == {
        "frequencies",
        "initializer",
        "key_dtype",
        "keys",
        "last_steps",
        "parameters",
        "rows",
        "seed",
        "slot_initials",
        "slot_names",
        "slot_widths",
        "slots",
        "step",
        "stream_name",
    }


def test_a_variable_without_checkpoint_is_left_out(tmp_path):
    run(tmp_path, 1, checkpoint=False)
    names = {name for name, _ in tf.train.list_variables(str(tmp_path))}
    assert not any(name.startswith("user") for name in names)


@pytest.mark.parametrize("devices", [1, 3])
def test_eager_variables_restore_what_a_graph_saved(tmp_path, devices):
    _, records, _, absent = run(tmp_path / "run", 2)
    path = tf.train.latest_checkpoint(str(tmp_path / "run"))
    user = make(devices)
    user.upsert([4], [[1.0, 2.0]])
    tf.train.Checkpoint(user=user).restore(path)
    assert records_of(user) == records
    assert user.lookup([77]).numpy().tolist() == absent
    again = tf.train.Checkpoint(user=user).save(str(tmp_path / "again"))
    restored = make(2)
    tf.train.Checkpoint(user=restored).restore(again)
    assert restored.lookup([77]).numpy().tolist() == absent
    wide = make(devices, dim=3)
    with pytest.raises(ValueError, match="dim=2 in the file, 3 in the table"):
        tf.train.Checkpoint(user=wide).restore(path)


@pytest.mark.parametrize("devices", [1, 3])
def test_another_width_is_refused_and_nothing_is_restored(tmp_path, devices):
    with tf.Graph().as_default():
        user = make()
        store = user.upsert([1], [[1.0, 2.0]])
        saver = v1.train.Saver([user])
        with v1.Session() as session:
            session.run(store)
            path = saver.save(session, str(tmp_path / "model"))
    with tf.Graph().as_default():
        user = make(devices, dim=3)
        store = user.upsert([4], [[1.0, 2.0, 3.0]])
        keys, _ = user.export()
        saver = v1.train.Saver([user])
        with v1.Session() as session:
            session.run(store)
            with pytest.raises(
                tf.errors.InvalidArgumentError,
                match=r"dim in the table: 3. dim in the file:\] \[2\]",
            ):
                saver.restore(session, path)
            assert session.run(keys).tolist() == [4]


def test_c04_a_large_state_goes_into_a_small_table(tmp_path):
    keys = np.arange(1000)
    for init_size in (2000, 16):
        with tf.Graph().as_default():
            user = make(init_size=init_size)
            store = user.upsert(keys, np.ones((1000, 2)))
            size = user.size()
            saver = v1.train.Saver()
            with v1.Session() as session:
                if init_size > 1000:
                    session.run(store)
                    path = saver.save(session, str(tmp_path / "model"))
                else:
                    saver.restore(session, path)
                assert session.run(size) == 1000


@pytest.mark.parametrize("devices", [1, 2])
def test_c04_what_a_bound_drops_of_a_large_state_is_said(
    tmp_path, devices, capfd
):
    config = de.HkvHashTableConfig(
        max_capacity=100, evict_strategy=de.HkvEvictStrategy.LFU
    )
    used = [3, 333, 666, 998]
    path = str(tmp_path / "model")
    with tf.Graph().as_default():
        user = make()
        store = user.upsert(np.arange(1000), np.ones((1000, 2)))
        use = de.embedding_lookup(user, tf.constant(used, tf.int64))
        with v1.Session() as session:
            session.run(v1.local_variables_initializer())
            session.run(store)
            session.run(use)
            v1.train.Saver().save(session, path)
    with tf.Graph().as_default():
        user = make(devices, kv_creator=de.HkvHashTableCreator(config))
        size, kept = user.size(), user.lookup(used, return_exists=True)[1]
        with v1.Session() as session:
            v1.train.Saver().restore(session, path)
            left = int(session.run(size))
            assert session.run(kept).all()
    assert 90 <= left <= 100
    assert f"holds {1000 - left} records more" in capfd.readouterr().err


@pytest.mark.usefixtures("graph")
def test_a_checkpoint_of_objects_names_the_saver_to_use(tmp_path):
    checkpoint = tf.train.Checkpoint(user=make())
    with (
        v1.Session().as_default(),
        pytest.raises(NotImplementedError, match=r"v1\.train\.Saver"),
    ):
        checkpoint.save(str(tmp_path / "model"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_rows_are_saved_as_they_are(tmp_path, dtype):
    path = str(tmp_path / "model")
    read = []
    for is_new in (True, False):
        with tf.Graph().as_default():
            user = make(value_dtype=dtype)
            store = user.upsert([1], [[1.5, -2.5]])
            rows = tf.cast(user.lookup([1]), tf.float32)
            saver = v1.train.Saver()
            with v1.Session() as session:
                if is_new:
                    session.run(store)
                    saver.save(session, path)
                else:
                    saver.restore(session, path)
                read.append(session.run(rows).tolist())
    assert read == [[[1.5, -2.5]]] * 2


def test_a_saver_of_listed_variables_passes_over_trainables(tmp_path):
    with tf.Graph().as_default():
        model = Model()
        saver = de.train.DEHvdSaver([model.user, *v1.trainable_variables()])
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(v1.local_variables_initializer())
            session.run(model.train)
            saved = model.records(session)
            path = saver.save(session, str(tmp_path / "model"))
            session.run(model.train)
            assert model.records(session) != saved
            saver.restore(session, path)
            assert model.records(session) == saved
    names = {name for name, _ in tf.train.list_variables(path)}
    assert "dense" in names
    assert "embeddings" not in names


def test_eager_variables_are_not_touched_by_those_of_graphs():
    eager = make()
    eager.upsert([1], [[1.0, 2.0]])
    with tf.Graph().as_default():
        user = make()
        size = user.size()
        with v1.Session() as session:
            assert session.run(size) == 0
    assert list(records_of(eager)) == [1]


_WITHOUT_EAGER = """
import sys
import tensorflow as tf
import embedra.dynamic_embedding as de

v1 = tf.compat.v1
# Eager execution too is switched off by this.
v1.disable_v2_behavior()
user = de.get_variable("user", dim=2, initializer=0.5)
rows = de.embedding_lookup(user, tf.constant([1, 2, 2], tf.int64))
optimizer = de.DynamicEmbeddingOptimizer(v1.train.AdagradOptimizer(0.1))
train = optimizer.minimize(
    tf.reduce_sum(rows**2), global_step=v1.train.get_or_create_global_step()
)
keys, values = user.export()
save = user.save_to_file_system(sys.argv[1] + "/files")
load = user.load_from_file_system(sys.argv[1] + "/files")
found = []
for steps in (2, 1):
    with v1.train.MonitoredTrainingSession(
        checkpoint_dir=sys.argv[1], save_checkpoint_steps=1
    ) as session:
        found.append(session.run(values).tolist())
        for _ in range(steps):
            session.run(train)
        found.append(session.run(values).tolist())
        session.run(save)
        session.run(load)
        found.append(session.run(values).tolist())
print(found[0] == [], found[1] == found[2] == found[3] != found[4] == found[5])
"""


def test_a_process_without_eager_execution_trains_saves_and_restores(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_EAGER, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["True True"], done.stderr
