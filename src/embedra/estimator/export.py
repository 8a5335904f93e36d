"""What goes into an exported model, and what comes out of it."""

from ._outputs import (
    ClassificationOutput as ClassificationOutput,
    ExportOutput as ExportOutput,
    PredictOutput as PredictOutput,
    RegressionOutput as RegressionOutput,
)
from ._receivers import (
    ServingInputReceiver as ServingInputReceiver,
    TensorServingInputReceiver as TensorServingInputReceiver,
    build_parsing_serving_input_receiver_fn as build_parsing_serving_input_receiver_fn,  # noqa: E501
    build_raw_serving_input_receiver_fn as build_raw_serving_input_receiver_fn,
)
