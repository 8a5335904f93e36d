"""Everything that depends on the process's environment, in one place."""

import os
import sys
from pathlib import Path


def quiet_tensorflow_of_the_command() -> None:
    """Silences TensorFlow's start-up messages for the `embedra` command.

    TensorFlow reads the variable when it is imported, so this comes first.
    Nothing is changed where `embedra` is imported as a library, nor where the
    user has chosen a level.
    """
    if Path(sys.argv[0]).name == "embedra":
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
