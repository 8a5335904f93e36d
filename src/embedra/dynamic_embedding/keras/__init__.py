"""Keras layers over `de.Variable`, callbacks and saving, by TFRA's names.

`de.keras.layers` and `callbacks` are for models of Keras 3. Those in
`de.keras.legacy` are for models of tf_keras, which is imported when they are
asked for. `de.keras.models` saves models of both.
"""

from . import (
    callbacks as callbacks,
    layers as layers,
    legacy as legacy,
    models as models,
)
