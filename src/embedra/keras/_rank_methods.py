"""RankMethods: `fit`, `evaluate` and `predict` by several ranks together."""

from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from embedra.checkpoint import StopRequest
from embedra.distribute import Communicator, job_communicator

from ._fit_settings import FIT_ARGUMENTS
from ._rank_callbacks import around
from ._rank_data import ending
from ._rank_inputs import evaluation_data, fit_data
from ._rank_metrics import over_ranks
from ._rank_steps import RankSteps
from ._rank_stop import RankStopRequest, SameEnd


_FIT = ("x", "y", "batch_size", "epochs", "verbose", "callbacks")
_EVALUATE = (
    *("x", "y", "batch_size", "verbose", "sample_weight", "steps"),
    *("callbacks", "return_dict"),
)
_PREDICT = ("x", "batch_size", "verbose", "steps", "callbacks")

# At run time `RankMethods` is a mixin, so that it comes first in the order.
_Model: Any = keras.Model if TYPE_CHECKING else object


class RankMethods(_Model):
    """The part of `ModelMethods` that works with other ranks, if there are any.

    In one process each method is that of Keras.
    """

    train_function: Any
    test_function: Any
    predict_function: Any

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Configures training, as `keras.Model.compile`.

        Args:
            *args: See there.
            **kwargs: See there.

        Raises:
            ValueError: In a job, with `jit_compile=True`.
        """
        if job_communicator() is not None:
            if kwargs.get("jit_compile") not in (None, False, "auto"):
                msg = (
                    "Several ranks exchange gradients within a step, which "
                    "XLA cannot compile. Leave out jit_compile=True."
                )
                raise ValueError(msg)
            # Not "auto" either.
            kwargs["jit_compile"] = False
        super().compile(*args, **kwargs)

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Trains, as `keras.Model.fit`.

        Args:
            *args: See there.
            **kwargs: See there.

        Returns:
            The `keras.callbacks.History`, the same on all ranks.
        """
        communicator = job_communicator()
        if communicator is None:
            return super().fit(*args, **kwargs)
        given = self._of_ranks(_named((*_FIT, *FIT_ARGUMENTS), args, kwargs))
        ranks = self._ranks(communicator)
        ranks.end = SameEnd(communicator)
        given["callbacks"] = around(given.get("callbacks"), ranks.end)
        given["verbose"] = _of_first(given, communicator)
        steps = given.get("steps_per_epoch"), given.get("validation_steps")
        with ranks.working(training=True), ending(*steps):
            return super().fit(**given)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Measures, as `keras.Model.evaluate`.

        Args:
            *args: See there.
            **kwargs: See there.

        Returns:
            What Keras returns; metrics are those over the data of all ranks,
            and so are the numbers that a `test_step` of one's own gives for the
            last batch.
        """
        communicator = job_communicator()
        if communicator is None:
            return super().evaluate(*args, **kwargs)
        given = _named(_EVALUATE, args, kwargs)
        given = evaluation_data("evaluate", given, communicator)
        given["verbose"] = _of_first(given, communicator)
        ranks = self._ranks(communicator)
        with ranks.working(), ending(given.get("steps")):
            return super().evaluate(**given)

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Predicts, as `keras.Model.predict`.

        Args:
            *args: See there.
            **kwargs: See there.

        Returns:
            What Keras returns, for the data of this rank.
        """
        communicator = job_communicator()
        if communicator is None:
            return super().predict(*args, **kwargs)
        given = _named(_PREDICT, args, kwargs)
        given = evaluation_data("predict", given, communicator)
        given["verbose"] = _of_first(given, communicator)
        with ending(given.get("steps")):
            return super().predict(**given)

    def make_train_function(self, force: bool = False) -> None:
        """Makes what runs a step; see `keras.Model.make_train_function`."""
        before = self.train_function
        super().make_train_function(force)
        communicator = job_communicator()
        if communicator is not None and self.train_function is not before:
            ranks = self._ranks(communicator)
            self.train_function = ranks.training(self.train_function)

    def make_test_function(self, force: bool = False) -> None:
        """Makes what runs a step; see `keras.Model.make_test_function`."""
        before = self.test_function
        super().make_test_function(force)
        communicator = job_communicator()
        if communicator is not None and self.test_function is not before:
            ranks = self._ranks(communicator)
            self.test_function = ranks.testing(self.test_function)

    def make_predict_function(self, force: bool = False) -> None:
        """Makes what predicts; see `keras.Model.make_predict_function`."""
        before = self.predict_function
        super().make_predict_function(force)
        communicator = job_communicator()
        if communicator is not None and self.predict_function is not before:
            ranks = self._ranks(communicator)
            self.predict_function = ranks.predicting(self.predict_function)

    def get_metrics_result(self) -> dict[str, Any]:
        """Returns metrics; when an epoch or evaluation ends, over all ranks."""
        ranks: RankSteps | None = self.__dict__.get("_rank_steps")
        if ranks is None or not ranks.reads_all or not tf.executing_eagerly():
            return super().get_metrics_result()  # type: ignore[no-any-return]
        with over_ranks(self.metrics, ranks.communicator):
            results: dict[str, Any] = super().get_metrics_result()
        ranks.finish_logs(results)
        return results

    def _of_ranks(self, given: dict[str, Any]) -> dict[str, Any]:
        """Has the data of `fit` last as long on all ranks.

        Args:
            given: Arguments by name.

        Returns:
            The same. In one process, just that.
        """
        communicator = job_communicator()
        return given if communicator is None else fit_data(given, communicator)

    def _stop_request(self) -> StopRequest:
        """Returns what notes the signals that come during a training."""
        communicator = job_communicator()
        if communicator is None:
            return StopRequest()
        ranks = self._ranks(communicator)
        ranks.stop = RankStopRequest(communicator)
        return ranks.stop

    def _ranks(self, communicator: Communicator) -> RankSteps:
        found = self.__dict__.get("_rank_steps")
        if found is None:
            # Past the tracking of attributes.
            found = RankSteps(self, communicator)
            self.__dict__["_rank_steps"] = found
        return found


def _named(
    names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    return dict(zip(names, args, strict=False)) | kwargs


def _of_first(given: dict[str, Any], communicator: Communicator) -> Any:
    """Returns `verbose` for this rank: only the first one prints."""
    return given.get("verbose", "auto") if communicator.rank == 0 else 0
