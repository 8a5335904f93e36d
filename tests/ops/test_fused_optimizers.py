"""Fused updates against double-precision formulas and against Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra import _ops
from numerics import assert_allclose
from ops.calls import lookup_one
from ops.float64_optimizers import DEFAULTS, RULES, clipped


DIM = 5
NUM_KEYS = 60
CASES = {
    "sgd": ("sgd", {}),
    "sgd, weight decay": ("sgd", {"weight_decay": 0.1}),
    "momentum": ("momentum", {"momentum": 0.9}),
    "nesterov": ("momentum", {"momentum": 0.9, "nesterov": True}),
    "adagrad": ("adagrad", {"initial_accumulator": 0.1}),
    "rowwise": ("rowwise_adagrad", {"initial_accumulator": 0.1}),
    "adam": ("adam", {}),
    "amsgrad": ("adam", {"amsgrad": True, "beta_2": 0.5}),
    "adamw": ("adam", {"weight_decay": 0.05}),
    "ftrl": ("ftrl", {"initial_accumulator": 0.1}),
    "ftrl, all terms": (
        "ftrl",
        {
            "initial_accumulator": 0.1,
            "l1": 0.05,
            "l2": 0.1,
            "beta": 0.2,
            "l2_shrinkage": 0.05,
        },
    ),
    "ftrl, power": (
        "ftrl",
        {"initial_accumulator": 0.1, "learning_rate_power": -0.7},
    ),
    "rmsprop": ("rmsprop", {}),
    "rmsprop, momentum": ("rmsprop", {"momentum": 0.5}),
    "rmsprop, centered": ("rmsprop", {"centered": True}),
    "rmsprop, both": ("rmsprop", {"momentum": 0.5, "centered": True}),
    "clipnorm": ("sgd", {"clipnorm": 1.0}),
    "clipvalue": ("adam", {"clipvalue": 0.3}),
    "both clips": (
        "adagrad",
        {"clipnorm": 2.0, "clipvalue": 0.2, "initial_accumulator": 0.1},
    ),
}


def make_table(dim=DIM, dtype="float32"):
    return _ops.anonymous_table(
        name="t",
        dim=dim,
        dtype=dtype,
        initializer="normal",
        initializer_parameters=[0.0, 0.5],
        seed=3,
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dim", [1, 5, 16, 37])
def test_steps_equal_the_formula_in_double_precision(case, dim, rng):
    optimizer, given = CASES[case]
    hyper = {**DEFAULTS, **given}
    handle = make_table(dim)
    keys = np.arange(NUM_KEYS)
    expected = lookup_one(handle, keys, dim)[0].numpy().astype(np.float64)
    slots = {}
    for step in range(1, 6):
        touched = rng.integers(0, NUM_KEYS, 100)  # with repeats
        grads = rng.normal(size=(100, dim)).astype(np.float32)
        lr = 0.1 / step
        positions = lookup_one(handle, touched, dim)[1]
        _ops.table_update(
            [handle],
            [positions],
            [grads],
            lr,
            step,
            0.5,
            optimizer=optimizer,
            **given,
        )
        reference_step(
            optimizer,
            expected,
            slots,
            touched,
            0.5 * grads,
            {**hyper, "lr": lr, "step": step},
        )
    actual = lookup_one(handle, keys, dim)[0]
    assert_allclose(actual, expected, rtol=2e-4, atol=2e-5)


def reference_step(optimizer, rows, slots, touched, grads, hyper):
    """Steps the touched rows only, their gradients summed first."""
    total = np.zeros_like(rows)
    np.add.at(total, touched, grads)
    which = np.unique(touched)
    # Made by the rule at the first step, for all rows; sliced afterwards.
    if not slots:
        nothing = np.zeros_like(rows)
        RULES[optimizer](rows.copy(), slots, nothing, hyper)
        reset = {}
        RULES[optimizer](rows[:0].copy(), reset, nothing[:0], hyper)
        for name, values in slots.items():
            initial = hyper["initial_accumulator"]
            values[:] = initial if name == "accumulator" else 0.0
    part = rows[which]
    part_slots = {name: values[which] for name, values in slots.items()}
    if hyper["weight_decay"]:
        part -= part * hyper["weight_decay"] * hyper["lr"]
    grad = clipped(total[which], hyper)
    RULES[optimizer](part, part_slots, grad, hyper)
    rows[which] = part
    for name, values in part_slots.items():
        slots[name][which] = values


def test_rows_that_are_not_touched_stay_bit_for_bit():
    handle = make_table()
    keys = np.arange(10)
    before, positions, *_ = lookup_one(handle, keys, DIM)
    for step in (1, 2):
        _ops.table_update(
            [handle],
            [positions[:3]],
            [tf.ones([3, DIM])],
            0.1,
            step,
            optimizer="adam",
            weight_decay=0.1,
        )
    after = lookup_one(handle, keys, DIM)[0]
    assert_allclose(after[3:], before[3:], rtol=0, atol=0)
    assert not np.allclose(after[:3], before[:3])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_low_precision_rows_keep_float32_slots(dtype, rng):
    handle = make_table(dtype=dtype)
    keys = np.arange(NUM_KEYS)
    rows, positions, *_ = lookup_one(handle, keys, DIM, dtype=dtype)
    grads = rng.normal(size=(NUM_KEYS, DIM)).astype(np.float32)
    _ops.table_update(
        [handle],
        [positions],
        [grads],
        0.1,
        1,
        optimizer="adagrad",
        initial_accumulator=0.1,
    )
    expected = rows.numpy().astype(np.float64)
    slots = {}
    RULES["adagrad"](
        expected,
        slots,
        grads,
        {**DEFAULTS, "lr": 0.1, "initial_accumulator": 0.1},
    )
    after = lookup_one(handle, keys, DIM, dtype=dtype)[0]
    rounding = {"bfloat16": 2**-8, "float16": 2**-11}[dtype]
    assert_allclose(after, expected, rtol=rounding, atol=rounding)
    _, [accumulator] = _ops.table_read_records(
        handle, positions, ["accumulator"], dim=DIM
    )
    assert_allclose(accumulator, slots["accumulator"])


KERAS_CASES = {
    "sgd": (keras.optimizers.SGD, {}, "sgd", {}),
    "nesterov": (
        keras.optimizers.SGD,
        {"momentum": 0.9, "nesterov": True},
        "momentum",
        {"momentum": 0.9, "nesterov": True},
    ),
    "adagrad": (
        keras.optimizers.Adagrad,
        {},
        "adagrad",
        {"initial_accumulator": 0.1},
    ),
    "adam": (keras.optimizers.Adam, {}, "adam", {}),
    "amsgrad": (
        keras.optimizers.Adam,
        {"amsgrad": True},
        "adam",
        {"amsgrad": True},
    ),
    "adamw": (keras.optimizers.AdamW, {}, "adam", {"weight_decay": 0.004}),
    "ftrl": (keras.optimizers.Ftrl, {}, "ftrl", {"initial_accumulator": 0.1}),
    "rmsprop": (
        keras.optimizers.RMSprop,
        {"momentum": 0.3, "centered": True},
        "rmsprop",
        {"momentum": 0.3, "centered": True},
    ),
}


@pytest.mark.parametrize("case", KERAS_CASES)
def test_steps_equal_those_of_keras_when_every_row_is_touched(case, rng):
    make, options, optimizer, hyper = KERAS_CASES[case]
    handle = make_table()
    rows, positions, *_ = lookup_one(handle, np.arange(NUM_KEYS), DIM)
    variable = keras.Variable(rows.numpy())
    reference = make(learning_rate=0.05, **options)
    for step in range(1, 6):
        grads = rng.normal(size=(NUM_KEYS, DIM)).astype(np.float32)
        reference.apply([tf.constant(grads)], [variable])
        _ops.table_update(
            [handle],
            [positions],
            [grads],
            0.05,
            step,
            optimizer=optimizer,
            **hyper,
        )
    actual = lookup_one(handle, np.arange(NUM_KEYS), DIM)[0]
    assert_allclose(actual, variable.numpy(), rtol=1e-5, atol=2e-6)


def test_another_optimizer_starts_its_own_slots():
    handle = make_table()
    _, positions, *_ = lookup_one(handle, [1, 2], DIM)
    grads = tf.ones([2, DIM])
    _ops.table_update([handle], [positions], [grads], 0.1, 1, optimizer="adam")
    _ops.table_update(
        [handle],
        [positions],
        [grads],
        0.1,
        2,
        optimizer="adagrad",
        initial_accumulator=0.5,
    )
    names, _, initials = _ops.table_slots(handle)
    assert names.numpy().tolist() == [b"accumulator"]
    assert initials.numpy().tolist() == [0.5]
    _, [accumulator] = _ops.table_read_records(
        handle, positions, ["accumulator"], dim=DIM
    )
    assert_allclose(accumulator, np.full((2, DIM), 1.5))


def test_a_gradient_whose_record_is_gone_is_dropped_and_counted():
    handle = make_table()
    _, positions, *_ = lookup_one(handle, [1, 2], DIM)
    _ops.table_remove([handle], [[1]])
    _ops.table_update(
        [handle], [positions], [tf.ones([2, DIM])], 0.1, 1, optimizer="sgd"
    )
    counters = _ops.table_statistics(handle)[0].numpy()
    assert counters[7] == 1  # updates
    assert counters[8] == 1  # stale gradients
    assert int(_ops.table_size([handle])[0]) == 1
