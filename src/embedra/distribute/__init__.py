"""Training with several processes: what ranks exchange, and how."""

from ._communicator import Communicator as Communicator
from ._current import communicator as communicator
from ._mpi import MpiCommunicator as MpiCommunicator
from ._single import SingleCommunicator as SingleCommunicator
