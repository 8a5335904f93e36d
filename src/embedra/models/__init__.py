"""Click models built on `embedra.layers.Embedding`: small and readable."""

from ._cross import Cross as Cross
from ._dcn_v2 import dcn_v2 as dcn_v2
from ._dlrm import dlrm as dlrm
from ._dot_interaction import DotInteraction as DotInteraction
from ._numeric_features import NumericFeatures as NumericFeatures
