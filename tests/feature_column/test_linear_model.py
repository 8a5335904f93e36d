"""linear_model: weights of ids, of stock columns, and the bias."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import feature_column as fc

from .batches import features, train, v1


def user(**kwargs):
    return fc.categorical_column_with_embedding("user", tf.int64, **kwargs)


def stock_user():
    return fc.categorical_column_with_identity("user", 10)


@pytest.mark.parametrize("units", [1, 3])
@pytest.mark.parametrize("with_age", [False, True])
def test_weights_train_as_those_of_tensorflow(units, with_age):
    more = [fc.numeric_column("age", normalizer_fn=lambda x: x / 100)]

    def make(column):
        columns = [column, *more] if with_age else [column]
        return lambda: (fc.linear_model(features(), columns, units=units),)

    _, (expected,) = train(make(stock_user()), 4)
    before, (received,) = train(make(user()), 4)
    np.testing.assert_array_equal(before[0], np.zeros((3, units)))
    np.testing.assert_allclose(received, expected, rtol=1e-5)


def test_names_are_those_of_scope_and_column(tmp_path):
    def make():
        with v1.variable_scope("linear"):
            return (fc.linear_model(features(), [user()]),)

    train(make, 1, tmp_path)
    names = {name for name, _ in tf.train.list_variables(str(tmp_path))}
    assert "linear/linear_model/user/weights/rows" in names
    assert "linear/linear_model/bias_weights" in names


def test_variables_of_columns_are_handed_out():
    with tf.Graph().as_default():
        variables = {}
        fc.linear_model(
            features(),
            [user(), fc.numeric_column("age")],
            cols_to_vars=variables,
        )
    (rows,) = variables[user()]
    assert rows.table_variable.params.dim == 1
    assert {"bias", user(), fc.numeric_column("age")} == set(variables)


def test_two_columns_of_one_name_are_refused():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="'user'"):
        fc.linear_model(features(), [user(), user()])


def test_weighted_ids_count_by_their_weight():
    column = fc.weighted_categorical_column(
        fc.categorical_column_with_embedding("word"), "w"
    )

    def make():
        words = tf.sparse.from_dense([["a", "b"], ["a", ""]])
        return (
            fc.linear_model(
                {"word": words, "w": words.with_values([2.0, 3.0, 1.0])},
                [column],
            ),
        )

    _, ((first, second),) = train(make, 1)
    # Gradient of the sum of squares from zero: rows move by 0.2 * weight.
    np.testing.assert_allclose(first, 2 * 0.6 + 3 * 0.6 + 0.4, rtol=1e-5)
    np.testing.assert_allclose(second, 0.6 + 0.4, rtol=1e-5)
