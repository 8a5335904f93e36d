"""Small models of tf_keras over layers."""

import tf_keras

import embedra.dynamic_embedding as de
from dynamic_embedding.keras_models import WIDTH, batches, remainder


START = tf_keras.initializers.RandomUniform(-1.0, 1.0, seed=5)

tf_keras.saving.register_keras_serializable(package="tests")(remainder)


def legacy_model(layer):
    """A functional model over a layer of ids."""
    ids = tf_keras.Input((WIDTH,), dtype="int64")
    kernel = tf_keras.initializers.RandomNormal(seed=3)
    dense = tf_keras.layers.Dense(1, kernel_initializer=kernel)
    return tf_keras.Model(ids, dense(tf_keras.layers.Flatten()(layer(ids))))


def legacy_fit(model, optimizer=None, steps=4, seed=6):
    """Compiles and trains a model.

    Returns:
        The model.
    """
    optimizer = optimizer or tf_keras.optimizers.Adam(0.1)
    model.compile(
        de.DynamicEmbeddingOptimizer(optimizer), "mse", run_eagerly=True
    )
    train_on(model, steps, seed)
    return model


def train_on(model, steps=2, seed=9):
    """Trains a compiled model for some steps."""
    for batch in batches(steps, seed):
        model.train_on_batch(*batch)
