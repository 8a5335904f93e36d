"""The one import of tf_keras, which need not be installed."""

from embedra.optimizers import register_in_tf_keras


try:
    import tf_keras as tf_keras
except ImportError as error:
    msg = (
        "embedra.dynamic_embedding.keras.legacy is for models of tf_keras, "
        "which is not installed. Install tf_keras 2.21, or use "
        "embedra.dynamic_embedding.keras with Keras 3."
    )
    raise ImportError(msg) from error

# It may be imported after Embedra was, and load a file before an optimizer is
# wrapped.
register_in_tf_keras()
