"""input_layer and dense_features: values, names, stock columns among them."""

import re

import numpy as np
import pytest
import tensorflow as tf

import embedra
from embedra import dynamic_embedding as de, feature_column as fc
from embedra.dynamic_embedding import embedding_variable

from .batches import evaluate, features, train, user_column, v1, word_column


@pytest.fixture(autouse=True)
def _own_scope(request):
    """Gives each test names of its own: they are the process's eagerly."""
    name = re.sub(r"\W", "_", request.node.name)
    with v1.variable_scope(name):
        yield


@pytest.fixture
def look_up():
    """Looks up a column of ids, of which each has a row that says it."""

    def call(ids, **kwargs):
        column = user_column(initializer=0.0, **kwargs)
        table = embedding_variable.get_embedding_variable(
            "input_layer/user_embedding/embedding_weights", 2
        )
        keys = np.arange(-3, 10)
        table.variable.upsert(keys, np.stack([keys, keys], axis=1))
        return fc.input_layer({"user": ids}, [column])

    return call


@pytest.mark.parametrize(
    ("ids", "first"),
    [
        ([7, -1, 8], 7.0),
        ([[7, 9], [-1, -1], [8, -1]], 8.0),
        (tf.ragged.constant([[7, 9], [], [8]], dtype=tf.int64), 8.0),
        (tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [7, 9, 8], [3, 2]), 8.0),
    ],
    ids=["one", "padded", "ragged", "sparse"],
)
def test_ids_of_any_structure_are_pooled_by_example(look_up, ids, first):
    rows = look_up(ids)
    np.testing.assert_array_equal(rows, [[first] * 2, [0.0] * 2, [8.0] * 2])


@pytest.mark.parametrize(
    ("combiner", "expected"),
    [("sum", 16.0), ("mean", 8.0), ("sqrtn", 16.0 / np.sqrt(2))],
)
def test_combiners(look_up, combiner, expected):
    rows = look_up([[7, 9]], combiner=combiner)
    np.testing.assert_allclose(rows, [[expected] * 2], rtol=1e-6)


def test_l14_negative_ids_are_ids(look_up):
    sparse = tf.SparseTensor([[0, 0], [1, 0]], [-1, -2], [2, 1])
    np.testing.assert_array_equal(look_up(sparse), [[-1.0] * 2, [-2.0] * 2])
    np.testing.assert_array_equal(look_up([-3, -2]), [[-3.0] * 2, [-2.0] * 2])


def test_b12_placeholders_of_unknown_rank_are_features():
    with tf.Graph().as_default():
        sparse = v1.sparse_placeholder(tf.string, name="word")
        dense = v1.placeholder(tf.int64, name="user")
        columns = [word_column(3), user_column(2)]
        joined = fc.input_layer({"word": sparse, "user": dense}, columns)
        assert joined.shape.as_list() == [None, 5]
        with v1.Session() as session:
            session.run(v1.local_variables_initializer())
            for words, shape in (
                ([[0, 0], [0, 1]], [2, 2]),
                ([[0, 0, 1], [0, 1, 0]], [2, 2, 2]),
                ([[0], [0]], [2]),
            ):
                ids = v1.SparseTensorValue(words, ["a", "b"], shape)
                given = {sparse: ids, dense: [7, 8]}
                rows = session.run(joined, given)
                np.testing.assert_array_equal(
                    rows, [[0.5] * 5, [0.5] * 2 + [0.0] * 3]
                )


def test_lookups_of_columns_build_no_functions():
    with tf.Graph().as_default() as graph:
        fc.input_layer(features(), [user_column(), word_column()])
        built = graph.as_graph_def()
    assert not built.library.function
    # A graph has a hundred columns, and each op takes a millisecond to make.
    assert len(built.node) <= 90


def test_sparse_ids_out_of_order_are_told():
    ids = tf.SparseTensor([[1, 0], [0, 0]], [7, 8], [2, 1])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="user_embedding.*row-major"
    ):
        fc.input_layer({"user": ids}, [user_column()])


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ([7], TypeError, "`features` must be a dict"),
        ({"user": None}, ValueError, "Feature 'user' must be .* None"),
        ({"item": [7]}, ValueError, "user"),
    ],
    ids=["list", "none", "missing"],
)
def test_features_that_are_not_there_are_told(given, error, said):
    with pytest.raises(error, match=said):
        fc.input_layer(given, [user_column()])


def test_missing_ids_of_dense_features_can_be_ids():
    ids = fc.categorical_column_with_embedding(
        "user", tf.int64, drop_missing=False
    )
    kept = fc.embedding_column(ids, 1, initializer=3.0)
    rows = fc.input_layer({"user": [-1, -2]}, [kept])
    np.testing.assert_array_equal(rows, [[3.0], [3.0]])


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "uint64"])
def test_l05_integers_of_any_width_are_the_same_ids(look_up, dtype):
    rows = look_up(tf.constant([5, 7], dtype))
    np.testing.assert_array_equal(rows, [[5.0] * 2, [7.0] * 2])


def test_max_norm_shortens_rows_before_they_are_combined(look_up):
    rows = look_up([[7, 9]], max_norm=np.sqrt(2), combiner="sum")
    np.testing.assert_allclose(rows, [[2.0, 2.0]], rtol=1e-6)


def test_columns_are_joined_by_name_among_stock_ones():
    def make():
        columns = [
            word_column(3, initializer=0.25),
            fc.numeric_column("age"),
            user_column(2),
            fc.indicator_column(
                fc.categorical_column_with_identity("user", 10)
            ),
        ]
        tensors = {}
        joined = fc.input_layer(
            features(), columns, cols_to_output_tensors=tensors
        )
        return joined, [tensors[column] for column in columns]

    joined, (word, age, user, indicator) = evaluate(make)
    np.testing.assert_array_equal(
        joined, np.concatenate([age, user, indicator, word], axis=1)
    )
    np.testing.assert_array_equal(word, [[0.25] * 3, [0.25] * 3, [0.0] * 3])


def test_dense_features_keep_the_order_given():
    columns = [word_column(3), fc.numeric_column("age"), user_column(2)]
    widths = [
        tensor.shape[1] for tensor in fc.dense_features(features(), columns)
    ]
    assert widths == [3, 1, 2]


def test_stock_functions_take_columns_of_tables():
    def make():
        columns = [word_column(3), user_column(2), fc.numeric_column("age")]
        return v1.feature_column.input_layer(features(), columns)

    assert evaluate(make).shape == (3, 6)


def test_a_stock_embedding_column_over_ids_without_vocabulary_works():
    ids = fc.categorical_column_with_embedding("user", tf.int64)
    column = tf.feature_column.embedding_column(
        ids, 2, initializer=v1.ones_initializer()
    )
    tensors = {}
    fc.input_layer({"user": [7]}, [column], cols_to_output_tensors=tensors)
    np.testing.assert_array_equal(tensors[column], [[1.0, 1.0]])
    with pytest.raises(ValueError, match=r"embedra\.feature_column\.embedding"):
        v1.feature_column.input_layer({"user": [7]}, [column])


def test_training_moves_rows_of_the_batch_alone():
    def make():
        with v1.variable_scope("net", reuse=v1.AUTO_REUSE):
            rows = fc.input_layer(features(), [user_column()])
            others = fc.input_layer({"user": [99]}, [user_column()])
        return rows, others

    before, after = train(make, 3)
    np.testing.assert_array_equal(before[0], [[0.5, 0.5]] * 3)
    # Id 7 is there twice, and takes steps twice as long.
    np.testing.assert_allclose(
        after[0],
        [[1 - 0.5 * 0.6**3] * 2, [1 - 0.5 * 0.8**3] * 2]
        + [[1 - 0.5 * 0.6**3] * 2],
        rtol=1e-5,
    )
    np.testing.assert_array_equal(after[1], [[0.5, 0.5]])


def test_gradients_match_those_of_dense_columns():
    def dense():
        column = tf.feature_column.embedding_column(
            tf.feature_column.categorical_column_with_identity("user", 10),
            2,
            initializer=v1.constant_initializer(0.5),
        )
        return (fc.input_layer(features(), [column]),)

    def dynamic():
        return (fc.input_layer(features(), [user_column()]),)

    _, (expected,) = train(dense, 4)
    _, (received,) = train(dynamic, 4)
    np.testing.assert_allclose(received, expected, rtol=1e-6)


@pytest.mark.parametrize("partitions", [None, 1, 4])
def test_names_are_those_of_scope_and_column(tmp_path, partitions):
    def make():
        partitioner = partitions and v1.fixed_size_partitioner(partitions)
        with v1.variable_scope("embedding", partitioner=partitioner):
            columns = [user_column(), word_column()]
            return [fc.input_layer(features(), [c]) for c in columns]

    train(make, 1, tmp_path)
    keys = {
        name.removesuffix("/keys")
        for name, _ in tf.train.list_variables(str(tmp_path))
        if name.endswith("/keys")
    }
    assert keys == {
        "embedding/input_layer/user_embedding/embedding_weights",
        "embedding/input_layer/word_embedding/embedding_weights",
    }


def test_another_graph_of_another_order_restores_the_same_tables(tmp_path):
    def make(columns):
        with v1.variable_scope("embedding"):
            return [fc.input_layer(features(), [c]) for c in columns]

    _, (user, word) = train(
        lambda: make([user_column(), word_column()]), 3, tmp_path
    )
    (restored,), _ = train(lambda: make([user_column()]), 0, tmp_path)
    np.testing.assert_array_equal(restored, user)
    assert word.any()


def test_features_may_have_any_name():
    key = "user: größe/1"
    ids = fc.categorical_column_with_embedding(key, tf.int64)
    column = fc.embedding_column(ids, 2, initializer=0.5)

    def make():
        given = {key: tf.constant([7])}
        return (
            fc.input_layer(given, [column]),
            fc.linear_model(given, [ids]),
        )

    before, after = train(make, 1)
    np.testing.assert_array_equal(before[0], [[0.5, 0.5]])
    assert not np.array_equal(before[0], after[0])


def test_c06_another_model_starts_warm_with_the_columns_it_has(tmp_path):
    def make(*columns):
        return lambda: tuple(fc.input_layer(features(), [c]) for c in columns)

    _, (user,) = train(make(user_column()), 3, tmp_path)
    with tf.Graph().as_default():
        rows = make(user_column(), word_column())()
        start = de.warm_start(str(tmp_path), ".*user_embedding")
        with v1.Session() as session:
            session.run(v1.local_variables_initializer())
            session.run(start)
            restored, fresh = session.run(rows)
    np.testing.assert_array_equal(restored, user)
    np.testing.assert_array_equal(fresh, [[0.5] * 2, [0.5] * 2, [0.0] * 2])


@pytest.mark.parametrize("reuse", [True, v1.AUTO_REUSE])
def test_a_reused_scope_has_the_same_tables(reuse):
    def make():
        with v1.variable_scope("embedding"):
            first = fc.input_layer(features(), [user_column()])
        with v1.variable_scope("embedding", reuse=reuse):
            second = fc.input_layer(features(), [user_column()])
        with v1.variable_scope("other"):
            third = fc.input_layer(features(), [user_column()])
        return first, second, third

    _, (first, second, third) = train(make, 2)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


def test_a_scope_that_is_not_reused_has_another_table_at_each_call():
    def make():
        return [fc.input_layer(features(), [user_column()]) for _ in range(2)]

    _, (first, second) = train(make, 2)
    assert not np.array_equal(first, second)


def test_k09_evaluation_creates_no_ids():
    with tf.Graph().as_default():
        cols_to_vars = {}
        column = user_column()
        rows = fc.input_layer(features(), [column], cols_to_vars=cols_to_vars)
        with v1.Session() as session:
            session.run(v1.local_variables_initializer())
            session.run(rows)
            (variable,) = cols_to_vars[column]
            assert session.run(variable.table_variable.params.size()) == 0


def test_what_is_not_trainable_stays():
    def make():
        with v1.variable_scope("net", reuse=v1.AUTO_REUSE):
            # Only one of the two calls trains the row.
            fixed = fc.input_layer(features(), [user_column()], trainable=False)
            moving = fc.input_layer({"user": tf.constant([7])}, [user_column()])
        return tf.concat([fixed[:1], moving], axis=1), fixed

    before, after = train(make, 1)
    np.testing.assert_array_equal(before[1], [[0.5, 0.5]] * 3)
    np.testing.assert_allclose(after[1], [[0.6, 0.6], [0.5, 0.5], [0.6, 0.6]])


def test_rows_of_columns_that_are_not_trainable_stay(tmp_path):
    def make(trainable):
        column = user_column(trainable=trainable)
        rows = fc.input_layer(features(), [column])
        weight = v1.get_variable(
            "w", shape=(), initializer=v1.ones_initializer()
        )
        return rows * weight, rows

    _, (_, rows) = train(lambda: make(True), 2, tmp_path)
    _, (moved, frozen) = train(lambda: make(False), 2, tmp_path)
    np.testing.assert_array_equal(frozen, rows)
    assert not np.array_equal(moved, rows)


def test_eager_calls_and_functions_train_the_same_table():
    optimizer = embedra.DynamicEmbeddingOptimizer(
        v1.train.GradientDescentOptimizer(0.1)
    )

    def step():
        rows = fc.input_layer({"user": [7]}, [user_column()])
        return tf.reduce_sum((rows - 1.0) ** 2)

    losses = []
    for call in (step, tf.function(step), step):
        with tf.GradientTape() as tape:
            loss = call()
        variables = tape.watched_variables()
        optimizer.apply_gradients(
            zip(tape.gradient(loss, variables), variables, strict=True)
        )
        losses.append(float(loss))
    np.testing.assert_allclose(losses, [0.5 * 0.64**i for i in range(3)], 1e-5)


def test_minimize_of_a_function_trains_eagerly():
    optimizer = embedra.DynamicEmbeddingOptimizer(
        v1.train.GradientDescentOptimizer(0.1)
    )

    def loss():
        rows = fc.input_layer({"user": [7]}, [user_column(initializer=0.0)])
        return tf.reduce_sum((rows - 1.0) ** 2)

    before = float(loss())
    optimizer.minimize(loss)
    assert float(loss()) == pytest.approx(0.64 * before)
