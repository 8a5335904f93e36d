"""Ids of every structure, pooled and not, against NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.layers import Embedding
from numerics import assert_allclose


DIM = 3
COMBINERS = ["sum", "mean", "sqrtn"]


def _rows(ids):
    """The row that `_layer` holds for each id."""
    return np.stack([ids, np.square(ids), np.negative(ids)], -1) / 10.0


def _layer(**kwargs):
    layer = Embedding(DIM, **kwargs)
    ids = np.arange(-10, 11)
    layer.table.assign(ids, _rows(ids))
    return layer


def _pooled(bag, combiner, weights=None):
    """One row for one bag, by NumPy."""
    weights = np.ones(len(bag)) if weights is None else np.asarray(weights)
    total = (_rows(np.asarray(bag)) * weights[:, None]).sum(0)
    if not len(bag):
        return np.zeros(DIM)
    if combiner == "mean":
        return total / weights.sum()
    if combiner == "sqrtn":
        return total / np.sqrt(np.square(weights).sum())
    return total


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 3, 2), (0,), (0, 3)])
def test_dense_ids_gain_a_dimension(shape, rng):
    ids = rng.integers(-10, 10, shape)
    rows = _layer()(ids)
    assert rows.shape == (*shape, DIM)
    assert_allclose(rows, _rows(ids))


def test_ragged_ids_keep_their_splits():
    ids = tf.ragged.constant([[1, 2], [3], [], [4, 5, 6]])
    rows = _layer()(ids)
    assert rows.row_lengths().numpy().tolist() == [2, 1, 0, 3]
    assert_allclose(rows.flat_values, _rows(ids.flat_values.numpy()))


def test_ragged_ids_of_two_levels_keep_their_splits():
    ids = tf.ragged.constant([[[1, 2], []], [[3]], []])
    rows = _layer()(ids)
    assert [s.numpy().tolist() for s in rows.nested_row_splits] == [
        s.numpy().tolist() for s in ids.nested_row_splits
    ]
    assert rows.shape[-1] == DIM


@pytest.mark.parametrize("combiner", COMBINERS)
def test_dense_bags(combiner, rng):
    ids = rng.integers(-10, 10, (2, 3, 4))
    rows = _layer(combiner=combiner)(ids)
    expected = [[_pooled(bag, combiner) for bag in block] for block in ids]
    assert rows.shape == (2, 3, DIM)
    assert_allclose(rows, expected, rtol=1e-5)


@pytest.mark.parametrize("combiner", COMBINERS)
def test_ids_of_one_dimension_are_bags_of_one(combiner):
    rows = _layer(combiner=combiner)(np.array([7, -1]))
    assert_allclose(rows, _rows(np.array([7, -1])))


def test_weights_of_one_dimension_count():
    rows = _layer(combiner="sum")(
        np.array([7, -1]), weights=np.float32([2, 0.5])
    )
    assert_allclose(rows, _rows(np.array([7, -1])) * [[2], [0.5]])


@pytest.mark.parametrize("combiner", COMBINERS)
def test_ragged_bags(combiner):
    bags = [[1, 2], [3], [], [4, 5, -6]]
    weights = [[2.0, 0.5], [3.0], [], [1.0, 2.0, 0.25]]
    layer = _layer(combiner=combiner)
    rows = layer(tf.ragged.constant(bags))
    assert_allclose(rows, [_pooled(b, combiner) for b in bags], rtol=1e-5)
    weighted = layer(
        tf.ragged.constant(bags), weights=tf.ragged.constant(weights)
    )
    assert_allclose(
        weighted,
        [_pooled(b, combiner, w) for b, w in zip(bags, weights, strict=True)],
        rtol=1e-5,
    )


@pytest.mark.parametrize("combiner", COMBINERS)
def test_ragged_bags_of_two_levels(combiner):
    bags = [[[1, 2], []], [[3]], []]
    rows = _layer(combiner=combiner)(tf.ragged.constant(bags))
    assert rows.row_lengths().numpy().tolist() == [2, 1, 0]
    flat = [bag for block in bags for bag in block]
    expected = [_pooled(bag, combiner) for bag in flat]
    assert_allclose(rows.flat_values, expected, rtol=1e-5)


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("present", [[3], [0], [4], [0, 2, 4], []])
def test_sparse_bags_keep_every_row(combiner, present):
    bags = [[row + 1, -row - 2] if row in present else [] for row in range(5)]
    weights = [[2.0, 0.5] if row in present else [] for row in range(5)]
    ids = tf.ragged.constant(bags, tf.int64).to_sparse()
    layer = _layer(combiner=combiner)
    expected = [_pooled(bag, combiner) for bag in bags]
    assert_allclose(layer(ids), expected, rtol=1e-5)
    weighted = layer(
        ids, weights=tf.ragged.constant(weights, tf.float32).to_sparse()
    )
    expected = [
        _pooled(b, combiner, w) for b, w in zip(bags, weights, strict=True)
    ]
    assert_allclose(weighted, expected, rtol=1e-5)


def test_sparse_ids_of_three_dimensions():
    ids = tf.SparseTensor(
        [[0, 1, 0], [0, 1, 2], [1, 0, 1]], [1, 2, 3], [2, 3, 4]
    )
    rows = _layer(combiner="sum")(ids)
    assert rows.shape == (2, 3, DIM)
    assert_allclose(rows[0, 1], _pooled([1, 2], "sum"), rtol=1e-5)
    assert_allclose(rows[1, 0], _pooled([3], "sum"), rtol=1e-5)
    assert_allclose(rows[1, 2], np.zeros(DIM))


def test_sparse_ids_of_unknown_rank_are_matrices():
    layer = _layer(combiner="sum")
    look_up = tf.function(
        lambda ids, weights: layer(ids, weights=weights),
        input_signature=[
            tf.SparseTensorSpec(None, tf.int32),
            tf.SparseTensorSpec(None, tf.float32),
        ],
    )
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, 2, 3], [3, 2])
    weights = ids.with_values([1.0, 2.0, 3.0])
    assert_allclose(look_up(ids, weights), layer(ids, weights=weights))
    cube = tf.SparseTensor([[0, 0, 0]], [1], [1, 1, 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible"):
        look_up(cube, cube.with_values([1.0]))


def test_sparse_ids_out_of_order_are_refused():
    ids = tf.SparseTensor([[1, 0], [0, 0]], [1, 2], [2, 1])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"tf\.sparse\.reorder"
    ):
        _layer(combiner="sum")(ids)


@pytest.mark.parametrize(
    ("ids", "weights"),
    [
        (np.array([[1, 2]]), np.float32([[1.0]])),
        (
            tf.ragged.constant([[1], [2]]),
            tf.ragged.constant([[1.0, 2.0], []]),
        ),
        (
            tf.ragged.constant([[1], [2]]).to_sparse(),
            tf.ragged.constant([[1.0, 2.0], []]).to_sparse(),
        ),
        (tf.ragged.constant([[1], [2]]), np.float32([[1.0], [2.0]])),
    ],
)
def test_weights_of_another_structure_are_refused(ids, weights):
    with pytest.raises(ValueError, match="weights"):
        _layer(combiner="sum")(ids, weights=weights)


def test_weights_without_a_combiner_are_refused():
    with pytest.raises(ValueError, match="combiner"):
        _layer()(np.array([[1]]), weights=np.float32([[1.0]]))


def test_sparse_ids_without_a_combiner_are_refused():
    with pytest.raises(ValueError, match="combiner"):
        _layer()(tf.ragged.constant([[1]]).to_sparse())


@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("kind", ["dense", "ragged", "sparse"])
def test_padding_is_left_out_of_bags(combiner, kind):
    bags = [[1, 0, 2], [0, 0, 0], [3, 4, 0]]
    weights = [[2.0, 9.0, 0.5], [9.0, 9.0, 9.0], [1.0, 3.0, 9.0]]
    make = {
        "dense": tf.constant,
        "ragged": tf.ragged.constant,
        "sparse": lambda x: tf.ragged.constant(x).to_sparse(),
    }[kind]
    rows = _layer(combiner=combiner, mask_zero=True)(
        make(bags), weights=make(weights)
    )
    expected = [
        _pooled([1, 2], combiner, [2.0, 0.5]),
        _pooled([], combiner),
        _pooled([3, 4], combiner, [1.0, 3.0]),
    ]
    assert_allclose(rows, expected, rtol=1e-5)


def test_padding_is_masked_without_a_combiner():
    layer = _layer(mask_zero=True)
    mask = layer.compute_mask(tf.constant([[1, 0], [0, 2]]))
    assert mask.numpy().tolist() == [[True, False], [False, True]]
    mask = layer.compute_mask(tf.constant(["a", ""]))
    assert mask.numpy().tolist() == [True, False]
    assert _layer().compute_mask(tf.constant([1, 0])) is None


@pytest.mark.parametrize("combiner", [None, *COMBINERS])
def test_gradients_reach_every_id_and_weight(combiner):
    layer = _layer(combiner=combiner)
    ids = tf.ragged.constant([[1, 2], [], [2, 3, 2]], tf.int64)
    weights = tf.ragged.constant([[2.0, 0.5], [], [1.0, 3.0, 0.25]])
    target = tf.random.stateless_normal((64, DIM), (1, 2))

    def loss(rows_of):
        rows = layer(ids) if combiner is None else layer(ids, weights=rows_of)
        rows = getattr(rows, "flat_values", rows)
        return tf.reduce_sum(rows * target[: tf.shape(rows)[0]])

    with tf.GradientTape() as tape:
        value = loss(weights)
    grad = tape.gradient(value, layer.embeddings)
    _, found = layer.table, grad
    before = float(loss(weights))
    moved = 1e-2
    keys = {1, 2, 3}
    for key in keys:
        for column in range(DIM):
            delta = np.zeros((1, DIM), np.float32)
            delta[0, column] = moved
            layer.table.accumulate([key], delta)
            slope = (float(loss(weights)) - before) / moved
            layer.table.accumulate([key], -delta)
            row = _gradient_of(layer, found, key)
            assert row[column] == pytest.approx(slope, abs=2e-2)


def _gradient_of(layer, grad, key):
    """The gradient of one key, summed over its positions."""
    from embedra import _ops

    keys, _ = _ops.table_keys(layer.table.resource_handle, grad.indices)
    return grad.values.numpy()[keys.numpy() == key].sum(axis=0)


def test_functional_model_of_ragged_and_sparse_inputs():
    ragged = keras.Input((None,), dtype="int64", ragged=True)
    sparse = keras.Input((8,), dtype="int64", sparse=True)
    dense = keras.Input((4,), dtype="int32")
    weights = keras.Input((4,), dtype="float32")
    layer = _layer(combiner="sum")
    outputs = [layer(ragged), layer(sparse), layer(dense, weights=weights)]
    assert [o.shape for o in outputs] == [(None, DIM)] * 3
    model = keras.Model([ragged, sparse, dense, weights], outputs)
    bags = tf.ragged.constant([[1, 2], []], tf.int64)
    sparse_ids = tf.SparseTensor([[1, 3]], tf.constant([3], tf.int64), [2, 8])
    found = model(
        [
            bags,
            sparse_ids,
            tf.constant([[1, 2, 3, 4]] * 2),
            tf.constant([[1.0, 0, 0, 0]] * 2),
        ]
    )
    assert_allclose(found[0], [_pooled([1, 2], "sum"), np.zeros(DIM)])
    assert_allclose(found[1], [np.zeros(DIM), _pooled([3], "sum")])
    assert_allclose(found[2], [_pooled([1], "sum")] * 2)
