"""Trains a wide-and-deep model on clicks of Criteo with an estimator.

    python examples/estimator_criteo.py criteo --model-dir run
    embedra run -n 2 examples/estimator_criteo.py criteo --model-dir run

The folder has train.csv and test.csv: lines of a label, 13 numbers and 26
words, separated by tabs, as in https://ailab.criteo.com/ressources/. No
vocabulary is given: the rows of a word come into being when it is seen.

It trains half of its steps, goes on from the checkpoint as a new process would,
evaluates on the way, and exports what it has learnt for TensorFlow Serving. Run
again with the same folder, it goes on for as many steps as there are to make.

Of N ranks each reads every N-th line, and has that part of each batch; rank 0
writes, and says what came out.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import embedra as hb
import embedra.compat.v1 as tf


NUMBERS = [f"I{i}" for i in range(1, 14)]
WORDS = [f"C{i}" for i in range(1, 27)]
# Of all ranks together.
BATCH = 128


def input_fn(path: Path, repeat: int | None = 1) -> Callable[[], Any]:
    """Makes an input function.

    Args:
        path: A file of the format above.
        repeat: How often it is read; None for ever, in new orders.
    """

    def parse(lines: Any) -> tuple[dict[str, Any], Any]:
        defaults = [[0.0]] + [[0.0]] * len(NUMBERS) + [[""]] * len(WORDS)
        columns = tf.io.decode_csv(
            lines, defaults, field_delim="\t", use_quote_delim=False
        )
        return dict(zip(NUMBERS + WORDS, columns[1:], strict=True)), columns[0]

    def give() -> Any:
        ranks = hb.context.world_size
        lines = tf.data.TextLineDataset(str(path))
        if repeat is None:
            # In the same order on all ranks.
            lines = lines.shuffle(8192, seed=0)
        own = lines.shard(ranks, hb.context.rank).repeat(repeat)
        return own.batch(BATCH // ranks).map(parse)

    return give


def columns() -> tuple[list[Any], list[Any]]:
    """Returns the columns of the wide and of the deep part."""
    wide = [
        hb.feature_column.categorical_column_with_embedding(name, tf.string)
        for name in WORDS
    ]
    numbers = [
        hb.feature_column.numeric_column(
            name, normalizer_fn=lambda x: tf.log1p(tf.maximum(x, 0.0))
        )
        for name in NUMBERS
    ]
    words = [
        hb.feature_column.embedding_column(column, dimension=8)
        for column in wide
    ]
    return wide, [*numbers, *words]


def dense(x: Any, units: int, name: str) -> Any:
    """A layer of a network."""
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", (x.shape[1], units))
        bias = tf.get_variable("bias", initializer=tf.zeros((units,)))
    return tf.matmul(x, kernel) + bias


def model_fn(
    features: Mapping[str, Any],
    labels: Any,
    mode: str,
    params: Mapping[str, Any],
) -> Any:
    """Builds the model: Ftrl trains the wide part, Adagrad the deep one."""
    wide, deep = columns()
    with tf.variable_scope("wide"):
        wide_logits = hb.feature_column.linear_model(features, wide)
    with tf.variable_scope("deep"):
        x = hb.feature_column.input_layer(features, deep)
        for i, units in enumerate(params["units"]):
            x = tf.nn.relu(dense(x, units, f"hidden_{i}"))
        deep_logits = dense(x, 1, "score")
    logits = tf.squeeze(wide_logits + deep_logits, axis=1)
    click = tf.sigmoid(logits)
    if mode == hb.estimator.ModeKeys.PREDICT:
        return hb.estimator.EstimatorSpec(mode, {"click": click})
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    train_op = None
    if mode == hb.estimator.ModeKeys.TRAIN:
        train_op = tf.group(
            hb.train.FtrlOptimizer(params["wide_rate"]).minimize(
                loss, var_list=tf.trainable_variables("wide")
            ),
            hb.train.AdagradOptimizer(params["deep_rate"]).minimize(
                loss,
                tf.train.get_global_step(),
                var_list=tf.trainable_variables("deep"),
            ),
        )
    return hb.estimator.EstimatorSpec(
        mode,
        {"click": click},
        loss,
        train_op,
        {"auc": hb.metrics.auc(labels, click)},
    )


def receiver() -> Any:
    """Makes the placeholders of the model that is served."""
    inputs = {
        name: tf.placeholder(tf.float32, [None], name=name) for name in NUMBERS
    } | {name: tf.placeholder(tf.string, [None], name=name) for name in WORDS}
    return hb.estimator.export.ServingInputReceiver(inputs, inputs)


def main() -> None:
    """Trains, goes on, evaluates and exports."""
    parser = argparse.ArgumentParser(description="Trains on clicks of Criteo.")
    parser.add_argument("path", type=Path, help="folder of train.csv, test.csv")
    parser.add_argument("--model-dir", help="default: a temporary folder")
    parser.add_argument("--steps", type=int, default=170)
    parser.add_argument("--evaluate-every", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for name in ("train.csv", "test.csv"):
        if not (args.path / name).is_file():
            msg = f"There is no file {args.path / name}."
            raise SystemExit(msg)
    config = hb.estimator.RunConfig(
        model_dir=args.model_dir,
        tf_random_seed=args.seed,
        save_checkpoints_secs=None,
        log_step_count_steps=None,
    )
    params = {"units": (64, 32), "wide_rate": 0.05, "deep_rate": 0.05}
    estimator = hb.estimator.Estimator(model_fn, config=config, params=params)
    for steps in (args.steps // 2, args.steps):
        # The second one finds the checkpoint that the first one leaves.
        estimator = hb.estimator.Estimator(
            model_fn, config=estimator.config, params=params
        )
        metrics, _ = estimator.train_and_evaluate(
            hb.estimator.TrainSpec(
                input_fn(args.path / "train.csv", None), max_steps=steps
            ),
            hb.estimator.EvalSpec(input_fn(args.path / "test.csv"), steps=None),
            eval_every_n_iter=args.evaluate_every,
            eval_at_start=False,
        )
        for values in estimator.eval_history if hb.context.is_chief else ():
            print(
                f"step {values['global_step']:4d}   "
                f"loss {values['loss']:.4f}   AUC {values['auc']:.4f}"
            )
    served = estimator.export_saved_model(
        f"{estimator.model_dir}/served", receiver
    )
    if hb.context.is_chief:
        print(f"Served from {served}")
        print(f"AUC on test.csv: {metrics['auc']:.4f}")


if __name__ == "__main__":
    main()
