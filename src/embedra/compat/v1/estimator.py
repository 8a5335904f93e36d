"""`embedra.estimator`, under the name that `tf.estimator` had.

>>> import embedra.compat.v1 as tf
>>> tf.estimator.RunConfig(save_checkpoints_steps=10).save_checkpoints_steps
10
"""

from embedra.estimator import (
    BestExporter as BestExporter,
    DNNClassifier as DNNClassifier,
    DNNLinearCombinedClassifier as DNNLinearCombinedClassifier,
    DNNLinearCombinedRegressor as DNNLinearCombinedRegressor,
    DNNRegressor as DNNRegressor,
    Estimator as Estimator,
    EstimatorSpec as EstimatorSpec,
    EvalSpec as EvalSpec,
    Exporter as Exporter,
    FinalExporter as FinalExporter,
    LatestExporter as LatestExporter,
    LinearClassifier as LinearClassifier,
    LinearRegressor as LinearRegressor,
    ModeKeys as ModeKeys,
    RunConfig as RunConfig,
    TrainSpec as TrainSpec,
    WarmStartSettings as WarmStartSettings,
    add_metrics as add_metrics,
    experimental as experimental,
    export as export,
    train_and_evaluate as train_and_evaluate,
)
