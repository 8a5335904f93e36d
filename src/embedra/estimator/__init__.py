"""Estimators: what TensorFlow's own were, with tables, in TF1 graphs.

    import embedra as hb
    estimator = hb.estimator.Estimator(model_fn, model_dir="runs/first")

Names and arguments are those of `tf.estimator`, which TensorFlow no longer has.
"""

from . import experimental as experimental, export as export
from ._add_metrics import add_metrics as add_metrics
from ._canned_combined import (
    DNNLinearCombinedClassifier as DNNLinearCombinedClassifier,
    DNNLinearCombinedRegressor as DNNLinearCombinedRegressor,
)
from ._canned_dnn import (
    DNNClassifier as DNNClassifier,
    DNNRegressor as DNNRegressor,
)
from ._canned_linear import (
    LinearClassifier as LinearClassifier,
    LinearRegressor as LinearRegressor,
)
from ._estimator import Estimator as Estimator
from ._exporters import (
    BestExporter as BestExporter,
    Exporter as Exporter,
    FinalExporter as FinalExporter,
    LatestExporter as LatestExporter,
)
from ._modes import ModeKeys as ModeKeys
from ._run_config import RunConfig as RunConfig
from ._spec import EstimatorSpec as EstimatorSpec
from ._specs import EvalSpec as EvalSpec, TrainSpec as TrainSpec
from ._train_and_evaluate import (
    TrainAndEvaluate as TrainAndEvaluate,
    train_and_evaluate as train_and_evaluate,
)
from ._warm_start import WarmStartSettings as WarmStartSettings
