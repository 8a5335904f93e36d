"""How the gradients of a step are handed to the communicator."""

import numpy as np
import tensorflow as tf

from embedra.distribute import SingleCommunicator, reduce_gradients


class Recording(SingleCommunicator):
    """Keeps what it was given to add up, call by call."""

    def __init__(self):
        self.calls = []

    def _all_reduce(self, values, reduction, bucket_bytes, label):
        self.calls.append([int(value[0]) for value in values])
        return super()._all_reduce(values, reduction, bucket_bytes, label)


def test_gradients_of_the_last_weights_go_first_in_buckets():
    ranks = Recording()
    gradients = [tf.fill([4], float(n)) for n in range(5)]
    gradients[2] = None
    # Room for two of 16 bytes each; the rest is a bucket of its own.
    reduced = reduce_gradients(ranks, gradients, bucket_bytes=32)
    assert ranks.calls == [[4, 3], [1, 0]]
    assert reduced[2] is None
    for place in (0, 1, 3, 4):
        np.testing.assert_array_equal(reduced[place], gradients[place])


def test_a_gradient_larger_than_a_bucket_ends_it():
    ranks = Recording()
    gradients = [tf.fill([n], float(n)) for n in (1, 100, 2)]
    reduce_gradients(ranks, gradients, bucket_bytes=16)
    assert ranks.calls == [[2, 100], [1]]


def test_gradients_of_unknown_shape_are_reduced_too():
    ranks = SingleCommunicator()

    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec(None)])
    def reduce(first, second):
        return reduce_gradients(ranks, [first, second], share=0.5)

    first, second = reduce(tf.constant([2.0, 4.0]), tf.constant([[6.0]]))
    np.testing.assert_array_equal(first, [1.0, 2.0])
    np.testing.assert_array_equal(second, [[3.0]])
