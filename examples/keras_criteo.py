"""Trains a deep and cross network on clicks of Criteo, also with several ranks.

    python examples/keras_criteo.py criteo
    embedra run -n 2 examples/keras_criteo.py criteo

The folder has train.csv and test.csv: lines of a label, 13 numbers and 26
words, separated by tabs, as in https://ailab.criteo.com/ressources/. No
vocabulary is given: the rows of a word come into being when it is seen.

Of N ranks each reads every N-th line, and has that part of each batch. Tables
are split over them, and the step is that of the whole batch, so that any number
of ranks gives the same model, within rounding. Nothing else in this script
knows of ranks.
"""

import argparse
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

import embedra as hb


NUMBERS = [f"I{i}" for i in range(1, 14)]
WORDS = [f"C{i}" for i in range(1, 27)]


def batches(path: Path, batch_size: int, shuffle: bool) -> tf.data.Dataset:
    """Reads the part of this rank.

    Args:
        path: A file of the format above.
        batch_size: Of the batches of all ranks together.
        shuffle: Whether lines come in another order in each epoch, the same on
            all ranks.

    Returns:
        Batches of features by name and labels.
    """
    ranks = hb.context.world_size

    def parse(lines: tf.Tensor) -> tuple[dict[str, Any], tf.Tensor]:
        defaults = [[0.0]] + [[0.0]] * len(NUMBERS) + [[""]] * len(WORDS)
        label, *columns = tf.io.decode_csv(
            lines, defaults, field_delim="\t", use_quote_delim=False
        )
        numbers = dict(zip(NUMBERS, columns, strict=False))
        words = dict(zip(WORDS, columns[len(NUMBERS) :], strict=True))
        return {
            **{
                n: tf.math.log1p(tf.maximum(x, 0.0)) for n, x in numbers.items()
            },
            **{
                n: tf.strings.to_hash_bucket_fast(x, 2**62)
                for n, x in words.items()
            },
        }, label[:, tf.newaxis]

    lines = tf.data.TextLineDataset(str(path))
    if shuffle:
        lines = lines.shuffle(8192, seed=0)
    own = lines.shard(ranks, hb.context.rank).batch(batch_size // ranks)
    return own.map(parse).prefetch(2)


def main() -> None:
    """Trains and evaluates."""
    parser = argparse.ArgumentParser(description="Trains on clicks of Criteo.")
    parser.add_argument("path", type=Path, help="folder of train.csv, test.csv")
    parser.add_argument("--batch-size", type=int, default=120)
    parser.add_argument("--checkpoint-dir", help="go on there, and save there")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for name in ("train.csv", "test.csv"):
        if not (args.path / name).is_file():
            msg = f"There is no file {args.path / name}."
            raise SystemExit(msg)
    if args.batch_size % hb.context.world_size:
        msg = (
            f"--batch-size {args.batch_size} cannot be divided among "
            f"{hb.context.world_size} ranks."
        )
        raise SystemExit(msg)
    keras.utils.set_random_seed(args.seed)
    with hb.scope(seed=args.seed):
        network = hb.models.dcn_v2(NUMBERS, WORDS, dim=8, together=True)
    model = hb.keras.Model(network.input, network.output)
    model.compile(
        keras.optimizers.Adagrad(0.05),
        "binary_crossentropy",
        metrics=[hb.metrics.AUC(name="auc")],
    )
    model.fit(
        batches(args.path / "train.csv", args.batch_size, shuffle=True),
        epochs=args.epochs,
        checkpoint_dir=args.checkpoint_dir,
        verbose=2,
    )
    test = batches(args.path / "test.csv", args.batch_size, shuffle=False)
    metrics = model.evaluate(test, return_dict=True, verbose=0)
    if hb.context.rank == 0:
        print(f"AUC on test.csv: {metrics['auc']:.4f}")


if __name__ == "__main__":
    main()
