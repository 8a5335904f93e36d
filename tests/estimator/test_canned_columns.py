"""Feature columns of all kinds in canned models."""

import tensorflow as tf

from embedra import estimator as lib, feature_column as fc

from .canned import BINARY, config


v1 = tf.compat.v1

WORDS = ["a", "b", "a", "c"]
TAGS = [["x", "y"], ["x", ""], ["", ""], ["z", "z"]]
WEIGHTS = [[1.0, 2.0], [3.0, 0.0], [0.0, 0.0], [1.0, 1.0]]


def features():
    return {
        "user": tf.constant([5, 10**12, 5, 7], tf.int64),
        "word": tf.constant(WORDS),
        "number": tf.constant([1, 2, 3, 0]),
        "age": tf.constant([0.1, 0.2, 0.3, 0.4]),
        "pair": tf.constant(WEIGHTS),
        "tags": tf.sparse.from_dense(TAGS),
        "weights": tf.SparseTensor(
            [[0, 0], [0, 1], [1, 0], [3, 0], [3, 1]],
            [1.0, 2.0, 3.0, 1.0, 1.0],
            (4, 2),
        ),
        "ragged": tf.ragged.constant([["x", "y"], ["x"], [], ["z", "z"]]),
        "visits": tf.ragged.constant([[1, 2], [3], [], [1]], dtype=tf.int64),
    }


def categorical(folder):
    path = folder / "words.txt"
    path.write_text("a\nb\nc\n")
    age = fc.bucketized_column(fc.numeric_column("age"), [0.15, 0.25])
    user = fc.categorical_column_with_embedding("user", tf.int64)
    return [
        fc.categorical_column_with_hash_bucket("tags", 10),
        fc.categorical_column_with_vocabulary_list("word", ["a", "b"]),
        fc.categorical_column_with_vocabulary_file("ragged", str(path)),
        fc.categorical_column_with_identity("number", 5),
        fc.crossed_column(["word", age], 20),
        user,
        fc.crossed_column(["word", user], 20),
        fc.weighted_categorical_column(
            fc.categorical_column_with_embedding("tags"), "weights"
        ),
        age,
        fc.sequence_categorical_column_with_embedding("visits", tf.int64),
    ]


def dense(columns):
    numbers = [fc.numeric_column("age"), fc.numeric_column("pair", shape=(2,))]
    *plain, sequence = columns
    return [
        *numbers,
        fc.indicator_column(plain[0]),
        *(fc.embedding_column(one, 2, dynamic=True) for one in plain),
    ]


def test_columns_of_all_kinds_go_into_one_model(tmp_path):
    wide = categorical(tmp_path)
    deep = dense(wide)
    estimator = lib.DNNLinearCombinedClassifier(
        linear_feature_columns=wide,
        dnn_feature_columns=deep,
        dnn_hidden_units=[4],
        linear_optimizer="SGD",
        dnn_optimizer="Adam",
        config=config(tmp_path / "run"),
    )
    estimator.train(lambda: (features(), tf.constant(BINARY)), steps=30)
    found = estimator.evaluate(
        lambda: (features(), tf.constant(BINARY)), steps=1
    )
    assert found["accuracy"] == 1.0
    names = estimator.get_variable_names()
    for column in wide:
        here = f"linear/linear_model/{column.name}/weights"
        assert here in names or f"{here}/keys" in names, column
    layer = "dnn/input_from_feature_columns/input_layer"
    tables = [column.name for column in deep if "embedding" in column.name]
    assert len(tables) == len(wide) - 1
    for table in tables:
        assert f"{layer}/{table}/embedding_weights/keys" in names, table


def test_sequences_are_sets_to_a_linear_model(tmp_path):
    sequences = [
        fc.sequence_categorical_column_with_embedding("visits", tf.int64),
        fc.categorical_column_with_embedding("visits", tf.int64),
    ]
    found = []
    for i, column in enumerate(sequences):
        estimator = lib.LinearClassifier(
            [column], config=config(tmp_path / str(i)), optimizer="SGD"
        )
        estimator.train(lambda: (features(), tf.constant(BINARY)), steps=3)
        weights = "linear/linear_model/visits/weights/rows"
        found.append(estimator.get_variable_value(weights).tolist())
    assert found[0] == found[1]
    assert len(found[0]) == 3
