"""Optimizers of tf.compat.v1.train move tables as they move dense matrices."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra import optimizers
from numerics import assert_allclose
from one_hot_regression import (
    DIM,
    IDS,
    VOCABULARY,
    Regression,
    loss_of,
    start_kernel,
    start_rows,
)


tf1 = tf.compat.v1
T = tf1.train


class SignMomentum(T.Optimizer):
    """An optimizer as a user may write it."""

    def __init__(self, rate, name="SignMomentum"):
        super().__init__(use_locking=False, name=name)
        self._rate = rate

    def _create_slots(self, var_list):
        for variable in var_list:
            self._zeros_slot(variable, "momentum", self._name)

    def _prepare(self):
        self._rate_tensor = tf.convert_to_tensor(self._rate)

    def _resource_apply_dense(self, grad, handle):
        momentum = self.get_slot(handle, "momentum")
        new = tf1.assign(momentum, momentum * 0.5 + grad)
        return handle.assign_sub(
            tf.sign(new) * self._rate_tensor, read_value=False
        )


OPTIMIZERS = {
    "gradient_descent": T.GradientDescentOptimizer,
    "momentum": lambda rate: T.MomentumOptimizer(rate, 0.9),
    "nesterov": lambda rate: T.MomentumOptimizer(rate, 0.9, use_nesterov=True),
    "adagrad": T.AdagradOptimizer,
    "adam": T.AdamOptimizer,
    "rmsprop": lambda rate: T.RMSPropOptimizer(rate, momentum=0.5),
    "rmsprop_centered": lambda rate: T.RMSPropOptimizer(rate, centered=True),
    "ftrl": lambda rate: T.FtrlOptimizer(
        rate,
        l1_regularization_strength=0.01,
        l2_regularization_strength=0.02,
        l2_shrinkage_regularization_strength=0.03,
        beta=0.1,
    ),
    "adadelta": T.AdadeltaOptimizer,
    "proximal_adagrad": lambda rate: T.ProximalAdagradOptimizer(
        rate, l1_regularization_strength=0.01, l2_regularization_strength=0.02
    ),
    "proximal_gradient_descent": lambda rate: (
        T.ProximalGradientDescentOptimizer(
            rate,
            l1_regularization_strength=0.01,
            l2_regularization_strength=0.02,
        )
    ),
    "adagrad_da": lambda rate: T.AdagradDAOptimizer(
        rate, T.get_or_create_global_step()
    ),
    "user": SignMomentum,
}
# These read their learning rate only once, when not in a graph.
NOT_CALLABLE = (
    "ftrl",
    "proximal_adagrad",
    "proximal_gradient_descent",
    "adagrad_da",
    "user",
)


class GraphRegression:
    """The regression in the current TF1 graph.

    Args:
        dense: Whether the rows are a dense matrix.
        **options: Of the `de.Variable`.
    """

    def __init__(self, *, dense, **options):
        self.kernel = tf1.get_variable(
            "kernel", initializer=start_kernel(), use_resource=True
        )
        self.prepare = tf.no_op()
        if dense:
            matrix = tf1.get_variable(
                "matrix", initializer=start_rows(), use_resource=True
            )
            embedded = tf.tensordot(tf.one_hot(IDS, VOCABULARY), matrix, 1)
            self.rows = matrix.read_value()
        else:
            self.table = de.Variable(dim=DIM, name="embedding", **options)
            self.prepare = self.table.upsert(
                np.arange(VOCABULARY), start_rows()
            )
            embedded = de.embedding_lookup(self.table, IDS)
            self.rows = self.table.lookup(np.arange(VOCABULARY))
        self.loss = loss_of(embedded, self.kernel)


def _decaying(global_step):
    return T.exponential_decay(0.1, global_step, 2, 0.5)


def _train_graph(make, *, dense, steps=4, minimize=None, **options):
    """Trains in a MonitoredTrainingSession; returns rows and kernel."""
    with tf.Graph().as_default():
        step = T.get_or_create_global_step()
        model = GraphRegression(dense=dense, **options)
        optimizer = make(_decaying(step))
        if not dense:
            optimizer = de.DynamicEmbeddingOptimizer(optimizer)
        if minimize is None:
            train = optimizer.minimize(model.loss, global_step=step)
        else:
            train = minimize(optimizer, model.loss, step)
        with T.MonitoredTrainingSession() as session:
            session.run(model.prepare)
            for _ in range(steps):
                session.run(train)
            assert session.run(step) == steps
            return session.run((model.rows, model.kernel))


def _compare_graphs(make, **options):
    dense = _train_graph(make, dense=True, minimize=options.get("minimize"))
    ours = _train_graph(make, dense=False, **options)
    assert np.abs(dense[0] - start_rows()).max() > 1e-4
    for mine, theirs in zip(ours, dense, strict=True):
        assert_allclose(mine, theirs)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_o07_monitored_training_equals_dense(name):
    _compare_graphs(OPTIMIZERS[name])


@pytest.mark.parametrize("name", ["adagrad", "adam"])
def test_tables_of_several_devices_equal_dense(name):
    _compare_graphs(OPTIMIZERS[name], devices=["CPU:0", "CPU:0"])


def test_compute_and_apply_gradients_equal_dense():
    def minimize(optimizer, loss, step):
        pairs = optimizer.compute_gradients(loss)
        clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], 1e6)
        variables = [v for _, v in pairs]
        return optimizer.apply_gradients(
            zip(clipped, variables, strict=True), global_step=step
        )

    _compare_graphs(OPTIMIZERS["adam"], minimize=minimize)


def test_variables_may_be_named_by_their_trainables():
    with tf.Graph().as_default():
        model = GraphRegression(dense=False)
        optimizer = de.DynamicEmbeddingOptimizer(T.AdamOptimizer(0.1))
        trainable = model.table.trainable_of(None)
        train = optimizer.minimize(model.loss, var_list=[trainable])
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(model.prepare)
            session.run(train)
            rows, kernel = session.run((model.rows, model.kernel))
    assert np.abs(rows - start_rows()).min() > 1e-4
    assert_allclose(kernel, start_kernel())


def test_scratch_is_in_no_collection():
    """Only the numbers of Adam itself are variables beside the model's."""
    with tf.Graph().as_default():
        model = GraphRegression(dense=False)
        optimizer = de.DynamicEmbeddingOptimizer(T.AdamOptimizer(0.1))
        optimizer.minimize(model.loss)
        names = {v.op.name for v in tf1.global_variables()}
        assert names == {
            "kernel",
            "kernel/Adam",
            "kernel/Adam_1",
            "beta1_power",
            "beta2_power",
        }
        assert {v.op.name for v in optimizer.variables()} == names - {"kernel"}


@contextlib.contextmanager
def _session_of_steps(path=None):
    with tf.Graph().as_default():
        step = T.get_or_create_global_step()
        model = GraphRegression(dense=False)
        optimizer = de.DynamicEmbeddingOptimizer(T.AdamOptimizer(0.1))
        train = optimizer.minimize(model.loss, global_step=step)
        with tf1.train.MonitoredTrainingSession(checkpoint_dir=path) as session:
            yield session, model, train


def test_resumed_training_equals_straight(tmp_path):
    """Slots and the powers of beta are in the checkpoint."""
    path = str(tmp_path)
    with _session_of_steps() as (session, model, train):
        session.run(model.prepare)
        for _ in range(4):
            session.run(train)
        straight = session.run(model.rows)
    with _session_of_steps(path) as (session, model, train):
        session.run(model.prepare)
        for _ in range(2):
            session.run(train)
    with _session_of_steps(path) as (session, model, train):
        for _ in range(2):
            session.run(train)
        assert_allclose(session.run(model.rows), straight)


def _train_eagerly(name, model, *, function, wrap):
    rate = tf.Variable(0.1)

    def current():
        return rate.read_value() if function else float(rate)

    optimizer = OPTIMIZERS[name](0.1 if name in NOT_CALLABLE else current)
    if wrap:
        optimizer = de.DynamicEmbeddingOptimizer(optimizer)

    def step():
        optimizer.minimize(lambda: model.loss()[0])

    run = tf.function(step) if function else step
    for number in range(4):
        if number == 2:
            rate.assign(0.03)
        run()


@pytest.mark.parametrize(
    ("name", "function"),
    [(name, False) for name in OPTIMIZERS if name != "adagrad_da"]
    + [("adam", True), ("ftrl", True), ("user", True)],
)
def test_steps_outside_of_graphs_equal_dense(name, function):
    dense, ours = Regression(dense=True), Regression(dense=False)
    _train_eagerly(name, dense, function=function, wrap=False)
    _train_eagerly(name, ours, function=function, wrap=True)
    assert np.abs(dense.rows() - start_rows()).max() > 1e-4
    assert_allclose(ours.rows(), dense.rows())
    assert_allclose(ours.kernel.numpy(), dense.kernel.numpy())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_o02_untouched_rows_do_not_move(name):
    with tf.Graph().as_default():
        step = T.get_or_create_global_step()
        table = de.Variable(dim=DIM, initializer=1.0)
        ids = tf1.placeholder(tf.int64, (None,))
        loss = tf.reduce_sum(de.embedding_lookup(table, ids) ** 2)
        optimizer = de.DynamicEmbeddingOptimizer(OPTIMIZERS[name](0.1))
        train = optimizer.minimize(loss, global_step=step)
        rows = table.lookup([100, 101])
        with T.MonitoredTrainingSession() as session:
            session.run(train, {ids: [100, 0]})
            touched = session.run(rows)
            session.run(train, {ids: [0, 1, 1]})
            assert_allclose(session.run(rows), touched)
    assert np.abs(touched[0] - 1.0).max() > 1e-5
    assert_allclose(touched[1], np.ones(DIM))


def test_result_is_an_instance_with_the_same_state():
    optimizer = T.AdamOptimizer(0.1)
    wrapped = de.DynamicEmbeddingOptimizer(optimizer)
    assert isinstance(wrapped, T.AdamOptimizer)
    assert type(wrapped).__name__ == "DynamicEmbeddingAdamOptimizer"
    assert wrapped.get_name() == "Adam"
    assert de.DynamicEmbeddingOptimizer(wrapped) is wrapped


def test_synchronized_replicas_are_refused():
    optimizer = T.SyncReplicasOptimizer(
        T.AdamOptimizer(0.1), replicas_to_aggregate=2
    )
    with pytest.raises(
        optimizers.UnsupportedOptimizerError, match="without it"
    ):
        de.DynamicEmbeddingOptimizer(optimizer)


def test_optimizers_around_others_are_refused():
    class Around(T.Optimizer):
        def __init__(self, optimizer):
            super().__init__(use_locking=False, name="Around")
            self._optimizer = optimizer

    with pytest.raises(
        optimizers.UnsupportedOptimizerError,
        match=r"Around\(DynamicEmbeddingOptimizer\(AdamOptimizer",
    ):
        de.DynamicEmbeddingOptimizer(Around(T.AdamOptimizer(0.1)))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_plain_optimizers_fail(name):
    """Never does a step without the wrapper go by in silence."""
    with tf.Graph().as_default():
        T.get_or_create_global_step()
        table = de.Variable(dim=DIM, name="user")
        loss = tf.reduce_sum(de.embedding_lookup(table, [1]))
        with pytest.raises(
            optimizers.UnsupportedOptimizerError,
            match=r"cannot update 'user'.*DynamicEmbeddingOptimizer\(",
        ):
            OPTIMIZERS[name](0.1).minimize(loss)
