"""Columns by themselves: arguments, configs, shared tables, sequences."""

import re

import numpy as np
import pytest
import tensorflow as tf

import embedra.compat.v1 as compat
from embedra import feature_column as fc
from embedra.dynamic_embedding import embedding_variable as ev

from .batches import evaluate, train, user_column, v1


COLUMNS = tf.__internal__.feature_column


@pytest.fixture(autouse=True)
def _own_scope(request):
    with v1.variable_scope(re.sub(r"\W", "_", request.node.name)):
        yield


def words(**kwargs):
    return fc.categorical_column_with_embedding("word", **kwargs)


def hashed():
    return fc.categorical_column_with_hash_bucket("word", 10)


def test_columns_are_equal_if_they_are_made_alike():
    assert user_column() == user_column()
    assert hash(user_column()) == hash(user_column())
    assert user_column() != user_column(3)
    assert len({user_column(), user_column(), user_column(3)}) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: fc.embedding_column(words(), 3),
        lambda: fc.embedding_column(
            words(
                ev_option=ev.EmbeddingVariableOption(
                    filter_option=ev.CounterFilter(2),
                    evict_option=ev.L2WeightEvict(0.5),
                    init_option=ev.InitializerOption(0.5),
                )
            ),
            3,
            combiner="sum",
            max_norm=2.0,
        ),
        lambda: fc.embedding_column(
            fc.weighted_categorical_column(words(), "w"), 3, initializer="ones"
        ),
        lambda: fc.shared_embedding_columns([words()], 3)[0],
        lambda: fc.embedding_column(hashed(), 3, dynamic=True),
        lambda: fc.embedding_column(
            fc.sequence_categorical_column_with_embedding("word"), 3
        ),
    ],
    ids=["plain", "options", "weighted", "shared", "hashed", "sequence"],
)
def test_k03_configs_make_the_same_column(make):
    column = make()
    config = COLUMNS.serialize_feature_column(column)
    again = COLUMNS.deserialize_feature_column(
        config,
        custom_objects={
            cls.__name__: cls for cls in (type(column), type(words()))
        },
    )
    assert again == column


def test_parsing_reads_the_features_of_all_columns():
    columns = [
        user_column(),
        fc.embedding_column(fc.weighted_categorical_column(words(), "w"), 3),
        fc.numeric_column("age"),
        fc.categorical_column_with_embedding("small", tf.int32),
    ]
    assert fc.make_parse_example_spec(columns) == {
        "user": tf.io.VarLenFeature(tf.int64),
        "word": tf.io.VarLenFeature(tf.string),
        "w": tf.io.VarLenFeature(tf.float32),
        "age": tf.io.FixedLenFeature((1,), tf.float32),
        "small": tf.io.VarLenFeature(tf.int64),
    }
    with pytest.raises(ValueError, match="user"):
        fc.make_parse_example_spec(
            [user_column(), fc.categorical_column_with_embedding("user")]
        )


def test_parsed_examples_go_through_columns():
    example = tf.train.Example()
    example.features.feature["user"].int64_list.value.extend([7, 8])
    parsed = tf.io.parse_example(
        [example.SerializeToString(), tf.train.Example().SerializeToString()],
        fc.make_parse_example_spec([user_column()]),
    )
    rows = fc.input_layer(parsed, user_column())
    np.testing.assert_array_equal(rows, [[0.5, 0.5], [0.0, 0.0]])


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_l14_weights_are_those_of_tensorflow(combiner):
    features = {
        "word": tf.ragged.constant([["a", "b"], ["b"], []]),
        "w": tf.ragged.constant([[2.0, 0.5], [3.0], []]),
    }

    def make(dynamic):
        column = fc.embedding_column(
            fc.weighted_categorical_column(hashed(), "w"),
            2,
            combiner=combiner,
            initializer=v1.constant_initializer(2.0),
            dynamic=dynamic,
        )
        with tf.init_scope():
            sparse = {k: v.to_sparse() for k, v in features.items()}
        return lambda: fc.input_layer(
            {
                name: tf.SparseTensor(
                    value.indices.numpy(),
                    value.values.numpy(),
                    value.dense_shape.numpy(),
                )
                for name, value in sparse.items()
            },
            column,
        )

    np.testing.assert_allclose(
        evaluate(make(True)), evaluate(make(False)), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("combiner", "expected"), [("sum", [2.0, 4.0]), ("mean", [1.0, 1.0])]
)
def test_ids_may_weigh_nothing(combiner, expected):
    # TensorFlow takes a dense weight of 0 for a place without an id.
    words = fc.categorical_column_with_embedding("word")
    weighted = fc.weighted_categorical_column(words, "w")
    column = fc.embedding_column(
        weighted, 1, initializer=1.0, combiner=combiner
    )
    features = {
        "word": tf.constant([["a", "b"], ["c", ""]]),
        "w": tf.constant([[0.0, 2.0], [4.0, 1.0]]),
    }
    rows = fc.input_layer(features, column)
    assert rows.numpy()[:, 0].tolist() == expected
    with tf.Graph().as_default(), v1.Session() as session:
        graph = {n: tf.constant(v.numpy()) for n, v in features.items()}
        logits = fc.linear_model(graph, [weighted])
        session.run(v1.global_variables_initializer())
        assert session.run(logits).tolist() == [[0.0], [0.0]]
    features["w"] = tf.constant([[1.0], [2.0]])
    with pytest.raises(ValueError, match="'w' must have the shape of the ids"):
        fc.input_layer(features, column)


def test_types_of_python_are_dtypes():
    of_int = fc.categorical_column_with_embedding("user", int)
    assert of_int == fc.categorical_column_with_embedding("user", tf.int64)
    of_str = fc.categorical_column_with_embedding("user", str)
    assert of_str == fc.categorical_column_with_embedding("user", tf.string)


def test_ids_that_no_vocabulary_has_are_left_out_of_tables():
    cities = fc.categorical_column_with_vocabulary_list("city", ["x", "y"])
    column = fc.embedding_column(
        cities, 2, initializer=v1.ones_initializer(), dynamic=True
    )
    rows = evaluate(
        lambda: fc.input_layer({"city": tf.constant(["x", "z"])}, column)
    )
    np.testing.assert_array_equal(rows, [[1.0, 1.0], [0.0, 0.0]])


def test_shared_columns_have_one_table_in_all_scopes(tmp_path):
    columns = fc.shared_embedding_columns(
        [
            fc.categorical_column_with_embedding(key, tf.int64)
            for key in ("seen", "bought")
        ],
        2,
        initializer=0.5,
        shared_embedding_collection_name="item",
    )

    def make():
        features = {"seen": tf.constant([1]), "bought": tf.constant([1])}
        with v1.variable_scope("one"):
            seen = fc.input_layer(features, [columns[0]])
        with v1.variable_scope("two"):
            bought = fc.input_layer(features, [columns[1]])
        return seen, bought

    before, after = train(make, 2, tmp_path)
    assert not np.array_equal(before[0], after[0])
    np.testing.assert_array_equal(*after)
    names = [name for name, _ in tf.train.list_variables(str(tmp_path))]
    assert "item/embedding_weights/rows" in names


def test_stock_shared_columns_are_made_of_ids_of_a_vocabulary():
    with tf.Graph().as_default():
        columns = fc.shared_embedding_columns([hashed()], 2)
        assert len(fc.make_parse_example_spec(columns)) == 1


def test_sequences_have_a_row_for_each_place():
    visited = fc.sequence_categorical_column_with_embedding("user", tf.int64)
    column = fc.embedding_column(visited, 2, initializer=0.5)
    rows, lengths = fc.sequence_input_layer(
        {"user": tf.ragged.constant([[7, 8], [], [9]], dtype=tf.int64)}, column
    )
    assert rows.shape == (3, 2, 2)
    assert lengths.numpy().tolist() == [2, 0, 1]
    np.testing.assert_array_equal(
        rows[..., 0], [[0.5, 0.5], [0.0, 0.0], [0.5, 0.0]]
    )


def test_sequences_of_different_lengths_are_padded_to_the_longest():
    columns = [
        fc.embedding_column(
            fc.sequence_categorical_column_with_embedding(key, tf.int64),
            1,
            initializer=value,
        )
        for key, value in (("seen", 1.0), ("bought", 2.0))
    ]
    features = {
        "seen": tf.ragged.constant([[1, 2, 3], [1]], dtype=tf.int64),
        "bought": tf.ragged.constant([[1], []], dtype=tf.int64),
    }
    rows, lengths = fc.sequence_input_layer(features, columns)
    assert lengths.numpy().tolist() == [3, 1]
    assert rows[..., 0].numpy().tolist() == [[2, 0, 0], [0, 0, 0]]
    assert rows[..., 1].numpy().tolist() == [[1, 1, 1], [1, 0, 0]]


def test_sequences_of_a_vocabulary_may_be_in_tables():
    towns = fc.sequence_categorical_column_with_identity("town", 10)
    column = fc.embedding_column(towns, 2, initializer=0.5, dynamic=True)
    ages = fc.sequence_numeric_column("ages")
    features = {
        "town": tf.sparse.from_dense([[1, 2], [3, 0]]),
        "ages": tf.sparse.from_dense([[33.0, 0.0], [44.0, 55.0]]),
    }
    rows, lengths = fc.sequence_input_layer(features, [column, ages])
    assert rows.shape == (2, 2, 3)
    assert lengths.numpy().tolist() == [2, 2]
    stock = fc.embedding_column(towns, 2, initializer=v1.ones_initializer())
    with pytest.raises(ValueError, match="dynamic=True"):
        fc.sequence_input_layer(features, [stock])


def test_columns_of_sequences_and_of_ids_are_told_apart():
    visited = fc.sequence_categorical_column_with_embedding("user", tf.int64)
    with pytest.raises(ValueError, match="is of sequences. Use sequence_input"):
        fc.input_layer({"user": [7]}, fc.embedding_column(visited, 2))
    with pytest.raises(
        ValueError, match="is not of sequences. Use input_layer"
    ):
        fc.sequence_input_layer({"user": [7]}, user_column())


def test_a_number_of_buckets_is_refused_with_what_to_use():
    with pytest.raises(ValueError, match="vocabulary.*'word'.*embedding_col"):
        fc.indicator_column(words())
    stock = tf.feature_column.indicator_column(words())
    with pytest.raises(ValueError, match=r"embedra\.feature_column"):
        fc.input_layer({"word": ["a"]}, stock)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: fc.categorical_column_with_embedding(""), TypeError, "key"),
        (
            lambda: fc.categorical_column_with_embedding("a", tf.float32),
            ValueError,
            "'a' must be integers or strings.*float32",
        ),
        (
            lambda: fc.categorical_column_with_embedding("a", [3]),
            TypeError,
            r"'a' must be an integer dtype or tf.string. Received: \[3\]",
        ),
        (
            lambda: fc.categorical_column_with_embedding("a", partition_num=0),
            ValueError,
            "`partition_num` of column 'a'.*Received: 0",
        ),
        (
            lambda: fc.shared_embedding_columns(words(), 2),
            TypeError,
            "must be a list",
        ),
        (
            lambda: fc.shared_embedding_columns(hashed(), 2),
            TypeError,
            "must be a list",
        ),
        (
            lambda: fc.categorical_column_with_embedding("a", ev_option=3),
            TypeError,
            "EmbeddingVariableOption. Received: 3",
        ),
        (lambda: user_column(0), ValueError, "`dimension`.*Received: 0"),
        (lambda: user_column(2.5), ValueError, "`dimension`.*Received: 2.5"),
        (lambda: user_column(combiner="max"), ValueError, "'max'"),
        (lambda: user_column(max_norm=0), ValueError, "`max_norm`"),
        (lambda: user_column(initializer=[1.0]), None, None),
        (
            lambda: user_column(initializer=[1.0, 2.0, 3.0]),
            ValueError,
            "width of a row, 2",
        ),
        (
            lambda: user_column(
                ckpt_to_load_from="model", tensor_name_in_ckpt="rows"
            ),
            NotImplementedError,
            r"warm_start\('model'\)",
        ),
        (lambda: fc.embedding_column("user", 2), TypeError, "'user'"),
        (
            lambda: fc.embedding_column(words(), 2, dynamic=False),
            ValueError,
            "dynamic=False",
        ),
        (lambda: fc.shared_embedding_columns([], 2), ValueError, "empty"),
        (
            lambda: fc.shared_embedding_columns(
                [words(), words(dtype=tf.int64)], 2
            ),
            ValueError,
            "same dtype",
        ),
        (
            lambda: fc.input_layer({"user": ["a"]}, user_column()),
            ValueError,
            "'user' must be of dtype int64.*Received: string.*tf.string",
        ),
        (
            lambda: fc.input_layer({"user": [1.0]}, user_column()),
            ValueError,
            "Received: float32.*tf.cast",
        ),
        (
            lambda: fc.input_layer({}, user_column()),
            ValueError,
            "user is not in features",
        ),
        (
            lambda: fc.input_layer({"word": ["a"]}, words()),
            ValueError,
            "embedding_column",
        ),
        (
            lambda: fc.input_layer({"user": [1]}, {"user": user_column()}),
            ValueError,
            "not by name",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, error, message):
    if error is None:
        make()
        return
    with pytest.raises(error, match=f"(?s){message}"):
        make()


def test_all_names_of_tensorflow_are_here():
    for name in dir(tf.feature_column):
        assert name.startswith("_") or hasattr(fc, name)
    for name in dir(v1.feature_column):
        assert name.startswith("_") or hasattr(fc, name)
        assert name.startswith("_") or hasattr(compat.feature_column, name)
    assert set(dir(tf.feature_column)) - {"__builtins__"} <= {
        *dir(fc),
        *(name for name in dir(tf.feature_column) if name.startswith("_")),
    }
    with pytest.raises(AttributeError, match="no attribute 'nonesuch'"):
        _ = fc.nonesuch
    assert compat.feature_column.embedding_column is fc.embedding_column


def test_tensorflow_has_the_classes_that_its_functions_ask_for():
    # The one place where names without an underscore are not enough.
    from embedra.feature_column import _tf_columns

    column = user_column()
    for name in ("numeric_column", "embedding_column"):
        stock = (
            tf.feature_column.numeric_column("age")
            if name == "numeric_column"
            else tf.feature_column.embedding_column(hashed(), 2)
        )
        theirs = {
            cls
            for cls in type(stock).__mro__
            if cls.__module__.startswith("tensorflow")
            # Not the class itself, nor the tuple of its fields.
            and "_fields" not in vars(cls)
            and cls is not type(stock)
        }
        assert all(isinstance(column, cls) for cls in theirs)
    assert _tf_columns.is_stock_embedding(stock)
