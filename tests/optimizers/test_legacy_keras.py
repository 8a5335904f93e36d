"""tf_keras optimizers, current and legacy, move tables as dense matrices."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import embedra.dynamic_embedding as de
from embedra import optimizers
from numerics import assert_allclose
from one_hot_regression import (
    DIM,
    IDS,
    LABELS,
    VOCABULARY,
    WIDTH,
    Regression,
    start_kernel,
    start_rows,
)


O = tf_keras.optimizers
L = tf_keras.optimizers.legacy


class SignMomentum(O.Optimizer):
    """An optimizer as a user may write it."""

    def __init__(self, learning_rate=0.01, alpha=0.5, name="Sign", **kwargs):
        super().__init__(name, **kwargs)
        self._learning_rate = self._build_learning_rate(learning_rate)
        self.alpha = alpha

    def build(self, var_list):
        super().build(var_list)
        if getattr(self, "_built", False):
            return
        self.momentums = [
            self.add_variable_from_reference(v, "momentum") for v in var_list
        ]
        self._built = True

    def update_step(self, gradient, variable):
        key = self._index_dict[self._var_key(variable)]
        momentum = self.momentums[key]
        momentum.assign(momentum * self.alpha + gradient)
        rate = tf.cast(self.learning_rate, variable.dtype)
        variable.assign_sub(tf.sign(momentum) * rate + 0.001 * variable)


class LegacySign(L.Optimizer):
    """A legacy optimizer as a user may write it."""

    def __init__(self, learning_rate=0.01, name="LegacySign", **kwargs):
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", learning_rate)

    def _create_slots(self, var_list):
        for variable in var_list:
            self.add_slot(variable, "momentum", "ones")

    def _resource_apply_dense(self, grad, var):
        momentum = self.get_slot(var, "momentum")
        new = momentum.assign(momentum * 0.5 + grad)
        rate = self._decayed_lr(tf.float32)
        return var.assign_sub(tf.sign(new) * rate, read_value=False)

    def get_config(self):
        return super().get_config()


FTRL = {
    "l1_regularization_strength": 0.01,
    "l2_regularization_strength": 0.02,
    "l2_shrinkage_regularization_strength": 0.03,
    "beta": 0.1,
}
CURRENT = {
    "sgd": lambda **k: O.SGD(0.1, **k),
    "momentum": lambda **k: O.SGD(0.1, momentum=0.9, **k),
    "nesterov": lambda **k: O.SGD(0.1, momentum=0.9, nesterov=True, **k),
    "adagrad": lambda **k: O.Adagrad(0.1, **k),
    "adam": lambda **k: O.Adam(0.01, **k),
    "amsgrad": lambda **k: O.Adam(0.01, amsgrad=True, **k),
    "adamw": lambda **k: O.AdamW(0.01, weight_decay=0.1, **k),
    "ftrl": lambda **k: O.Ftrl(0.1, **FTRL, **k),
    "rmsprop": lambda **k: O.RMSprop(0.01, **k),
    "rmsprop_centered": lambda **k: O.RMSprop(
        0.01, momentum=0.9, centered=True, **k
    ),
    "nadam": lambda **k: O.Nadam(0.01, **k),
    "adamax": lambda **k: O.Adamax(0.01, **k),
    "adadelta": lambda **k: O.Adadelta(1.0, **k),
    "lion": lambda **k: O.Lion(0.01, **k),
    "user": lambda **k: SignMomentum(0.01, **k),
}
LEGACY = {
    "sgd": lambda **k: L.SGD(0.1, decay=0.1, **k),
    "momentum": lambda **k: L.SGD(0.1, momentum=0.9, **k),
    "nesterov": lambda **k: L.SGD(0.1, momentum=0.9, nesterov=True, **k),
    "adagrad": lambda **k: L.Adagrad(0.1, **k),
    "adam": lambda **k: L.Adam(0.01, **k),
    "amsgrad": lambda **k: L.Adam(0.01, amsgrad=True, **k),
    "ftrl": lambda **k: L.Ftrl(0.1, **FTRL, **k),
    "rmsprop": lambda **k: L.RMSprop(0.01, **k),
    "rmsprop_centered": lambda **k: L.RMSprop(
        0.01, momentum=0.9, centered=True, **k
    ),
    "nadam": lambda **k: L.Nadam(0.01, **k),
    "adamax": lambda **k: L.Adamax(0.01, **k),
    "adadelta": lambda **k: L.Adadelta(1.0, **k),
    "user": lambda **k: LegacySign(0.01, **k),
}
ALL = {f"current_{name}": make for name, make in CURRENT.items()}
ALL |= {f"legacy_{name}": make for name, make in LEGACY.items()}
SETTINGS = {
    "clipnorm": {"clipnorm": 0.05},
    "clipvalue": {"clipvalue": 0.01},
    "global_clipnorm": {"global_clipnorm": 0.05},
}


def _train(model, optimizer, *, function=False, steps=4, rate=None):
    def step():
        model.step(optimizer)

    run = tf.function(step) if function else step
    for number in range(steps):
        if number == steps // 2 and rate is not None:
            optimizer.learning_rate = rate
        run()


def _compare(make, *, function, rate=0.003, **options):
    dense, ours = Regression(dense=True), Regression(dense=False, **options)
    _train(dense, make(), function=function, rate=rate)
    optimizer = de.DynamicEmbeddingOptimizer(make())
    _train(ours, optimizer, function=function, rate=rate)
    assert np.abs(dense.rows() - start_rows()).max() > 1e-4
    assert_allclose(ours.rows(), dense.rows())
    assert_allclose(ours.kernel.numpy(), dense.kernel.numpy())
    assert int(optimizer.iterations) == 4


@pytest.mark.parametrize(
    ("name", "function"),
    [(name, True) for name in ALL]
    + [
        (name, False)
        for name in ALL
        if name.endswith(("_momentum", "_adam", "_nadam", "_rmsprop", "_user"))
    ],
)
def test_steps_equal_dense(name, function):
    _compare(ALL[name], function=function)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["current_adam", "legacy_adam"])
def test_o03_gradients_are_clipped_after_summing(name, setting):
    _compare(lambda: ALL[name](**SETTINGS[setting]), function=True)


def test_weight_decay_equals_dense():
    _compare(lambda: O.SGD(0.1, weight_decay=0.1), function=True)


def test_excluded_variables_do_not_decay():
    model = Regression(dense=False)
    optimizer = de.DynamicEmbeddingOptimizer(O.SGD(0.0, weight_decay=0.5))
    optimizer.exclude_from_weight_decay(
        var_list=[model.table.trainable_of(None)]
    )
    optimizer.learning_rate = 1.0
    with tf.GradientTape() as tape:
        loss, variables = model.loss()
    slices, kernel = tape.gradient(loss, variables)
    slices = tf.IndexedSlices(slices.values * 0.0, slices.indices)
    optimizer.apply_gradients(
        zip([slices, kernel * 0.0], variables, strict=True)
    )
    assert_allclose(model.rows(), start_rows())
    assert_allclose(model.kernel.numpy(), start_kernel() * 0.5)


@pytest.mark.parametrize("name", ["current_adam", "legacy_adam"])
def test_schedules_are_followed(name):
    def make():
        optimizer = ALL[name]()
        schedule = O.schedules.ExponentialDecay(0.1, 1, 0.5)
        return type(optimizer)(schedule)

    _compare(make, function=True, rate=None)


@pytest.mark.parametrize("name", ["current_adam", "legacy_nadam"])
def test_tables_of_several_devices_equal_dense(name):
    _compare(ALL[name], function=True, devices=["CPU:0", "CPU:0"])


def test_norm_of_tables_on_several_devices_is_that_of_their_variable():
    _compare(
        lambda: O.SGD(0.1, clipnorm=0.05),
        function=True,
        devices=["CPU:0", "CPU:0"],
    )


@pytest.mark.parametrize("name", ALL)
def test_o02_untouched_rows_do_not_move(name):
    model = Regression(dense=False)
    extra = np.array([100, 101], np.int64)
    model.table.upsert(extra, np.ones((2, DIM), np.float32))
    optimizer = de.DynamicEmbeddingOptimizer(ALL[name]())

    def step(ids):
        with tf.GradientTape() as tape:
            rows, variable = de.embedding_lookup(
                model.table, ids, return_trainable=True
            )
            loss = tf.reduce_sum(rows**2)
        gradient = tape.gradient(loss, [variable])
        optimizer.apply_gradients(zip(gradient, [variable], strict=True))

    step(np.array([100, 0], np.int64))
    touched = model.table.lookup([100]).numpy()
    step(np.array([0, 1, 1], np.int64))
    assert_allclose(model.table.lookup([100]).numpy(), touched)
    assert np.abs(touched - 1.0).max() > 1e-4
    assert_allclose(model.table.lookup([101]).numpy(), np.ones((1, DIM)))


@pytest.mark.parametrize("name", ["current_adam", "legacy_adam"])
def test_all_lookups_of_a_table_are_one_step(name):
    """Rows of two lookups move once, by the sum of their gradients."""
    table = de.Variable(dim=DIM, initializer=1.0)
    dense = tf.Variable(np.ones((VOCABULARY, DIM), np.float32))
    ours, theirs = de.DynamicEmbeddingOptimizer(ALL[name]()), ALL[name]()
    with tf.GradientTape() as tape:
        a, first = de.embedding_lookup(
            table, [1, 1], name="a", return_trainable=True
        )
        b, second = de.embedding_lookup(
            table, [1], name="b", return_trainable=True
        )
        loss = tf.reduce_sum(a) - 5.0 * tf.reduce_sum(b)
    variables = [first, second]
    gradients = tape.gradient(loss, variables)
    ours.apply_gradients(zip(gradients, variables, strict=True))
    theirs.apply_gradients([(tf.fill((VOCABULARY, DIM), -3.0), dense)])
    assert_allclose(table.lookup([1]).numpy(), dense.numpy()[1:2])


@pytest.mark.parametrize("name", ["current_adam", "legacy_adam"])
@pytest.mark.parametrize("function", [False, True])
def test_minimize(name, function):
    dense, ours = Regression(dense=True), Regression(dense=False)
    for model, optimizer in (
        (dense, ALL[name]()),
        (ours, de.DynamicEmbeddingOptimizer(ALL[name]())),
    ):
        variables = model.loss()[1]

        def step(model=model, optimizer=optimizer, variables=variables):
            optimizer.minimize(lambda: model.loss()[0], variables)

        run = tf.function(step) if function else step
        run()
        run()
    assert_allclose(ours.rows(), dense.rows())


class _Lookup(tf_keras.layers.Layer):
    """A layer of tf_keras over a `de.Variable`."""

    def __init__(self, table):
        super().__init__()
        self.table = table
        self._trainable_weights.append(table.trainable_of(None).value)

    def call(self, ids):
        return de.embedding_lookup(self.table, ids)


class _OneHot(tf_keras.layers.Layer):
    def build(self, shape):
        del shape
        self.rows = self.add_weight(name="rows", shape=(VOCABULARY, DIM))
        self.rows.assign(start_rows())

    def call(self, ids):
        return tf.tensordot(tf.one_hot(ids, VOCABULARY), self.rows, 1)


@pytest.mark.parametrize("name", ["current_adam", "legacy_adam"])
def test_compile_and_fit(name):
    table = de.Variable(dim=DIM)
    table.upsert(np.arange(VOCABULARY), start_rows())
    layers = {True: _OneHot(), False: _Lookup(table)}
    for is_dense, layer in layers.items():
        model = tf_keras.Sequential(
            [
                layer,
                tf_keras.layers.Reshape((WIDTH * DIM,)),
                tf_keras.layers.Dense(1, kernel_initializer="ones"),
            ]
        )
        optimizer = ALL[name]()
        if not is_dense:
            optimizer = de.DynamicEmbeddingOptimizer(optimizer)
        model.compile(optimizer, "mse")
        model.fit(IDS, LABELS, batch_size=3, epochs=3, verbose=0)
    ours = table.lookup(np.arange(VOCABULARY)).numpy()
    assert_allclose(ours, layers[True].rows.numpy(), atol=2e-6)
    assert np.abs(ours - start_rows()).max() > 1e-3


@pytest.mark.parametrize("name", ["current_adam", "legacy_adam"])
def test_result_is_an_instance_with_the_same_state(name):
    optimizer = ALL[name]()
    wrapped = de.DynamicEmbeddingOptimizer(optimizer)
    assert isinstance(wrapped, type(optimizer))
    assert type(wrapped).__name__ == "DynamicEmbeddingAdam"
    optimizer.learning_rate = 0.125
    assert float(wrapped.learning_rate) == 0.125
    assert de.DynamicEmbeddingOptimizer(wrapped) is wrapped


@pytest.mark.parametrize("name", ["current_adam", "legacy_adam"])
def test_configs_rebuild_wrapped_optimizers(name):
    wrapped = de.DynamicEmbeddingOptimizer(ALL[name]())
    again = tf_keras.saving.deserialize_keras_object(
        tf_keras.saving.serialize_keras_object(wrapped)
    )
    assert type(again).__mro__[1:] == type(wrapped).__mro__[1:]
    assert float(again.learning_rate) == pytest.approx(0.01)


@pytest.mark.parametrize(
    "name",
    ["current_adam", "current_nadam", "legacy_adam", "legacy_nadam"],
)
def test_state_is_saved_with_the_tables(name, tmp_path):
    straight = Regression(dense=True)
    _train(straight, ALL[name](), steps=4)

    def checkpoint(model, optimizer):
        return tf.train.Checkpoint(
            table=model.table, kernel=model.kernel, optimizer=optimizer
        )

    first = Regression(dense=False)
    optimizer = de.DynamicEmbeddingOptimizer(ALL[name]())
    _train(first, optimizer, steps=2)
    path = checkpoint(first, optimizer).write(str(tmp_path / "state"))
    second = Regression(dense=False)
    optimizer = de.DynamicEmbeddingOptimizer(ALL[name]())
    checkpoint(second, optimizer).read(path)
    _train(second, optimizer, steps=2)
    assert_allclose(second.rows(), straight.rows())
    assert_allclose(second.kernel.numpy(), straight.kernel.numpy())


def test_adafactor_is_refused():
    model = Regression(dense=False)
    optimizer = de.DynamicEmbeddingOptimizer(O.Adafactor(0.1))
    with pytest.raises(
        optimizers.UnsupportedOptimizerError, match="Use SGD, Adagrad"
    ):
        model.step(optimizer)


def test_averages_are_refused():
    model = Regression(dense=False)
    optimizer = de.DynamicEmbeddingOptimizer(O.SGD(0.1, use_ema=True))
    with pytest.raises(
        optimizers.UnsupportedOptimizerError, match="use_ema=False"
    ):
        model.step(optimizer)


def test_state_that_is_no_constant_is_refused():
    class Copying(L.SGD):
        def _create_slots(self, var_list):
            for variable in var_list:
                self.add_slot(variable, "noise", "random_normal")

    model = Regression(dense=False)
    with pytest.raises(
        optimizers.UnsupportedOptimizerError, match="'noise' does not start"
    ):
        model.step(de.DynamicEmbeddingOptimizer(Copying(0.1)))


def test_loss_scale_optimizers_are_refused():
    scaled = tf_keras.mixed_precision.LossScaleOptimizer(O.SGD(0.1))
    with pytest.raises(
        optimizers.UnsupportedOptimizerError, match="LossScaleOptimizer"
    ):
        de.DynamicEmbeddingOptimizer(scaled)


def test_dense_gradients_of_tables_are_refused():
    model = Regression(dense=False)
    optimizer = de.DynamicEmbeddingOptimizer(O.SGD(0.1))
    trainable = model.table.trainable_of(None)
    with pytest.raises(TypeError, match=r"tf\.IndexedSlices"):
        optimizer.apply_gradients([(tf.ones((2, DIM)), trainable)])


# These meet the dtype of Keras 3 first, which is a string.
ASK_FOR_DTYPE = ("legacy_adagrad", "legacy_ftrl", "legacy_nadam")


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_plain_optimizers_fail(name, inner, traced):
    """Never does a step without the wrapper go by in silence."""
    table = de.Variable(dim=DIM, name="user")
    optimizer = ALL[name]()

    def step():
        with tf.GradientTape() as tape:
            rows, variable = de.embedding_lookup(
                table, [1], return_trainable=True
            )
            loss = tf.reduce_sum(rows)
        variable = variable.value if inner else variable
        gradients = tape.gradient(loss, [variable])
        optimizer.apply_gradients(zip(gradients, [variable], strict=True))

    errors = optimizers.UnsupportedOptimizerError
    message = r"cannot update 'user'.*DynamicEmbeddingOptimizer\("
    if name in ASK_FOR_DTYPE and not inner:
        errors, message = AttributeError, "base_dtype"
    with pytest.raises(errors, match=message):
        (tf.function(step) if traced else step)()


@pytest.mark.parametrize("name", ["current_adam", "legacy_sgd"])
def test_plain_optimizers_fail_in_fit(name):
    layer = de.keras.legacy.layers.Embedding(DIM, name="user")
    model = tf_keras.Sequential([layer, tf_keras.layers.Flatten()])
    model.compile(ALL[name](), "mse")
    with pytest.raises(
        optimizers.UnsupportedOptimizerError, match="cannot update 'user'"
    ):
        model.fit(np.array([[1], [2]]), np.zeros((2, DIM)), verbose=0)


def test_plain_optimizers_may_look_rows_up_in_their_loss():
    table = de.Variable(dim=DIM, name="user", initializer=1.0)
    dense = tf.Variable(1.0)

    def loss():
        return dense * tf.reduce_sum(de.embedding_lookup(table, [1]))

    tf_keras.optimizers.legacy.SGD(0.5).minimize(loss, [dense])
    assert_allclose(dense, 1.0 - 0.5 * DIM)


@pytest.mark.parametrize("name", ["current_adam", "legacy_adam"])
def test_loss_scaling_around_equals_dense(name):
    dense, ours = Regression(dense=True), Regression(dense=False)
    for model, optimizer in (
        (dense, ALL[name]()),
        (ours, de.DynamicEmbeddingOptimizer(ALL[name]())),
    ):
        scaled = tf_keras.mixed_precision.LossScaleOptimizer(optimizer)
        with tf.GradientTape() as tape:
            loss, variables = model.loss()
            loss = scaled.get_scaled_loss(loss)
        gradients = scaled.get_unscaled_gradients(
            tape.gradient(loss, variables)
        )
        scaled.apply_gradients(zip(gradients, variables, strict=True))
    assert_allclose(ours.rows(), dense.rows())


def test_keras_3_optimizers_stay_theirs():
    wrapped = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(0.1))
    assert isinstance(wrapped, keras.optimizers.Optimizer)
