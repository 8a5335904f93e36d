"""Metrics: of Keras 3, and with update operations for TF1 graphs.

Their state can be merged: counts and sums by adding them, the examples of
grouped metrics by putting them after one another.
"""

from ._auc import auc as auc
from ._gauc import example_stores as example_stores, gauc as gauc
from ._keras_auc import AUC as AUC
from ._keras_gauc import GroupedAUC as GroupedAUC
from ._means import accuracy as accuracy, mean as mean


GAUC = GroupedAUC
