"""Prints the version and the folder of this Python's TensorFlow, for CMake."""

import importlib.metadata
import importlib.util
import sys


def main() -> int:
    """Prints `version;folder`.

    Returns:
        The exit status: 1 if there is no TensorFlow.
    """
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or not spec.submodule_search_locations:
        return 1
    for distribution in ("tensorflow", "tensorflow-cpu"):
        try:
            version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        print(f"{version};{spec.submodule_search_locations[0]}")
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
