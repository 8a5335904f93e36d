"""Notes of a run in its folder, for those that go on with it."""

import json
import os
from typing import Any

import tensorflow as tf


_NOTES = "estimator.json"


def check_seed(folder: str, seed: int | None) -> None:
    """Warns if a run goes on with another seed than it began with.

    Args:
        folder: Folder of the run.
        seed: Seed of the graphs now.
    """
    path = os.path.join(folder, _NOTES)
    if tf.train.latest_checkpoint(folder) is None:
        write_json(path, {"tf_random_seed": seed})
        return
    before = read_json(path).get("tf_random_seed", seed)
    if before != seed:
        tf.compat.v1.logging.warning(
            "The run in %s began with tf_random_seed=%s, and goes on with %s. "
            "Weights and rows are restored as they were, new ids start as "
            "they would have; what is drawn in steps (dropout, shuffling) "
            "differs from an uninterrupted run.",
            folder,
            before,
            seed,
        )


def read_json(path: str) -> dict[str, Any]:
    """Reads a file of JSON; an empty dict if there is none.

    Args:
        path: The file.

    Raises:
        ValueError: If it holds something else.
    """
    if not tf.io.gfile.exists(path):
        return {}
    with tf.io.gfile.GFile(path) as file:
        text = file.read()
    try:
        return dict(json.loads(text))
    except (TypeError, ValueError) as error:
        msg = (
            f"{path} is damaged: it should hold a JSON object. Received: "
            f"{text[:80]!r}. Mend it, or delete it to begin anew."
        )
        raise ValueError(msg) from error


def write_json(path: str, content: dict[str, Any]) -> None:
    """Writes a file of JSON, which appears when it is complete.

    Args:
        path: The file.
        content: What is written.
    """
    tf.io.gfile.makedirs(os.path.dirname(path))
    temporary = f"{path}.tmp"
    with tf.io.gfile.GFile(temporary, "w") as file:
        file.write(json.dumps(content, indent=2))
    tf.io.gfile.rename(temporary, path, overwrite=True)
