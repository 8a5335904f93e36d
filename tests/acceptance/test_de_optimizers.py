"""Optimizers of Keras 3 on what `de.embedding_lookup` returns as trainable."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from one_hot_regression import Regression


optimizers = keras.optimizers
NAMES = [
    "sgd", "adam", "adamw", "adamax", "nadam", "adagrad", "adadelta",
    "rmsprop", "ftrl", "lion",
]  # fmt: skip
CLIPPED = {
    "clipnorm": {"clipnorm": 0.1},
    "clipvalue": {"clipvalue": 0.05},
    "global_clipnorm": {"global_clipnorm": 0.1},
}


def trained(optimizer, *, dense, steps=4, in_function=True, **options):
    """Rows and kernel after some steps."""
    model = Regression(dense=dense, **options)
    if not dense:
        optimizer = de.DynamicEmbeddingOptimizer(optimizer)
    step = model.step
    if in_function:
        step = tf.function(lambda: model.step(optimizer))
    for _ in range(steps):
        step() if in_function else step(optimizer)
    assert int(optimizer.iterations) == steps
    return model.rows(), model.kernel.numpy()


def assert_same(actual, expected):
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    "in_function", [False, True], ids=["eager", "function"]
)
@pytest.mark.parametrize("name", NAMES)
def test_o01_rows_move_as_a_dense_matrix(name, in_function):
    actual = trained(optimizers.get(name), dense=False, in_function=in_function)
    expected = trained(optimizers.get(name), dense=True)
    assert_same(actual, expected)


@pytest.mark.parametrize("form", ["string", "config", "object"])
def test_o01_optimizers_are_taken_in_any_form(form):
    given = {
        "string": "adam",
        "config": optimizers.serialize(optimizers.Adam()),
        "object": optimizers.Adam(),
    }[form]
    actual = trained(given, dense=False)
    assert_same(actual, trained(optimizers.Adam(), dense=True))


@pytest.mark.parametrize("name", ["adafactor", "muon"])
def test_o01_optimizers_that_need_whole_matrices_are_refused(name):
    with pytest.raises(ValueError, match="(?i)optimizer .*table 'refused'"):
        trained(
            optimizers.get(name), dense=False, in_function=False, name="refused"
        )


@pytest.mark.parametrize(
    "optimizer",
    [
        optimizers.SGD(0.1, momentum=0.9),
        optimizers.AdamW(0.1, weight_decay=0.5),
        optimizers.Lion(0.1),
    ],
    ids=lambda o: type(o).__name__,
)
def test_o02_rows_out_of_the_batch_stay_bit_equal(optimizer):
    variable = de.Variable(dim=2, name="lazy", initializer=1.0)
    optimizer = de.DynamicEmbeddingOptimizer(optimizer)
    for ids in ([1], [2], [2]):
        before = variable.lookup([1]).numpy()
        with tf.GradientTape() as tape:
            rows, trainable = de.embedding_lookup(
                variable, ids, return_trainable=True
            )
            loss = tf.reduce_sum(rows)
        gradient = tape.gradient(loss, trainable)
        optimizer.apply_gradients([(gradient, trainable)])
        moved = not np.array_equal(variable.lookup([1]).numpy(), before)
        assert moved == (ids == [1])


@pytest.mark.parametrize("name", CLIPPED)
def test_o03_gradients_are_clipped_after_repeats_are_summed(name):
    make = lambda: optimizers.SGD(1.0, **CLIPPED[name])  # noqa: E731
    assert_same(trained(make(), dense=False), trained(make(), dense=True))


def test_o05_an_overflow_of_a_scaled_loss_changes_nothing():
    variable = de.Variable(dim=2, name="scaled", initializer=1.0)
    inner = optimizers.Adam(0.1)
    optimizer = de.DynamicEmbeddingOptimizer(
        optimizers.LossScaleOptimizer(inner, initial_scale=4.0)
    )

    def step(factor):
        with tf.GradientTape() as tape:
            rows, trainable = de.embedding_lookup(
                variable, [1, 2], return_trainable=True
            )
            half = tf.cast(rows, tf.float16) * factor
            loss = optimizer.scale_loss(tf.reduce_sum(tf.cast(half, "float32")))
        gradient = tape.gradient(loss, trainable)
        optimizer.apply_gradients([(gradient, trainable)])
        return variable.lookup([1, 2]).numpy()

    first = step(1.0)
    np.testing.assert_allclose(first, 0.9, rtol=1e-5)
    np.testing.assert_array_equal(step(np.float16("inf")), first)
    assert (step(1.0) < first).all()


def test_o06_a_schedule_continues_after_a_restore(tmp_path):
    def make():
        model = Regression(dense=False)
        rate = optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
        optimizer = de.DynamicEmbeddingOptimizer(optimizers.Adam(rate))
        state = tf.train.Checkpoint(
            table=model.table, kernel=model.kernel, optimizer=optimizer
        )
        return model, optimizer, state

    model, optimizer, state = make()
    for _ in range(5):
        model.step(optimizer)
    path = state.save(str(tmp_path / "at_five"))
    for _ in range(5):
        model.step(optimizer)

    again, optimizer_again, state = make()
    restored = state.restore(path)
    for _ in range(5):
        again.step(optimizer_again)
    restored.assert_consumed()
    assert int(optimizer_again.iterations) == 10
    rates = [float(o.learning_rate) for o in (optimizer, optimizer_again)]
    assert rates[0] == rates[1] == pytest.approx(0.1 * 0.5**5)
    np.testing.assert_array_equal(again.rows(), model.rows())


def test_o07_tables_have_optimizers_of_their_own(tmp_path):
    wide = de.Variable(dim=1, name="wide")
    deep = de.Variable(dim=2, name="deep", initializer=1.0)
    ftrl = de.DynamicEmbeddingOptimizer(optimizers.Ftrl(0.1))
    adam = de.DynamicEmbeddingOptimizer(optimizers.Adam(0.1))
    with tf.GradientTape() as tape:
        looked_up = [
            de.embedding_lookup(v, [1, 2], return_trainable=True)
            for v in (wide, deep)
        ]
        loss = tf.add_n([tf.reduce_sum(rows) for rows, _ in looked_up])
    gradients = tape.gradient(loss, [trainable for _, trainable in looked_up])
    for optimizer, gradient, (_, trainable) in zip(
        (ftrl, adam), gradients, looked_up, strict=True
    ):
        optimizer.apply_gradients([(gradient, trainable)])
    expected = [("accumulator", "linear"), ("momentum", "velocity")]
    assert [v.tables[0].slot_names for v in (wide, deep)] == expected
    path = tf.train.Checkpoint(wide=wide, deep=deep).save(str(tmp_path / "c"))
    copies = [de.Variable(dim=d, name="copy") for d in (1, 2)]
    tf.train.Checkpoint(wide=copies[0], deep=copies[1]).restore(path)
    assert [v.tables[0].slot_names for v in copies] == expected
