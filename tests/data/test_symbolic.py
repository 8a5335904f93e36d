"""Iterators of TensorFlow 1, outside of its graphs and in them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.data import (
    make_initializable_iterator,
    make_one_shot_iterator,
)


MAKERS = [make_one_shot_iterator, make_initializable_iterator]


def dataset():
    features = {
        "b": tf.ragged.constant([[1], [2, 3], []], dtype=tf.int32),
        "a": {"x/y": np.zeros((3, 2), np.int64), "z": ["p", "q", "r"]},
    }
    label = tf.sparse.from_dense([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    data = tf.data.Dataset.from_tensor_slices((features, label))
    return data.batch(2, drop_remainder=True)


@pytest.mark.parametrize("make", MAKERS)
def test_the_next_batch_has_the_structure_of_the_data(make):
    iterator = make(dataset())
    assert iterator.element_spec == dataset().element_spec
    assert iterator.initializer is None
    features, label = iterator.get_next()
    assert list(features) == ["b", "a"]
    tensors = [features["a"]["x/y"], features["a"]["z"], features["b"], label]
    assert all(isinstance(tensor, keras.KerasTensor) for tensor in tensors)
    assert [tensor.dtype for tensor in tensors] == [
        "int64",
        "string",
        "int32",
        "float32",
    ]
    assert [tensor.shape for tensor in tensors] == [
        (None, 2),
        (None,),
        (None, None),
        (None, 2),
    ]
    assert [tensor.ragged for tensor in tensors] == [False, False, True, False]
    assert [tensor.sparse for tensor in tensors] == [False, False, False, True]
    assert [tensor.name for tensor in tensors[:3]] == ["a_x/y", "a_z", "b"]


@pytest.mark.parametrize("make", MAKERS)
def test_in_a_graph_it_is_the_iterator_of_tensorflow(make):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        iterator = make(tf.data.Dataset.range(3).batch(2))
        following = iterator.get_next()
        if make is make_initializable_iterator:
            session.run(iterator.initializer)
        assert session.run(following).tolist() == [0, 1]
        assert session.run(following).tolist() == [2]


def test_what_is_no_dataset_is_refused():
    with pytest.raises(TypeError, match=r"tf\.data\.Dataset.*ndarray"):
        make_one_shot_iterator(np.ones(3)).get_next()


def test_rows_that_are_no_batches_are_refused_by_name():
    data = dataset().unbatch().map(lambda x, _: {"number": x["a"]["z"]})
    with pytest.raises(ValueError, match="'number' .*Call `batch`"):
        make_one_shot_iterator(data).get_next()


def test_tensors_of_any_shape_are_refused():
    data = tf.data.Dataset.from_generator(
        lambda: iter(()), output_types=(tf.int64, tf.float32)
    )
    with pytest.raises(ValueError, match="'number 0' .*tf.ensure_shape"):
        make_one_shot_iterator(data).get_next()


def test_datasets_of_datasets_are_refused():
    with pytest.raises(TypeError, match="number 0.*DatasetSpec"):
        make_one_shot_iterator(tf.data.Dataset.range(3).window(2)).get_next()
