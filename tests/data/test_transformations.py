"""Datasets of batches made into others, and functions of columns."""

import doctest

import numpy as np
import pytest
import tensorflow as tf

import embedra.data
from embedra.data import (
    DataFrame,
    Field,
    bucket,
    cross,
    deduplicate,
    hash_strings,
    log_scale,
    parse,
    read_table,
    rebatch,
    standard_scale,
    string_ids,
    to_sparse,
)


ROWS = {"x": [1, 2, 3, 4, 5], "l": [[1], [], [2, 3], [4], [5, 6]]}


def test_ragged_to_sparse_and_padded():
    data = read_table(ROWS, 3)
    sparse = next(iter(data.apply(to_sparse())))["l"]
    assert sparse.dense_shape.numpy().tolist() == [3, 2]
    assert sparse.values.numpy().tolist() == [1, 2, 3]
    padded = next(iter(data.apply(parse(pad=True))))["l"]
    assert padded.numpy().tolist() == [[1, 0], [0, 0], [2, 3]]
    batch = next(iter(data.apply(parse())))
    assert isinstance(batch["l"], DataFrame.Value)
    assert DataFrame.to_sparse(batch)["l"].values.shape == [3]
    assert DataFrame.parse(batch, pad=True)["l"].shape == [3, 2]


@pytest.mark.parametrize("drop", [False, True])
def test_rebatch_keeps_all_rows_in_order(drop):
    data = read_table(ROWS, 3).apply(rebatch(2, drop_remainder=drop))
    batches = list(data)
    assert [len(batch["x"]) for batch in batches] == [2, 2] + [1] * (not drop)
    lists = [row for batch in batches for row in batch["l"].to_list()]
    assert lists == ROWS["l"][: 4 if drop else 5]


def test_deduplicated_blocks_are_expanded():
    blocks = {
        "user_at": [[0, 0, 1], [0]],
        "user": [[7, 9], [8]],
        "history": [[[1], [2, 3]], [[]]],
        "item": [[1, 2, 3], [4]],
    }
    data = read_table(blocks, 2).apply(
        deduplicate(["user_at"], [["user", "history"]])
    )
    batch = next(iter(data))
    assert set(batch) == {"user", "history", "item"}
    assert batch["user"].numpy().tolist() == [7, 7, 9, 8]
    assert batch["history"].to_list() == [[1], [1], [2, 3], []]
    assert batch["item"].numpy().tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="1 index columns, 0 lists"):
        deduplicate(["user_at"], [])


def test_hash_is_that_of_string_ids():
    words = ["", "a", "68fd1e64"]
    expected = string_ids(words)
    np.testing.assert_array_equal(hash_strings(tf.constant(words)), expected)
    ragged = tf.ragged.constant([words[:2], [], words[2:]])
    np.testing.assert_array_equal(hash_strings(ragged).flat_values, expected)
    sparse = ragged.to_sparse()
    np.testing.assert_array_equal(hash_strings(sparse).values, expected)


def test_numbers_are_scaled_and_put_into_buckets():
    values = tf.constant([-1.0, 0.0, 9.5])
    np.testing.assert_allclose(
        log_scale(values), [-np.log(2), 0, np.log(10.5)], rtol=1e-6
    )
    np.testing.assert_allclose(standard_scale(1, 2)(values), [-1, -0.5, 4.25])
    assert bucket([0, 9])(values).numpy().tolist() == [0, 1, 2]
    square = tf.constant([[1, 2], [3, 4]])
    assert bucket([2])(square).numpy().tolist() == [[0, 1], [1, 1]]
    with pytest.raises(ValueError, match="above 0"):
        standard_scale(0, 0)
    with pytest.raises(ValueError, match="rise"):
        bucket([2, 1])


def test_crosses_differ_wherever_values_do():
    numbers = tf.constant([1, 1, 11, 2])
    words = tf.constant(["1", "2", "", "1"])
    ids = cross(numbers, words).numpy()
    assert len(set(ids)) == 4
    assert ids[2] not in cross(words, numbers).numpy()
    with pytest.raises(ValueError, match="two or more"):
        cross(numbers)


def test_functions_go_into_fields():
    fields = [
        Field("s", transform=hash_strings),
        Field("n", transform=log_scale),
    ]
    data = read_table({"s": ["a", "b"], "n": [0, 1]}, 2, fields)
    assert data.element_spec == {
        "s": tf.TensorSpec([None], tf.int64),
        "n": tf.TensorSpec([None], tf.float32),
    }
    batch = next(iter(data))
    np.testing.assert_array_equal(batch["s"], string_ids(["a", "b"]))


def test_examples_of_the_documentation_run():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    tried = 0
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=flags)
    for name, thing in vars(embedra.data).items():
        if getattr(thing, "__module__", "").startswith("embedra.data"):
            space = {"np": np, "tf": tf, **vars(embedra.data)}
            for example in finder.find(thing, name, globs=space):
                tried += len(example.examples)
                runner.run(example)
    assert runner.failures == 0
    assert tried > 20
