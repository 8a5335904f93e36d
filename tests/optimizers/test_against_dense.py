"""Each optimizer moves a table as it moves a dense matrix."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from dense_reference import batches, dense_model, fit, start_rows, table_model
from embedra.optimizers import DynamicEmbeddingOptimizer, RowwiseAdagrad
from numerics import assert_allclose


O = keras.optimizers


@keras.saving.register_keras_serializable(package="embedra_tests")
class SignMomentum(O.Optimizer):
    """An optimizer as a user may write it, in the manner of Keras's docs."""

    def __init__(self, alpha, learning_rate=0.01, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.alpha = alpha

    def build(self, variables):
        super().build(variables)
        self.momentums = [
            self.add_variable_from_reference(variable, name="momentum")
            for variable in variables
        ]

    def update_step(self, gradient, variable, learning_rate):
        momentum = self.momentums[self._get_variable_index(variable)]
        self.assign(momentum, momentum * self.alpha + gradient)
        step = keras.ops.sign(momentum) * learning_rate + 0.001 * variable
        self.assign_sub(variable, step)


class DampedAdam(O.Adam):
    """Changes Adam's rule, and so must not run Adam's kernel."""

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient * 0.5, variable, learning_rate)


OPTIMIZERS = {
    "sgd": lambda **k: O.SGD(0.1, **k),
    "momentum": lambda **k: O.SGD(0.1, momentum=0.9, **k),
    "nesterov": lambda **k: O.SGD(0.1, momentum=0.9, nesterov=True, **k),
    "adagrad": lambda **k: O.Adagrad(0.1, **k),
    "rowwise_adagrad": lambda **k: RowwiseAdagrad(0.1, **k),
    "adam": lambda **k: O.Adam(0.01, **k),
    "amsgrad": lambda **k: O.Adam(0.01, amsgrad=True, **k),
    "adamw": lambda **k: O.AdamW(0.01, weight_decay=0.1, **k),
    "ftrl": lambda **k: O.Ftrl(
        0.1,
        l1_regularization_strength=0.01,
        l2_regularization_strength=0.02,
        l2_shrinkage_regularization_strength=0.03,
        beta=0.1,
        **k,
    ),
    "ftrl_power": lambda **k: O.Ftrl(0.1, learning_rate_power=-0.3, **k),
    "rmsprop": lambda **k: O.RMSprop(0.01, **k),
    "rmsprop_centered": lambda **k: O.RMSprop(
        0.01, momentum=0.9, centered=True, **k
    ),
    "nadam": lambda **k: O.Nadam(0.01, **k),
    "adamax": lambda **k: O.Adamax(0.01, **k),
    "adadelta": lambda **k: O.Adadelta(1.0, **k),
    "lion": lambda **k: O.Lion(0.01, **k),
    "lamb": lambda **k: O.Lamb(0.01, **k),
    "damped_adam": lambda **k: DampedAdam(0.01, **k),
    "user": lambda **k: SignMomentum(0.5, 0.01, **k),
}

SETTINGS = {
    "clipnorm": {"clipnorm": 0.05},
    "clipvalue": {"clipvalue": 0.01},
    "weight_decay": {"weight_decay": 0.1},
    "loss_scale_factor": {"loss_scale_factor": 64.0},
}


def _compare(make_optimizer, rtol=2e-5, atol=2e-6, wrap=None, **options):
    dense, dense_rows = dense_model()
    fit(dense, make_optimizer(), **options)
    ours, our_rows = table_model()
    optimizer = make_optimizer()
    fit(ours, wrap(optimizer) if wrap else optimizer, **options)
    moved = np.abs(dense_rows() - start_rows()).max()
    assert moved > 1e-4
    assert_allclose(our_rows(), dense_rows(), rtol=rtol, atol=atol)
    for mine, theirs in zip(
        ours.trainable_variables[1:], dense.trainable_variables[1:], strict=True
    ):
        assert_allclose(mine.numpy(), theirs.numpy(), rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fit_equals_dense(name):
    _compare(OPTIMIZERS[name])


@pytest.mark.parametrize("name", ["adam", "nadam"])
def test_eager_fit_equals_dense(name):
    _compare(OPTIMIZERS[name], run_eagerly=True)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_wrapped_fit_equals_dense(name):
    _compare(OPTIMIZERS[name], wrap=DynamicEmbeddingOptimizer)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["sgd", "adam", "lion"])
def test_settings_equal_dense(name, setting):
    _compare(lambda: OPTIMIZERS[name](**SETTINGS[setting]))


@pytest.mark.parametrize("name", ["sgd", "adam", "lion"])
def test_schedule_equals_dense(name):
    def make():
        optimizer = OPTIMIZERS[name]()
        optimizer.learning_rate = O.schedules.ExponentialDecay(0.05, 1, 0.5)
        return optimizer

    _compare(make)


@pytest.mark.parametrize("name", ["sgd", "adam", "lion"])
@pytest.mark.parametrize("wrap", [None, DynamicEmbeddingOptimizer])
def test_loss_scale_optimizer_equals_dense(name, wrap):
    _compare(
        lambda: O.LossScaleOptimizer(OPTIMIZERS[name](), initial_scale=64.0),
        wrap=wrap,
    )


@pytest.mark.parametrize("name", ["sgd", "adam", "lion"])
def test_global_clipnorm_equals_dense(name):
    _compare(
        lambda: OPTIMIZERS[name](global_clipnorm=0.05),
        wrap=DynamicEmbeddingOptimizer,
    )


def test_global_clipnorm_with_a_loss_scale_equals_dense():
    _compare(
        lambda: O.SGD(0.1, global_clipnorm=0.05, loss_scale_factor=32.0),
        wrap=DynamicEmbeddingOptimizer,
    )


@pytest.mark.parametrize("name", ["sgd", "adam", "lion", "nadam"])
def test_gradient_accumulation_equals_dense(name):
    _compare(
        lambda: OPTIMIZERS[name](gradient_accumulation_steps=2),
        wrap=DynamicEmbeddingOptimizer,
    )


def test_excluded_table_does_not_decay():
    def make():
        optimizer = O.AdamW(0.01, weight_decay=0.5)
        optimizer.exclude_from_weight_decay(var_names=["embeddings"])
        return optimizer

    _compare(make)


@pytest.mark.parametrize("name", ["adam", "adagrad", "lion", "nadam", "user"])
@pytest.mark.parametrize("compiled", [False, True])
def test_custom_loop_equals_fit(name, compiled):
    fitted, fitted_rows = table_model()
    fit(fitted, OPTIMIZERS[name]())
    model, rows = table_model()
    optimizer = OPTIMIZERS[name]()

    def step(ids, labels):
        with tf.GradientTape() as tape:
            error = model(ids, training=True) - labels
            loss = tf.reduce_mean(error**2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(
            zip(grads, model.trainable_variables, strict=True)
        )

    step = tf.function(step, reduce_retracing=True) if compiled else step
    for ids, labels in batches():
        step(tf.constant(ids), tf.constant(labels, tf.float32))
    assert_allclose(rows(), fitted_rows(), rtol=1e-5, atol=1e-6)


def test_steps_per_execution_equals_single_steps():
    data = list(batches())
    ids = np.concatenate([i for i, _ in data])
    labels = np.concatenate([y for _, y in data])
    found = []
    for steps in (1, 4):
        model, rows = table_model()
        model.compile("adam", "mse", steps_per_execution=steps)
        model.fit(ids, labels, batch_size=6, shuffle=False, verbose=0)
        found.append(rows())
    assert_allclose(found[0], found[1], rtol=0, atol=0)
