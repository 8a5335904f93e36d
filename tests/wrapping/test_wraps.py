"""wraps: which classes it takes, and what it makes of them."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
import embedra.dynamic_embedding as de
from embedra import estimator as lib


v1 = tf.compat.v1


def model_fn(features):
    """Is never called."""
    return features


def test_an_estimator_class_has_it_all_already():
    @hb.wraps
    class MyEstimator(lib.Estimator):
        """Words."""

        def eval_dir(self, name=None):
            del name
            return "mine"

    assert hb.wraps(lib.Estimator) is lib.Estimator
    assert hb.wraps(MyEstimator) is MyEstimator
    assert (MyEstimator.__name__, MyEstimator.__doc__) == (
        "MyEstimator",
        "Words.",
    )
    estimator = MyEstimator(model_fn=model_fn, model_dir="run")
    assert estimator.eval_dir() == "mine"


def test_a_class_that_does_as_estimators_do_gets_train_and_evaluate(tmp_path):
    class Plain:
        """Words."""

        model_dir = str(tmp_path)

        def train(self, input_fn, max_steps, hooks, saving_listeners):
            del hooks, saving_listeners
            with tf.Graph().as_default(), v1.Session() as session:
                step = v1.train.get_or_create_global_step()
                session.run(step.initializer, {step.initial_value: max_steps})
                v1.train.Saver().save(
                    session, f"{self.model_dir}/model", max_steps
                )
            self.seen = input_fn()

        def evaluate(self, input_fn, steps, hooks, checkpoint_path, name):
            del steps, hooks, name
            step = tf.train.load_variable(checkpoint_path, "global_step")
            return {"sum": self.seen + input_fn(), "global_step": step}

        def predict(self):
            """Is never called."""

    wrapped = hb.wraps(Plain)
    assert hb.wraps(wrapped) is wrapped
    assert (wrapped.__name__, wrapped.__doc__) == ("Plain", "Words.")
    assert issubclass(wrapped, Plain)
    estimator = wrapped()
    metrics, exports = estimator.train_and_evaluate(
        lib.TrainSpec(lambda: 1, max_steps=3), lib.EvalSpec(lambda: 2)
    )
    assert metrics == {"sum": 3, "global_step": 3}
    assert exports == []
    assert estimator.eval_history == [metrics]


def trained_rows(optimizer):
    """Returns rows after a step of an optimizer on the sum of their squares."""
    user = de.Variable(dim=2, initializer=1.0)
    with tf.GradientTape() as tape:
        rows, trainable = de.embedding_lookup(
            user, [1, 1, 2], return_trainable=True
        )
        loss = tf.reduce_sum(rows**2)
    gradients = tape.gradient(loss, [trainable])
    optimizer.apply_gradients(zip(gradients, [trainable], strict=True))
    return user.lookup([1, 2]).numpy()


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (v1.train.AdagradOptimizer, {"learning_rate": 0.1}),
        (v1.train.AdamOptimizer, {"learning_rate": 0.1}),
        (keras.optimizers.Adam, {"learning_rate": 0.1}),
        (keras.optimizers.SGD, {"learning_rate": 0.1, "global_clipnorm": 1.0}),
    ],
)
def test_classes_of_optimizers_make_those_that_know_of_tables(cls, arguments):
    class Mine(cls):
        """Words."""

        number = 7

    wrapped = hb.wraps(Mine)
    assert hb.wraps(wrapped) is wrapped
    assert hb.wraps(Mine) is wrapped
    assert (wrapped.__name__, wrapped.__doc__) == ("Mine", "Words.")
    optimizer = wrapped(**arguments)
    assert isinstance(optimizer, wrapped)
    assert isinstance(optimizer, Mine)
    assert optimizer.number == 7
    expected = hb.DynamicEmbeddingOptimizer(cls(**arguments))
    np.testing.assert_array_equal(
        trained_rows(optimizer), trained_rows(expected)
    )


def test_a_wrapped_keras_optimizer_is_saved_and_rebuilt():
    optimizer = hb.wraps(keras.optimizers.Adam)(0.25, beta_1=0.5)
    config = keras.optimizers.serialize(optimizer)
    rebuilt = keras.optimizers.deserialize(config)
    assert rebuilt.beta_1 == 0.5
    assert rebuilt.handles_tables


def test_models_are_wrapped_as_before():
    assert hb.wraps(keras.Model) is hb.keras.Model
    assert issubclass(hb.wraps(keras.Sequential), keras.Sequential)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (keras.layers.Dense, "class keras.*Dense"),
        (v1.train.AdamOptimizer(0.1), "an object of class .*AdamOptimizer"),
        (len, "an object of class builtins"),
        (int, "class builtins.int"),
        (keras.optimizers.LossScaleOptimizer, "hands over to another"),
    ],
)
def test_other_things_cannot_be_wrapped(given, said):
    with pytest.raises(TypeError, match=said):
        hb.wraps(given)


def test_estimators_are_loaded_when_they_are_asked_for():
    script = (
        "import sys, embedra, keras\n"
        "embedra.wraps(keras.Model)\n"
        "assert 'embedra.estimator' not in sys.modules\n"
        "embedra.estimator.Estimator\n"
        "assert 'tf_keras' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
