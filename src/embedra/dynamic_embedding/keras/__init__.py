"""Keras layers over `de.Variable`, callbacks and saving, by TFRA's names.

`de.keras.layers` are for models of Keras 3. `de.keras.legacy.layers` are the
same for models of tf_keras, which is imported when they are asked for.
"""

from . import (
    callbacks as callbacks,
    layers as layers,
    legacy as legacy,
    models as models,
)
