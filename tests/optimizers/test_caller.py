"""Who calls is found. If one of these fails, see _caller.py: Keras moved."""

import keras
import pytest
import tensorflow as tf

from embedra.optimizers import _caller


class _Probe(keras.Variable):
    """Remembers which optimizer asked and which assigned."""

    def __init__(self):
        self.askers = []
        self.assigners = []
        super().__init__(initializer="zeros", shape=(0,))

    @property
    def overwrite_with_gradient(self):
        self.askers.append(_caller.calling_optimizer())
        return True

    def assign(self, value):
        del value
        self.assigners.append(_caller.calling_optimizer())


def test_nobody_calls_outside_of_optimizers():
    assert _caller.calling_optimizer() is None
    assert _Probe().overwrite_with_gradient is True


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("autograph", [False, True])
def test_apply_is_seen(compiled, autograph):
    probe = _Probe()
    probe.assigners.clear()
    optimizer = keras.optimizers.Adam()

    def step():
        optimizer.apply_gradients([(tf.zeros((0,)), probe)])

    (tf.function(step, autograph=autograph) if compiled else step)()
    assert probe.assigners == [optimizer]
    assert set(probe.askers) == {optimizer}


def test_loss_scale_optimizer_is_seen_asking_and_the_inner_one_assigning():
    probe = _Probe()
    probe.assigners.clear()
    inner = keras.optimizers.SGD(momentum=0.9)
    outer = keras.optimizers.LossScaleOptimizer(inner)
    outer.apply_gradients([(tf.zeros((0,)), probe)])
    assert set(probe.askers) == {inner, outer}
    assert probe.assigners == [inner]
