"""Where the data of a training that goes on begin."""

import logging
from typing import Any, NamedTuple

import tensorflow as tf


_log = logging.getLogger(__name__)


class Continued(NamedTuple):
    """Data of a training that goes on.

    Attributes:
        data: What to give to Keras.
        pass_over: How many batches to pass over first.
        length: Batches until the data end, where Keras, which does not know of
            those passed over, would look for more; None where it does not.
    """

    data: Any
    pass_over: int = 0
    length: int | None = None


def continued(data: Any, steps_per_epoch: int | None, epoch: int) -> Continued:
    """Finds what an epoch's data are, as if none before had been missed.

    With `steps_per_epoch`, Keras reads on in the data from epoch to epoch;
    without, each epoch begins them anew.

    Args:
        data: What `fit` was given as `x`.
        steps_per_epoch: As `fit` was given it.
        epoch: The epoch, from 0.

    Returns:
        The data.
    """
    # Not needed, and not light, where `fit` does not go on.
    from embedra.data import RowDataset, set_epoch

    if isinstance(data, tf.data.Dataset):
        # Rows that are shuffled have another order in each pass.
        set_epoch(data, _pass_over_data(data, steps_per_epoch, epoch))
    if not epoch or not steps_per_epoch:
        return Continued(data)
    if isinstance(data, RowDataset):
        found = _of_dataset(data, steps_per_epoch, epoch)
        return found._replace(
            data=found.data.skip(found.pass_over), pass_over=0
        )
    if isinstance(data, tf.data.Dataset):
        return _of_dataset(data, steps_per_epoch, epoch)
    if hasattr(data, "__next__"):
        return Continued(data, epoch * steps_per_epoch)
    _log.warning(
        "Training goes on at epoch %d, with the first batches of the data: "
        "arrays are read from their beginning. Use a tf.data.Dataset to go on "
        "in the middle.",
        epoch + 1,
    )
    return Continued(data)


def _pass_over_data(
    data: tf.data.Dataset, steps: int | None, epoch: int
) -> int:
    """The number of the pass over the data that an epoch is a part of."""
    if not steps:
        return epoch
    batches = int(data.cardinality())
    if batches <= 0:  # unknown, or infinite: passes are within the dataset
        return 0
    return epoch // -(-batches // steps)


def _of_dataset(data: tf.data.Dataset, steps: int, epoch: int) -> Continued:
    batches = int(data.cardinality())
    if batches < 0:  # unknown, or infinite
        return Continued(data, epoch * steps)
    if steps >= batches:
        return Continued(data)
    if batches % steps == 0:
        return Continued(data.repeat(), (epoch * steps) % batches)
    # The last epoch of each pass over the data is shorter.
    epochs_of_pass = -(-batches // steps)
    first = (epoch % epochs_of_pass) * steps
    return Continued(data, first, batches - first)
