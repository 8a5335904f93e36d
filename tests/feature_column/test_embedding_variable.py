"""Embedding variables: admission, eviction, names, lookups of `tf.nn`."""

import re

import numpy as np
import pytest
import tensorflow as tf

import embedra
import embedra.compat.v1 as tf1
from embedra import feature_column as fc
from embedra.dynamic_embedding import embedding_variable as ev

from .batches import train, v1


def variable(name="user", dim=2, initializer=1.0, **options):
    """A variable of rows of ones, by name in the current graph."""
    return tf1.get_embedding_variable(
        name,
        dim,
        initializer=initializer,
        ev_option=ev.EmbeddingVariableOption(**options),
    )


@pytest.fixture(autouse=True)
def _own_scope(request):
    with v1.variable_scope(re.sub(r"\W", "_", request.node.name)):
        yield


def step(table, ids, rate=0.0):
    """Makes one step of plain gradient descent; returns what was read."""
    optimizer = embedra.DynamicEmbeddingOptimizer(
        v1.train.GradientDescentOptimizer(rate)
    )
    with tf.GradientTape() as tape:
        rows = tf1.nn.embedding_lookup(table, ids)
        loss = tf.reduce_sum(rows)
    watched = tape.watched_variables()
    optimizer.apply_gradients(
        zip(tape.gradient(loss, watched), watched, strict=True)
    )
    return rows.numpy()[:, 0].tolist()


def counts(table):
    """Numbers of ids that have a row, and that wait."""
    return int(table.size()), int(table.candidates.size())


FILTERS = [
    ev.CounterFilter(filter_freq=3),
    ev.CBFFilter(
        filter_freq=3, max_element_size=100, false_positive_probability=0.01
    ),
]


@pytest.mark.parametrize("rule", FILTERS, ids=["counter", "cbf"])
def test_ids_read_as_the_default_until_they_were_seen_often_enough(rule):
    table = variable(filter_option=rule)
    assert [step(table, [7], 0.5) for _ in range(3)] == [[0.0]] * 3
    assert step(table, [7], 0.5) == [1.0]
    assert step(table, [7], 0.5) == [0.5]
    assert counts(table) == (1, 0)


def test_e01_each_occurrence_in_a_batch_counts():
    table = variable(filter_option=ev.CounterFilter(3))
    assert step(table, [7, 7, 7, 8]) == [0.0] * 4
    assert counts(table) == (1, 1)
    assert step(table, [7, 8]) == [1.0, 0.0]


def test_ids_that_wait_are_in_no_export_and_are_not_trained():
    table = variable(filter_option=ev.CounterFilter(3))
    for _ in range(2):
        step(table, [7, 8, 8], 0.5)
    keys, rows = table.export()
    assert keys.numpy().tolist() == [8]
    assert rows.numpy().tolist() == [[1.0, 1.0]]
    assert step(table, [7, 8], 0.5) == [0.0, 1.0]


def test_k09_reading_counts_nothing():
    table = variable(filter_option=ev.CounterFilter(1))
    for _ in range(3):
        tf1.nn.embedding_lookup(table, [7])
    with embedra.scope(mode="eval"), tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf1.nn.embedding_lookup(table, [7]))
    assert tape.gradient(loss, table.trainable_variable.value) is None
    assert counts(table) == (0, 0)


def test_what_ids_read_as_that_wait_can_be_chosen():
    table = variable(
        filter_option=ev.CounterFilter(2),
        init_option=ev.InitializerOption(default_value_no_permission=0.25),
    )
    assert [step(table, [7]) for _ in range(3)] == [[0.25], [0.25], [1.0]]


def test_pooled_lookups_take_waiting_ids_for_the_default():
    table = variable(filter_option=ev.CounterFilter(2))
    step(table, [7, 7])
    ids = tf.ragged.constant([[7, 8], [7], []], dtype=tf.int64)
    pooled = tf1.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")
    assert pooled[:, 0].numpy().tolist() == [0.5, 1.0, 0.0]


def test_of_too_many_waiting_ids_the_least_seen_are_forgotten():
    table = variable(filter_option=FILTERS[1])
    step(table, [1, 1])
    for start in range(2, 400, 20):
        step(table, np.arange(start, start + 20))
    assert counts(table)[1] <= 100
    step(table, [1])
    assert int(table.size()) == 1


@pytest.mark.parametrize("eagerly", [True, False], ids=["eager", "graph"])
def test_counts_go_on_from_a_checkpoint(tmp_path, eagerly):
    def seen_in_graph(steps):
        def make():
            table = variable("seen", filter_option=ev.CounterFilter(3))
            rows = tf1.nn.embedding_lookup(table, [7, 8])
            return rows, table.size()

        return train(make, steps, tmp_path)

    def seen_eagerly(name, steps, path=None):
        table = variable(name, filter_option=ev.CounterFilter(3))
        checkpoint = tf.train.Checkpoint(table=table)
        if path:
            checkpoint.restore(path).assert_consumed()
        for _ in range(steps):
            step(table, [7, 8])
        return int(table.size()), checkpoint.save(str(tmp_path / name))

    if eagerly:
        size, path = seen_eagerly("first", 2)
        assert size == 0
        assert seen_eagerly("second", 1, path)[0] == 2
    else:
        assert seen_in_graph(2)[1][1] == 0
        assert seen_in_graph(1)[1][1] == 2


def evicting_in_graph(folder, option, ids, **kwargs):
    """Trains on a batch for each step in a graph that saves at the end."""
    with tf.Graph().as_default():
        table = variable("evicted", evict_option=option, **kwargs)
        batch = v1.placeholder(tf.int64, (None,))
        rows = tf1.nn.embedding_lookup(table, batch)
        training = embedra.DynamicEmbeddingOptimizer(
            v1.train.GradientDescentOptimizer(0.5)
        ).minimize(tf.reduce_sum(rows))
        size, saver = table.size(), v1.train.Saver()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(v1.local_variables_initializer())
            for one in ids:
                session.run(training, {batch: one})
            path = saver.save(session, str(folder / "model"))
            assert session.run(size) == len(_saved_keys(path))
    return _saved_keys(path)


def _saved_keys(path):
    reader = tf.train.load_checkpoint(path)
    (name,) = [
        n for n in reader.get_variable_to_shape_map() if n.endswith("d/keys")
    ]
    return sorted(reader.get_tensor(name).tolist())


BATCHES = [[1, 2], [1], [1], [1, 3]]


@pytest.mark.parametrize(
    ("steps_to_live", "kept"), [(4, [1, 2, 3]), (3, [1, 3]), (None, [1, 2, 3])]
)
def test_ids_that_were_long_not_used_go_when_a_graph_is_saved(
    tmp_path, steps_to_live, kept
):
    option = ev.GlobalStepEvict(steps_to_live)
    assert evicting_in_graph(tmp_path, option, BATCHES) == kept


def test_short_rows_go_when_a_graph_is_saved(tmp_path):
    # Rows are sqrt(2) * |1 - steps / 2| long.
    option = ev.L2WeightEvict(0.5)
    assert evicting_in_graph(tmp_path, option, BATCHES) == [1, 2, 3]
    assert evicting_in_graph(tmp_path, option, BATCHES[:2]) == [2]


@pytest.mark.parametrize(
    ("option", "kept"),
    [(ev.GlobalStepEvict(3), [1, 3]), (ev.L2WeightEvict(0.8), [1])],
    ids=["steps", "length"],
)
def test_ids_go_when_a_checkpoint_of_objects_is_saved(tmp_path, option, kept):
    table = variable(evict_option=option)
    for ids in BATCHES:
        step(table, ids, 0.5)
    tf.train.Checkpoint(table=table).save(str(tmp_path / "model"))
    assert sorted(table.export()[0].numpy().tolist()) == kept


def test_an_evicted_id_starts_afresh(tmp_path):
    table = variable(evict_option=ev.GlobalStepEvict(1))
    for ids in ([1, 2], [1], [1]):
        step(table, ids, 0.5)
    tf.train.Checkpoint(table=table).save(str(tmp_path / "model"))
    assert table.rows([1, 2])[:, 0].numpy().tolist() == [-0.5, 1.0]


def test_a_name_is_one_variable_in_its_scope():
    first = tf1.get_embedding_variable("user", 2)
    assert tf1.get_embedding_variable("user", 2) is first
    with v1.variable_scope("inner"):
        assert tf1.get_embedding_variable("user", 2) is not first
    with tf.Graph().as_default():
        assert tf1.get_embedding_variable("user", 2) is not first
    with pytest.raises(ValueError, match="'.*user'.*dim=3 here, 2 there"):
        tf1.get_embedding_variable("user", 3)
    with pytest.raises(ValueError, match=r"CounterFilter\(filter_freq=2\)"):
        variable(initializer=None, filter_option=ev.CounterFilter(2))


def test_names_of_deeprec_are_where_programs_look_for_them():
    for name in (
        "CBFFilter",
        "CounterFilter",
        "EmbeddingVariableOption",
        "GlobalStepEvict",
        "InitializerOption",
        "L2WeightEvict",
        "StorageOption",
        "get_embedding_variable",
    ):
        assert getattr(tf1, name) is getattr(embedra, name)
    table = tf1.get_embedding_variable("user", 2, steps_to_live=5)
    assert table.ev_option.evict_option == ev.GlobalStepEvict(5)


def test_columns_have_the_rules_of_their_option():
    option = ev.EmbeddingVariableOption(filter_option=ev.CounterFilter(2))
    ids = fc.categorical_column_with_embedding(
        "user", tf.int64, ev_option=option
    )
    column = fc.embedding_column(ids, 2, initializer=1.0)

    def make():
        with v1.variable_scope("net"):
            return (fc.input_layer({"user": tf.constant([7])}, column),)

    before, after = train(make, 1)
    assert before[0].tolist() == after[0].tolist() == [[0.0, 0.0]]
    _, after = train(make, 2)
    assert after[0].tolist() == [[1.0, 1.0]]


IDS = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [7, -8, 9], [4, 2])
WEIGHTS = tf.SparseTensor(IDS.indices, [2.0, 0.5, -1.0], IDS.dense_shape)


def test_lookups_of_nn_are_those_of_tables():
    table = tf1.get_embedding_variable("user", 2)
    table.variable.upsert([7, -8, 9, 0], [[1, 2], [3, 4], [5, 6], [7, 8]])
    rows = tf1.nn.embedding_lookup(table, [[7, -8]])
    assert rows.numpy().tolist() == [[[1, 2], [3, 4]]]
    ragged = tf.ragged.constant([[7], [], [-8, 9]], dtype=tf.int64)
    assert tf1.nn.embedding_lookup([table], ragged).to_list() == [
        [[1, 2]],
        [],
        [[3, 4], [5, 6]],
    ]
    pooled = tf1.nn.embedding_lookup_sparse(table, IDS, WEIGHTS, combiner="sum")
    expected = [[3.5, 6.0], [0, 0], [-5.0, -6.0], [0, 0]]
    np.testing.assert_allclose(pooled, expected)
    safe = tf1.nn.safe_embedding_lookup_sparse(
        table, IDS, WEIGHTS, combiner="mean", default_id=0
    )
    np.testing.assert_allclose(
        safe, [[3.5 / 2.5, 6.0 / 2.5], [7, 8], [7, 8], [7, 8]]
    )


def test_lookups_of_nn_take_dense_variables_and_de_variables_too():
    dense = tf.reshape(tf.range(20.0), (10, 2))
    np.testing.assert_array_equal(
        tf1.nn.embedding_lookup(dense, [3]), [[6.0, 7.0]]
    )
    grown = embedra.dynamic_embedding.Variable(dim=2, initializer=3.0)
    np.testing.assert_array_equal(
        tf1.nn.embedding_lookup(grown, [3]), [[3.0, 3.0]]
    )
    assert tf1.nn.relu is v1.nn.relu


def test_lookups_of_nn_take_one_table_by_any_name():
    table = variable()
    ids = tf.SparseTensor([[0, 0]], np.array([7]), [1, 1])
    rows = [
        tf1.nn.embedding_lookup(params=table, ids=[7]),
        tf1.nn.embedding_lookup_sparse(
            params=table, sp_ids=ids, sp_weights=None
        ),
        tf1.nn.safe_embedding_lookup_sparse(
            embedding_weights=table, sparse_ids=ids
        ),
    ]
    np.testing.assert_array_equal(rows, np.ones((3, 1, 2)))
    with pytest.raises(TypeError, match="takes one table"):
        tf1.nn.embedding_lookup([table, table], [7])


def test_strings_are_ids():
    table = tf1.get_embedding_variable("word", 2, key_dtype=tf.string)
    step(table, ["a", "", "a"])
    assert int(table.size()) == 2
    with pytest.raises(TypeError, match="string"):
        tf1.nn.embedding_lookup(table, [7])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: ev.StorageOption(ev.StorageType.HBM_DRAM),
            NotImplementedError,
            r"must be StorageType\.DRAM\. Received: .*HBM_DRAM",
        ),
        (lambda: ev.StorageOption("SSDHASH"), NotImplementedError, "SSDHASH"),
        (
            lambda: tf1.get_embedding_variable("user", 2, ev_option=3),
            TypeError,
            "`ev_option` of embedding variable 'user' must be .* Received: 3",
        ),
        (
            lambda: tf1.get_embedding_variable("user", 2, partitioner=3),
            TypeError,
            "`partitioner`.*must be a function.*Received: 3",
        ),
        (lambda: ev.CounterFilter(-1), ValueError, "Received: -1"),
        (lambda: ev.CounterFilter(1.5), ValueError, "Received: 1.5"),
        (
            lambda: ev.CBFFilter(3, 0, 0.01),
            ValueError,
            "max_element_size=0, false_positive_probability=0.01",
        ),
        (lambda: ev.CBFFilter(3, 10, 2.0), ValueError, "Received: 2.0"),
        (lambda: ev.GlobalStepEvict(-3), ValueError, "Received: -3"),
        (lambda: ev.L2WeightEvict(0.0), ValueError, "Received: 0.0"),
        (
            lambda: ev.EmbeddingVariableOption(filter_option=3),
            TypeError,
            "`filter_option`.*CounterFilter or CBFFilter. Received: 3",
        ),
        (
            lambda: ev.EmbeddingVariableOption(ckpt="model"),
            NotImplementedError,
            "warm_start",
        ),
        (
            lambda: tf1.get_embedding_variable(
                "user", 2, regularizer=tf.nn.l2_loss
            ),
            NotImplementedError,
            "'user' was given what is not supported.*regularizer",
        ),
        (
            lambda: tf1.get_embedding_variable(
                "user",
                2,
                steps_to_live=3,
                ev_option=ev.EmbeddingVariableOption(),
            ),
            ValueError,
            "steps_to_live=3 and ev_option",
        ),
        (
            lambda: tf1.nn.embedding_lookup(variable(), IDS),
            TypeError,
            "embedding_lookup_sparse",
        ),
        (
            lambda: tf1.nn.embedding_lookup_sparse(
                variable(), IDS, None, combiner="max"
            ),
            ValueError,
            "'max'",
        ),
        (
            lambda: embedra.dynamic_embedding.embedding_lookup(variable(), [1]),
            TypeError,
            "EmbeddingVariable",
        ),
    ],
)
def test_what_is_not_supported_is_refused(make, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        make()


def test_storage_in_memory_is_what_can_be_named():
    assert ev.StorageOption(ev.StorageType.DRAM) == ev.StorageOption("DRAM")
