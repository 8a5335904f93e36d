"""The loss of a step of all ranks."""

from embedra.distribute import Communicator, default_share, times_share

from ._graphs import Built


def with_loss_of_all(built: Built, ranks: Communicator) -> Built:
    """Has a model tell the mean loss over the examples of all ranks.

    What it differentiates stays the loss of this rank's examples.

    Args:
        built: The model, in the graph that is current.
        ranks: The ranks of the job.
    """
    own = times_share(built.spec.loss, default_share(ranks))
    of_all = ranks.all_reduce(own, label="loss")
    return built._replace(spec=built.spec._replace(loss=of_all))
