"""DataMethods: models that are made of a dataset's symbolic tensors."""

from typing import TYPE_CHECKING, Any

import keras

from ._bound_data import BoundData, bound_data


# At run time `DataMethods` is a mixin, so that it comes first in the order.
_Model: Any = keras.Model if TYPE_CHECKING else object


class DataMethods(_Model):
    """The part of `ModelMethods` that finds data when none are given."""

    def compile(
        self, *args: Any, target_tensors: Any = None, **kwargs: Any
    ) -> None:
        """Configures training, as `keras.Model.compile`.

        Args:
            *args: See there.
            target_tensors: See `ModelMethods.compile`.
            **kwargs: See `keras.Model.compile`.
        """
        bound = None
        if target_tensors is not None:
            why = "`compile` was given `target_tensors`"
            bound = bound_data(self, target_tensors, why)
        super().compile(*args, **kwargs)
        # Past the tracking of attributes.
        self.__dict__["_bound_data"] = bound

    def evaluate(
        self, x: Any = None, y: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Measures, as `keras.Model.evaluate`.

        Args:
            x: See there. By default the data that the model is made of.
            y: See there.
            *args: See there.
            **kwargs: See there.

        Returns:
            What Keras returns.
        """
        x = self._data("evaluate", x, y)
        return super().evaluate(x, y, *args, **kwargs)

    def predict(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Predicts, as `keras.Model.predict`.

        Args:
            x: See there. By default the data that the model is made of.
            *args: See there.
            **kwargs: See there.

        Returns:
            What Keras returns.
        """
        x = self._data("predict", x, None)
        return super().predict(x, *args, **kwargs)

    def _data(self, method: str, x: Any, y: Any) -> Any:
        """Finds the data of a method.

        Args:
            method: The method's name.
            x: What it was given.
            y: Targets that it was given.

        Returns:
            Data as Keras takes them.

        Raises:
            ValueError: If there are none, or targets without inputs.
        """
        bound: BoundData | None = self.__dict__.get("_bound_data")
        if x is not None:
            return self._chosen(x)
        why = f"`{method}` was given no data (`x` is None)"
        if y is not None:
            msg = f"{why}, but targets (`y`). Give both, or none."
            raise ValueError(msg)
        if bound is None:
            bound = bound_data(self, None, why)
            if method != "predict" and self.loss is not None:
                msg = (
                    f"{why}, and `compile` was given a loss, but no "
                    "`target_tensors`. Give `compile` those of the model's "
                    "dataset, or `x`."
                )
                raise ValueError(msg)
        return bound.dataset()

    def _chosen(self, data: Any) -> Any:
        """Takes out of data what the model takes of the dataset it is of."""
        bound: BoundData | None = self.__dict__.get("_bound_data")
        return data if bound is None else bound.chosen(data)
