"""Optimizers: every one of Keras 3, clipping, decay, scaling, schedules."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra import DynamicEmbeddingOptimizer
from embedra.layers import Embedding

from .reference import (
    assert_all_moved,
    assert_close,
    assert_same_records,
    embedding_with,
    every_key_in_every_batch,
    fit,
    fit_twin,
    network,
    network_and_twin,
    random_rows,
    records_of,
    repeatable,
    rows_of,
)


optimizers = keras.optimizers
schedules = keras.optimizers.schedules

EXACT = {
    "sgd": optimizers.SGD(0.1),
    "sgd_with_weight_decay": optimizers.SGD(0.1, weight_decay=0.1),
    "momentum": optimizers.SGD(0.1, momentum=0.9),
    "nesterov": optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": optimizers.Adam(0.1),
    "adam_with_schedule": optimizers.Adam(
        schedules.ExponentialDecay(0.1, 1, 0.5)
    ),
    "amsgrad": optimizers.Adam(0.1, amsgrad=True),
    "adamw": optimizers.AdamW(0.1, weight_decay=0.1),
    "adamax": optimizers.Adamax(0.1),
    "nadam": optimizers.Nadam(0.1),
    "adagrad": optimizers.Adagrad(0.1),
    "adadelta": optimizers.Adadelta(1.0),
    "rmsprop": optimizers.RMSprop(0.1),
    "rmsprop_centered": optimizers.RMSprop(0.1, centered=True, momentum=0.9),
    "ftrl": optimizers.Ftrl(0.1, l1_regularization_strength=0.01, beta=0.1),
    "lion": optimizers.Lion(0.1),
    "lamb": optimizers.Lamb(0.1),
    "clipnorm": optimizers.Adagrad(0.1, clipnorm=0.1),
    "clipvalue": optimizers.Adagrad(0.1, clipvalue=0.05),
}
NAMES = [
    "sgd", "adam", "adamw", "adamax", "nadam", "adagrad", "adadelta",
    "rmsprop", "ftrl", "lion",
]  # fmt: skip


def _copy(optimizer):
    return type(optimizer).from_config(optimizer.get_config())


def _move(layer, optimizer, ids, gradients):
    """Applies `gradients`, one for each id, and returns how rows moved."""
    before = rows_of(layer, ids)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(np.array(ids), training=True) * gradients)
    slices = tape.gradient(loss, layer.trainable_variables)
    optimizer.apply(slices, layer.trainable_variables)
    return rows_of(layer, ids) - before


@pytest.mark.parametrize("wrap", [_copy, DynamicEmbeddingOptimizer])
@pytest.mark.parametrize("name", EXACT)
def test_o01_rows_move_as_in_a_dense_model(name, wrap):
    keys = np.array([-4, 0, 3, 10**12])
    ids, labels, batch_size = every_key_in_every_batch(keys, 2, steps=4)
    model, layer, twin_model, twin = network_and_twin(keys, 3, 2)
    start = rows_of(layer, keys)
    optimizer = wrap(_copy(EXACT[name]))
    kwargs = {"batch_size": batch_size, "run_eagerly": wrap is not _copy}
    fit(model, optimizer, ids, labels, **kwargs)
    fit_twin(twin_model, _copy(EXACT[name]), ids, labels, batch_size)
    assert_all_moved(rows_of(layer, keys), start)
    assert_close(rows_of(layer, keys), twin.matrix)
    assert int(optimizer.iterations) == 4


@pytest.mark.parametrize("name", NAMES)
def test_o01_optimizers_are_taken_by_string_config_and_object(name):
    ids = np.random.default_rng(3).integers(0, 8, size=(24, 2))
    labels = random_rows(24, 1)
    config = optimizers.serialize(optimizers.get(name))
    results = []
    for optimizer in (name, config, optimizers.deserialize(config)):
        layer = repeatable(3)
        model = network(layer, 2)
        start = rows_of(layer, np.unique(ids))
        kwargs = {"batch_size": 8, "run_eagerly": True}
        fit(model, optimizer, ids, labels, **kwargs)
        assert np.any(rows_of(layer, np.unique(ids)) != start)
        results.append(records_of(layer.table))
    assert_same_records(results[1], results[0])
    assert_same_records(results[2], results[0])


class SignDescent(optimizers.Optimizer):
    """A user's own elementwise rule with one slot, on stock Keras calls."""

    def build(self, variables):
        super().build(variables)
        self.totals = [
            self.add_variable_from_reference(v, name="total") for v in variables
        ]

    def update_step(self, gradient, variable, learning_rate):
        total = self.totals[self._get_variable_index(variable)]
        self.assign_add(total, keras.ops.sign(gradient))
        self.assign_sub(variable, learning_rate * keras.ops.tanh(total))


class GentleAdam(optimizers.Adam):
    """A user's subclass of a built-in optimizer with another rule."""

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient, variable, learning_rate * 0.5)


@pytest.mark.parametrize("wrap", [lambda o: o, DynamicEmbeddingOptimizer])
@pytest.mark.parametrize("rule", [SignDescent, GentleAdam])
def test_o01_optimizers_of_users_follow_their_own_rule(rule, wrap):
    keys = np.array([1, 2, 5])
    ids, labels, batch_size = every_key_in_every_batch(keys, 2, steps=3)
    model, layer, twin_model, twin = network_and_twin(keys, 3, 2)
    start = rows_of(layer, keys)
    optimizer = wrap(rule(learning_rate=0.1))
    fit(model, optimizer, ids, labels, batch_size=batch_size)
    fit_twin(twin_model, rule(0.1), ids, labels, batch_size)
    assert_all_moved(rows_of(layer, keys), start)
    assert_close(rows_of(layer, keys), twin.matrix)


@pytest.mark.parametrize("wrap", [lambda o: o, DynamicEmbeddingOptimizer])
@pytest.mark.parametrize("name", ["Adafactor", "Muon", "ScheduleFreeAdamW"])
def test_o01_optimizers_that_need_whole_matrices_are_refused(name, wrap):
    def train():
        optimizer = wrap(getattr(optimizers, name)(0.1))
        model = network(Embedding(3), 2)
        fit(model, optimizer, np.array([[1, 2]]), np.ones((1, 1)), batch_size=1)

    with pytest.raises((TypeError, ValueError, NotImplementedError)) as error:
        train()
    message = str(error.value)
    assert name in message
    assert "Adagrad" in message or "Adam" in message, "it names no remedy"


@pytest.mark.parametrize(
    "optimizer",
    [
        optimizers.SGD(0.1, momentum=0.9),
        optimizers.SGD(0.1, weight_decay=0.1),
        optimizers.Adam(0.1),
        optimizers.AdamW(0.1, weight_decay=0.1),
        optimizers.Adamax(0.1),
        optimizers.Lion(0.1, weight_decay=0.1),
    ],
    ids=lambda o: f"{o.name}-{o.weight_decay}",
)
def test_o02_rows_out_of_the_batch_stay_bit_equal(optimizer):
    layer = repeatable(3)
    model = network(layer, 1)
    optimizer = _copy(optimizer)
    model.compile(optimizer, "mse")
    model.train_on_batch(np.array([[1]]), np.ones((1, 1)))
    first = records_of(layer.table)
    model.train_on_batch(np.array([[2]]), np.ones((1, 1)))
    second = records_of(layer.table)
    assert set(first) == {1}
    assert set(second) == {1, 2}
    assert_same_records({1: second[1]}, first)
    started = rows_of(repeatable(3), [2])
    assert np.all(second[2][0] != started[0])


def test_o02_adam_steps_a_row_by_the_clock_of_the_optimizer():
    layer = Embedding(2)
    row = {key: rows_of(layer, [key])[0].astype(np.float64) for key in (1, 2)}
    m, v = ({1: np.zeros(2), 2: np.zeros(2)} for _ in range(2))
    optimizer = optimizers.Adam(0.1)
    gradients = random_rows(5, 2).astype(np.float64)
    for step, key in enumerate([1, 2, 2, 2, 1], start=1):
        g = gradients[step - 1]
        m[key] = 0.9 * m[key] + 0.1 * g
        v[key] = 0.999 * v[key] + 0.001 * g**2
        rate = 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        row[key] -= rate * m[key] / (np.sqrt(v[key]) + 1e-7)
        _move(layer, optimizer, [key], np.float32([g]))
    assert_close(rows_of(layer, [1, 2]), [row[1], row[2]])


@pytest.mark.parametrize("wrap", [lambda o: o, DynamicEmbeddingOptimizer])
def test_o03_clipnorm_bounds_the_sum_of_repeats(wrap):
    layer = Embedding(2)
    gradient = np.float32([[3.0, 4.0]])
    optimizer = wrap(optimizers.SGD(1.0, clipnorm=1.0))
    moves = _move(layer, optimizer, [7, 7, 7], np.repeat(gradient, 3, 0))
    assert_close(moves[0], [-0.6, -0.8])


@pytest.mark.parametrize("wrap", [lambda o: o, DynamicEmbeddingOptimizer])
def test_o03_clipvalue_bounds_each_element_of_the_sum_of_repeats(wrap):
    layer = Embedding(2)
    optimizer = wrap(optimizers.SGD(1.0, clipvalue=0.5))
    gradients = np.float32([[3.0, 0.1], [3.0, 0.1], [3.0, 0.1]])
    moves = _move(layer, optimizer, [7, 7, 7], gradients)
    assert_close(moves[0], [-0.5, -0.3])


@pytest.mark.parametrize("eager", [True, False])
def test_o03_global_clipnorm_counts_rows_once_with_the_dense_layers(eager):
    layers = [Embedding(2, name="a"), Embedding(3, name="b")]
    inputs = [keras.Input((3,), dtype="int64") for _ in layers]
    flat = [
        keras.layers.Flatten()(layer(x))
        for layer, x in zip(layers, inputs, strict=True)
    ]
    dense = keras.layers.Dense(1)
    model = keras.Model(inputs, dense(keras.layers.Concatenate()(flat)))
    optimizer = DynamicEmbeddingOptimizer(
        optimizers.SGD(1.0, global_clipnorm=1.0)
    )
    model.compile(optimizer, "mse", run_eagerly=eager)
    ids = [np.array([[7, 7, 7]]), np.array([[7, 8, 7]])]

    def state():
        tables = [rows_of(layer, [7, 8]) for layer in layers]
        return [*tables, *dense.get_weights()]

    layers[0](ids[0], training=True), layers[1](ids[1], training=True)
    before = state()
    k = before[2][:, 0].astype(np.float64)
    rows = np.concatenate(
        [before[0][[0, 0, 0]].ravel(), before[1][[0, 1, 0]].ravel()]
    )
    error = 2 * (rows @ k - 100.0)
    expected = [
        error * np.stack([k[0:2] + k[2:4] + k[4:6], np.zeros(2)]),
        error * np.stack([k[6:9] + k[12:15], k[9:12]]),
        error * rows[:, None],
        np.array([error]),
    ]
    norm = np.sqrt(sum((g**2).sum() for g in expected))
    assert norm > 1
    model.train_on_batch(ids, np.array([[100.0]]))
    for old, new, gradient in zip(before, state(), expected, strict=True):
        assert_close(old - new, gradient / norm)


@pytest.mark.parametrize(
    "option",
    [
        {"global_clipnorm": 1.0},
        {"gradient_accumulation_steps": 2},
        {"use_ema": True},
    ],
    ids=lambda option: next(iter(option)),
)
def test_o03_what_needs_the_wrapper_says_so_in_plain_compile(option):
    layer = Embedding(2)
    model = network(layer, 1)
    with pytest.raises(
        (ValueError, NotImplementedError), match=next(iter(option))
    ) as error:
        fit(
            model,
            optimizers.SGD(1.0, **option),
            np.array([[1]]),
            np.ones((1, 1)),
            batch_size=1,
        )
    remedy = "use_ema" if "use_ema" in option else "DynamicEmbeddingOptimizer"
    assert remedy in str(error.value)


def test_weight_averages_are_refused_by_the_wrapper_too():
    with pytest.raises((ValueError, NotImplementedError), match="use_ema"):
        fit(
            network(Embedding(2), 1),
            DynamicEmbeddingOptimizer(optimizers.Adam(use_ema=True)),
            np.array([[1]]),
            np.ones((1, 1)),
            batch_size=1,
        )


@pytest.mark.parametrize("name", ["sgd", "adam", "adagrad", "lion"])
def test_gradient_accumulation_steps_as_a_dense_model_does(name):
    keys = np.array([1, 2, 5])
    ids, labels, batch_size = every_key_in_every_batch(keys, 2, steps=6)
    model, layer, twin_model, twin = network_and_twin(keys, 3, 2)
    start = rows_of(layer, keys)
    config = optimizers.serialize(optimizers.get(name))
    config["config"] |= {"learning_rate": 0.1, "gradient_accumulation_steps": 3}
    optimizer = DynamicEmbeddingOptimizer(optimizers.deserialize(config))
    fit(model, optimizer, ids, labels, batch_size=batch_size)
    twin_optimizer = optimizers.deserialize(config)
    fit_twin(twin_model, twin_optimizer, ids, labels, batch_size)
    assert_all_moved(rows_of(layer, keys), start)
    assert_close(rows_of(layer, keys), twin.matrix)


def test_gradient_accumulation_keeps_ids_of_earlier_batches():
    layer = Embedding(2)
    start = rows_of(layer, [1, 2, 3])
    optimizer = DynamicEmbeddingOptimizer(
        optimizers.SGD(1.0, gradient_accumulation_steps=2)
    )
    for _ in range(2):
        assert np.all(_move(layer, optimizer, [1, 2], np.ones((2, 2))) == 0)
        _move(layer, optimizer, [2, 3, 3], np.full((3, 2), 4.0))
    moved = start - rows_of(layer, [1, 2, 3])
    assert_close(moved, np.array([[1, 1], [5, 5], [8, 8]]))


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_o05_mixed_precision_computes_low_and_stores_float32(policy):
    emb = Embedding(4, dtype=policy)
    ids = keras.Input((2,), dtype="int64")
    doubled = keras.layers.Flatten()(emb(ids) + emb(ids))
    tower = keras.layers.Dense(8, dtype=policy)(doubled)
    score = keras.layers.Dot(axes=1, dtype=policy)([doubled, tower])
    model = keras.Model(ids, keras.layers.Activation("linear")(score))
    assert emb(np.array([1])).dtype == keras.DTypePolicy(policy).compute_dtype
    batch = np.random.default_rng(0).integers(0, 9, size=(32, 2))
    start = rows_of(emb, np.unique(batch))
    assert start.dtype == np.float32
    loss = fit(model, "adam", batch, np.ones((32, 1)), batch_size=16)
    rows = rows_of(emb, np.unique(batch))
    assert np.isfinite(loss)
    assert np.all(np.isfinite(rows))
    assert np.any(rows != start)
    assert np.any(rows != np.float16(rows)), "rows were rounded to 16 bits"


@pytest.mark.parametrize("wrap", [lambda o: o, DynamicEmbeddingOptimizer])
def test_o05_a_step_that_overflows_changes_no_row_and_no_slot(wrap):
    layer = Embedding(4, dtype="mixed_float16")
    model = network(layer, 2, name="scaled")
    ids = np.random.default_rng(0).integers(0, 9, size=(8, 2))
    labels = np.ones((8, 1))
    optimizer = optimizers.LossScaleOptimizer(
        wrap(optimizers.Adam(0.1)), initial_scale=2.0
    )
    fit(model, optimizer, ids, labels, batch_size=8)
    before, dense = (
        records_of(layer.table),
        model.get_layer("score").get_weights(),
    )
    optimizer.dynamic_scale.assign(2.0**100)
    model.train_on_batch(ids, labels)
    assert float(optimizer.dynamic_scale) == 2.0**99, "no overflow"
    after = records_of(layer.table)
    assert after.keys() == before.keys()
    for key, (row, slots, *_) in before.items():
        np.testing.assert_array_equal(after[key][0], row)
        np.testing.assert_array_equal(after[key][1], slots)
    optimizer.dynamic_scale.assign(2.0)
    model.train_on_batch(ids, labels)
    assert all(
        np.any(r[0] != before[k][0]) for k, r in records_of(layer.table).items()
    )
    for old, new in zip(
        dense, model.get_layer("score").get_weights(), strict=True
    ):
        assert np.all(np.isfinite(new))
        assert np.any(old != new)


@pytest.mark.parametrize("wrap", [lambda o: o, DynamicEmbeddingOptimizer])
def test_o05_loss_scaling_leaves_the_result_of_a_step_as_it_is(wrap):
    keys = np.array([1, 2, 5])
    ids, labels, batch_size = every_key_in_every_batch(keys, 2, steps=3)
    model, layer, twin_model, twin = network_and_twin(keys, 3, 2)
    start = rows_of(layer, keys)
    scaled = optimizers.LossScaleOptimizer(
        wrap(optimizers.SGD(0.1)), initial_scale=1024.0
    )
    fit(model, scaled, ids, labels, batch_size=batch_size)
    fit_twin(twin_model, optimizers.SGD(0.1), ids, labels, batch_size)
    assert_all_moved(rows_of(layer, keys), start)
    assert_close(rows_of(layer, keys), twin.matrix)


@pytest.mark.parametrize(
    "option", [{"global_clipnorm": 0.1}, {"gradient_accumulation_steps": 2}]
)
def test_o05_loss_scaling_works_with_what_the_wrapper_adds(option):
    keys = np.array([1, 2, 5])
    ids, labels, batch_size = every_key_in_every_batch(keys, 2, steps=4)
    model, layer, twin_model, twin = network_and_twin(keys, 3, 2)
    start = rows_of(layer, keys)
    wrapped = DynamicEmbeddingOptimizer(optimizers.SGD(0.1, **option))
    scaled = optimizers.LossScaleOptimizer(wrapped, initial_scale=1024.0)
    fit(model, scaled, ids, labels, batch_size=batch_size)
    fit_twin(twin_model, optimizers.SGD(0.1, **option), ids, labels, batch_size)
    assert_all_moved(rows_of(layer, keys), start)
    assert_close(rows_of(layer, keys), twin.matrix)


def test_many_steps_in_one_execution_equal_single_steps():
    ids = np.random.default_rng(4).integers(0, 30, size=(64, 2))
    labels = random_rows(64, 1)
    results = []
    for steps in (1, 4):
        layer = repeatable(3)
        model = network(layer, 2)
        kwargs = {"batch_size": 8, "steps_per_execution": steps}
        fit(model, "adam", ids, labels, **kwargs)
        assert int(model.optimizer.iterations) == 8
        results.append(records_of(layer.table))
    assert_same_records(results[1], results[0])


def test_the_learning_rate_may_be_changed_between_steps():
    layer = embedding_with([1], np.zeros((1, 2)))
    optimizer = optimizers.SGD(1.0)
    assert_close(_move(layer, optimizer, [1], np.ones((1, 2))), [[-1, -1]])
    optimizer.learning_rate = 0.25
    assert_close(_move(layer, optimizer, [1], np.ones((1, 2))), [[-0.25] * 2])
