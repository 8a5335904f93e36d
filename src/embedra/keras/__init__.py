"""Keras models with checkpoints, clipping, and tables in their summary."""

from embedra.checkpoint import (
    LoadReport as LoadReport,
    MismatchError as MismatchError,
)

from . import callbacks as callbacks
from ._convert import convert as convert
from ._methods import ModelMethods as ModelMethods
from ._model import Model as Model
from ._wraps import wraps as wraps
