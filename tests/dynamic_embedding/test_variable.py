"""de.Variable: rows by id, names, sharing, and what is refused."""

import concurrent.futures
import copy
import functools
import gc
import pickle
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from numerics import assert_allclose


DEVICES = pytest.mark.parametrize(
    "devices", [None, ["/CPU:0"] * 3], ids=["one table", "three tables"]
)


def filled(devices=None, **kwargs):
    """Ids 0 to 9 with rows [id, -id]."""
    made = de.Variable(dim=2, name="user", devices=devices, **kwargs)
    made.upsert(np.arange(10), rows_of(np.arange(10)))
    return made


def rows_of(ids):
    return np.stack([ids, -np.asarray(ids)], axis=-1).astype(np.float32)


def exported(variable):
    keys, rows = variable.export()
    return dict(zip(keys.numpy().tolist(), rows.numpy().tolist(), strict=True))


# Rows by id.


@DEVICES
def test_rows_come_back_in_the_shape_of_the_ids(devices):
    user = filled(devices)
    ids = np.array([[3, 9, 3], [0, 5, 1]])
    assert_allclose(user.lookup(ids), rows_of(ids))
    assert user.lookup(np.zeros((0, 3), np.int64)).shape == (0, 3, 2)
    assert int(user.size()) == 10


@DEVICES
def test_lookup_says_which_ids_are_there_and_adds_none(devices):
    user = filled(devices, initializer=0.5)
    rows, exists = user.lookup([[3, 77], [-1, 9]], return_exists=True)
    np.testing.assert_array_equal(exists, [[True, False], [False, True]])
    expected = [[[3, -3], [0.5, 0.5]], [[0.5, 0.5], [9, -9]]]
    assert_allclose(rows, expected)
    assert int(user.size()) == 10


@DEVICES
def test_upsert_overwrites_and_the_last_of_a_repeated_id_wins(devices):
    user = filled(devices)
    user.upsert([[3, 50], [3, 3]], [[[1, 1], [2, 2]], [[3, 3], [4, 4]]])
    assert_allclose(user.lookup([3, 50, 4]), [[4, 4], [2, 2], [4, -4]])
    assert int(user.size()) == 11


@DEVICES
def test_remove_and_clear(devices):
    user = filled(devices)
    user.remove([3, 3, 404])
    assert int(user.size()) == 9
    _, exists = user.lookup([3, 4], return_exists=True)
    np.testing.assert_array_equal(exists, [False, True])
    user.clear()
    assert int(user.size()) == 0
    assert exported(user) == {}


@DEVICES
def test_export_gives_every_id_once(devices):
    expected = {i: [i, -i] for i in range(10)}
    assert exported(filled(devices)) == expected


def test_size_by_device_adds_up():
    user = filled(["/CPU:0"] * 3)
    sizes = [int(user.size(i)) for i in range(3)]
    assert sum(sizes) == 10
    assert all(size < 10 for size in sizes)


@DEVICES
def test_accum_adds_to_ids_that_are_there_and_creates_the_others(devices):
    user = filled(devices)
    ids = [1, 2, 100, 200]
    old = np.float32([[1, -1], [0, 0], [7, 7], [0, 0]])
    new = np.float32([[2, 2], [5, 5], [8, 8], [9, 9]])
    # 2 is there though it was not, and 100 is not though it was: neither
    # delta is for what the table now holds.
    user.accum(ids, old, new, [True, False, True, False])
    expected = {i: [i, -i] for i in range(10)} | {1: [2, 2], 200: [9, 9]}
    assert exported(user) == expected


def test_deltas_of_threads_are_never_lost():
    user = de.Variable(dim=1, name="count")
    user.upsert([7], [[0.0]])

    def add():
        for _ in range(50):
            user.accum([7, 7], [[0.0]] * 2, [[1.0]] * 2, [True] * 2)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_allclose(user.lookup([7]), [[400.0]])


@DEVICES
def test_all_methods_work_in_a_function(devices):
    user = filled(devices)

    @tf.function
    def edit(ids):
        user.upsert(ids, tf.cast(tf.stack([ids, ids], -1), tf.float32))
        before = user.size()
        user.remove(ids[:1])
        user.accum(ids[1:], [[0.0, 0.0]], [[1.0, 1.0]], [True])
        rows, exists = user.lookup(ids, return_exists=True)
        keys, _ = user.export()
        return before, user.size(), rows, exists, tf.size(keys)

    before, after, rows, exists, count = edit(tf.constant([50, 60], tf.int64))
    assert (int(before), int(after), int(count)) == (12, 11, 11)
    np.testing.assert_array_equal(exists, [False, True])
    assert_allclose(rows, [[0, 0], [61, 61]])


@DEVICES
def test_all_methods_work_in_a_graph_of_tf1(devices):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        user = de.Variable(dim=2, name="user", devices=devices)
        ids = tf.compat.v1.placeholder(tf.int64, (None,))
        upsert = user.upsert(
            ids, tf.cast(tf.stack([ids, -ids], -1), tf.float32)
        )
        accum = user.accum([1], [[0.0, 0.0]], [[1.0, 1.0]], [True])
        remove, clear = user.remove([2]), user.clear()
        lookup, size, export = user.lookup(ids), user.size(), user.export()
        session.run(upsert, {ids: [1, 2, 3]})
        session.run(accum)
        session.run(remove)
        rows = session.run(lookup, {ids: [1, 2, 3]})
        assert_allclose(rows, [[2, 0], [0, 0], [3, -3]])
        keys, _ = session.run(export)
        assert sorted(keys) == [1, 3]
        session.run(clear)
        assert session.run(size) == 0


def test_string_ids_have_rows():
    word = de.Variable(tf.string, dim=1, name="word", devices=["/CPU:0"] * 2)
    word.upsert(
        [["a", "žluťoučký 🐎"], ["", "b"]], np.arange(4).reshape(2, 2, 1)
    )
    word.remove(["b"])
    word.accum(["a"], [[0.0]], [[10.0]], [True])
    rows, exists = word.lookup(["", "b", "a"], return_exists=True)
    assert_allclose(rows, [[2], [0], [10]])
    np.testing.assert_array_equal(exists, [True, False, True])


@pytest.mark.parametrize("dtype", ["int32", "uint64", "int8"])
def test_ids_of_any_integer_dtype_are_the_same_ids(dtype):
    user = de.Variable(dtype, dim=2, name="user")
    user.upsert(np.array([5], dtype), [[1.0, 2.0]])
    assert_allclose(user.lookup(tf.constant([5], tf.int64)), [[1.0, 2.0]])
    assert user.key_dtype == tf.as_dtype(dtype)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_rows_are_of_the_value_dtype(dtype):
    user = de.Variable(dim=2, value_dtype=dtype, name="user", initializer=0.1)
    assert user.value_dtype == dtype
    assert user.lookup([1]).dtype == dtype
    user.upsert([1], [[1.0, 2.0]])
    user.accum([1], [[0.0, 0.0]], [[1.0, 1.0]], [True])
    rows = de.embedding_lookup(user, [1, 2])
    assert rows.dtype == dtype
    assert_allclose(rows, [[2.0, 3.0], [0.1, 0.1]], rtol=1e-2)


def test_one_initializer_gives_two_variables_other_rows():
    normal = keras.initializers.RandomNormal()
    a, b = (de.Variable(dim=4, name=name, initializer=normal) for name in "ab")
    rows = np.concatenate([v.lookup([1, 2]).numpy() for v in (a, b)])
    assert len(np.unique(rows)) == 16


@pytest.mark.parametrize(
    ("initializer", "expected"),
    [
        (None, [0.0, 0.0]),
        (2, [2.0, 2.0]),
        ([1.0, 2.0], [1.0, 2.0]),
        (lambda shape: tf.ones(shape), [1.0, 1.0]),
        (functools.partial(keras.initializers.Constant, 3.0), [3.0, 3.0]),
    ],
)
def test_initializers(initializer, expected):
    user = de.Variable(dim=2, name="user", initializer=initializer)
    assert_allclose(de.embedding_lookup(user, [5]), [expected])


# Names and sharing.


def test_variables_of_a_shared_name_are_one_table():
    a = de.Variable(dim=2, name="a", shared_name="both", devices=["/CPU:0"] * 2)
    b = de.Variable(dim=2, name="b", shared_name="both", devices=["/CPU:0"] * 2)
    a.upsert([1, 2], [[1, 1], [2, 2]])
    assert_allclose(b.lookup([1, 2]), [[1, 1], [2, 2]])
    assert [x is y for x, y in zip(a.tables, b.tables, strict=True)] == [
        True
    ] * 2


@pytest.mark.parametrize(
    ("argument", "match"),
    [
        ({"dim": 3}, "dim=3 here, 2 there"),
        ({"value_dtype": tf.float16}, "'float16' here, 'float32' there"),
        ({"key_dtype": tf.string}, "'string' here, 'int64' there"),
        ({"devices": ["/CPU:0"] * 2}, "2 devices.*another number"),
    ],
)
def test_a_shared_name_with_another_shape_is_refused(argument, match):
    kept = de.Variable(dim=2, name="kept", shared_name="once")
    with pytest.raises(ValueError, match=f"'asks' .*'once'.*{match}"):
        de.Variable(
            **({"dim": 2, "name": "asks", "shared_name": "once"} | argument)
        )
    assert int(kept.size()) == 0


def test_a_shared_name_is_free_again_when_its_variables_are_gone():
    first = de.Variable(dim=2, name="first", shared_name="freed")
    first.trainable_of(None)
    del first
    gc.collect()
    assert de.Variable(dim=3, name="next", shared_name="freed").dim == 3


@pytest.fixture
def names():
    """Names for `get_variable`, deleted afterwards."""
    given = []

    def name(text):
        given.append(text)
        return text

    yield name
    for text in given:
        de.delete_variable(text)


@pytest.mark.parametrize(
    "initializer",
    [None, "uniform", 0.5, np.array([1.0, 2.0]), keras.initializers.Ones()],
    ids=["none", "name", "number", "row", "object"],
)
def test_get_variable_gives_the_same_one_again(names, initializer):
    name = names("again")
    kwargs = {"dim": 2, "initializer": initializer}
    first = de.get_variable(name, **kwargs)
    assert de.get_variable(name, tf.int64, tf.float32, **kwargs) is first
    assert first.name == name


@pytest.mark.parametrize("shared_name", [None, "race"])
def test_get_variable_gives_all_threads_the_same_one(names, shared_name):
    name = names("race")
    start = threading.Barrier(8)

    def get(_):
        start.wait()
        return de.get_variable(name, dim=2, shared_name=shared_name)

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        variables = list(threads.map(get, range(8)))
    assert all(variable is variables[0] for variable in variables)


def test_get_variable_takes_two_unseeded_initializers_for_equal(names):
    name = names("unseeded")
    made = [
        de.get_variable(name, dim=2, initializer=keras.initializers.HeNormal())
        for _ in range(2)
    ]
    assert made[0] is made[1]


@pytest.mark.parametrize(
    "argument",
    [
        {"dim": 3},
        {"value_dtype": tf.float16},
        {"key_dtype": tf.int32},
        {"devices": "/CPU:0"},
        {"initializer": 1.0},
        {"trainable": False},
    ],
    ids=lambda argument: next(iter(argument)),
)
def test_get_variable_refuses_other_arguments(names, argument):
    name = names("conflict")
    de.get_variable(name, dim=2)
    (field,) = argument
    with pytest.raises(ValueError, match=rf"'conflict'.*{field}=.* there"):
        de.get_variable(name, **({"dim": 2} | argument))


def test_get_variable_in_a_variable_scope_has_its_name(names):
    with tf.Graph().as_default(), tf.compat.v1.variable_scope("tower"):
        inner = de.get_variable("user", dim=2)
        assert inner.name == "tower/user"
        assert de.get_variable("user", dim=2) is inner
    with tf.Graph().as_default():
        assert de.get_variable("tower/user", dim=3) is not inner
    outer = de.get_variable(names("tower/user"), dim=4)
    assert outer.dim == 4


def test_delete_variable_forgets_a_name():
    first = de.get_variable("short-lived", dim=2)
    de.delete_variable("short-lived")
    second = de.get_variable("short-lived", dim=3)
    assert second is not first
    de.delete_variable("short-lived")
    with pytest.raises(ValueError, match="'short-lived'"):
        de.delete_variable("short-lived")


def test_a_function_says_which_variable_was_deleted():
    function = tf.function(lambda ids: de.get_variable("gone").lookup(ids))
    ids = tf.constant([1], tf.int64)
    function(ids)
    de.delete_variable("gone")
    gc.collect()
    with pytest.raises(tf.errors.FailedPreconditionError, match="'gone'"):
        function(ids)


# What is refused.


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_variables_are_not_copied(duplicate):
    with pytest.raises(TypeError, match=r"'user'.*tf\.train\.Checkpoint"):
        duplicate(filled())


def test_repr_names_the_variable_and_its_dtypes():
    user = filled(key_dtype=tf.int32, value_dtype=tf.float16)
    expected = "<de.Variable 'user' dim=2 key_dtype=int32 value_dtype=float16>"
    assert repr(user) == expected
    assert expected in repr(user.trainable_of("x"))
    assert "'x'" in repr(user.trainable_of("x"))


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.bool])
@pytest.mark.parametrize("method", ["lookup", "remove"])
def test_ids_that_are_not_integers_are_refused(method, dtype):
    ids = tf.cast([0, 1], dtype)
    with pytest.raises(TypeError, match=f"'user'.*{dtype.name}"):
        getattr(filled(), method)(ids)


@pytest.mark.parametrize("shape", [(1, 3), (2, 2), (2,)])
def test_rows_of_another_shape_are_refused(shape):
    user = filled()
    with pytest.raises(ValueError, match=r"`values`.*'user'.*\(1, 2\)"):
        user.upsert([1], np.zeros(shape))
    row = np.zeros((1, 2))
    with pytest.raises(ValueError, match=r"`new_values`.*'user'.*\(1, 2\)"):
        user.accum([1], row, np.zeros(shape), [True])
    with pytest.raises(ValueError, match=r"`old_values`.*'user'.*\(1, 2\)"):
        user.accum([1], np.zeros(shape), row, [True])
    with pytest.raises(ValueError, match=r"`exists`.*'user'.*\(1,\).*\(2,\)"):
        user.accum([1], row, row, [True, False])
    assert exported(user)[1] == [1, -1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"dim": 0},
        {"dim": 2.0},
        {"value_dtype": tf.int32},
        {"key_dtype": tf.float32},
        {"initializer": [1.0, 2.0, 3.0]},
    ],
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(ValueError, match=r"Received: "):
        de.Variable(**({"dim": 2, "name": "wrong"} | arguments))


def test_restrict_without_a_policy_names_the_variable():
    with pytest.raises(ValueError, match="'user'.*restrict_policy"):
        filled().restrict(1)


def test_a_trainable_that_was_never_made_is_named():
    user = filled()
    de.embedding_lookup(user, [1], name="seen")
    with pytest.raises(ValueError, match=r"'user'.*'unseen'.*\['seen'\]"):
        user.get_trainable_by_name("unseen")
