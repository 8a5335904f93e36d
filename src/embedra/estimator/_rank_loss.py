"""The loss of a step of all ranks."""

import tensorflow as tf

from embedra.distribute import Communicator, default_share

from ._graphs import Built


def with_loss_of_all(built: Built, ranks: Communicator) -> Built:
    """Has a model tell the mean loss over the examples of all ranks.

    What it differentiates stays the loss of this rank's examples.

    Args:
        built: The model, in the graph that is current.
        ranks: The ranks of the job.
    """
    loss = built.spec.loss
    share = tf.cast(default_share(ranks), loss.dtype)
    # Of no examples the loss may be no number.
    of_all = ranks.all_reduce(
        tf.math.multiply_no_nan(loss, share), label="loss"
    )
    return built._replace(spec=built.spec._replace(loss=of_all))
