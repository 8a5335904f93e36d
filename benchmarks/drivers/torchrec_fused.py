"""torchrec and fbgemm on the CPU: static tables, fused Adagrad.

fbgemm's CPU mode has no fused Adam. Ids are taken modulo the table's rows.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from fbgemm_gpu.split_embedding_configs import EmbOptimType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import (
    EmbeddingLocation,
    PoolingMode,
)
from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
    ComputeDevice,
    SplitTableBatchedEmbeddingBagsCodegen,
)
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.fused_embedding_modules import (
    FusedEmbeddingBagCollection,
)
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from drivers import workload
from drivers.protocol import Driver, parse_arguments


RATE = workload.LEARNING_RATE["adagrad"]
EPSILON = 1e-7


def make_mlp(inputs: int) -> torch.nn.Module:
    """The dense part of the click model."""
    layers: list[torch.nn.Module] = []
    for units in workload.HIDDEN:
        layers += [torch.nn.Linear(inputs, units), torch.nn.ReLU()]
        inputs = units
    return torch.nn.Sequential(*layers, torch.nn.Linear(inputs, 1))


def step_case(arguments: Any) -> None:
    """The training step with a fused embedding collection."""
    features = arguments.features
    names = [f"feature_{f}" for f in range(features)]
    tables = FusedEmbeddingBagCollection(
        tables=[
            EmbeddingBagConfig(
                name=f"table_{name}",
                embedding_dim=workload.DIM,
                num_embeddings=arguments.keys,
                feature_names=[name],
            )
            for name in names
        ],
        optimizer_type=torch.optim.Adagrad,
        optimizer_kwargs={"lr": RATE, "eps": EPSILON},
        device=torch.device("cpu"),
    )
    mlp = make_mlp(features * workload.DIM)
    optimizer = torch.optim.Adagrad(
        mlp.parameters(), RATE, initial_accumulator_value=0.1
    )
    drawn = workload.clicks(
        arguments.keys, features=features, batches=arguments.batches
    )
    ids = torch.from_numpy(drawn.ids)
    labels = torch.from_numpy(drawn.labels)
    count = features * workload.BATCH
    lengths = torch.ones(count, dtype=torch.int32)
    offsets = torch.arange(count + 1)
    bce = torch.nn.functional.binary_cross_entropy_with_logits

    def step(i: int) -> float:
        batch = i % len(ids)
        # Jagged tensors are feature-major.
        values = (ids[batch] % arguments.keys).t().reshape(-1)
        jagged = KeyedJaggedTensor(
            names,
            values,
            lengths=lengths,
            offsets=offsets,
            stride=workload.BATCH,
        )
        optimizer.zero_grad(set_to_none=True)
        loss = bce(mlp(tables(jagged).values()), labels[batch])
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    serve_warm(arguments.batches, step=step)


def pooling_case(arguments: Any) -> None:
    """Multi-hot sum pooling with fbgemm's table-batched embedding."""
    table = SplitTableBatchedEmbeddingBagsCodegen(
        [
            (
                arguments.keys,
                workload.BAG_DIM,
                EmbeddingLocation.HOST,
                ComputeDevice.CPU,
            )
        ],
        optimizer=EmbOptimType.EXACT_ADAGRAD,
        learning_rate=RATE,
        eps=EPSILON,
        pooling_mode=PoolingMode.SUM,
        device=torch.device("cpu"),
    )
    for weights in table.split_embedding_weights():
        weights.data.normal_(std=0.05)
    batches = [
        (
            torch.from_numpy(batch.ids % arguments.keys),
            torch.from_numpy(batch.row_splits),
        )
        for batch in workload.bags(arguments.keys, batches=arguments.batches)
    ]

    def forward(i: int) -> float:
        with torch.no_grad():
            return float(table(*batches[i % len(batches)]).sum())

    def train(i: int) -> float:
        loss = table(*batches[i % len(batches)]).square().mean()
        loss.backward()
        return float(loss.detach())

    serve_warm(arguments.batches, forward=forward, train=train)


def serve_warm(batches: int, **measures: Any) -> None:
    """Runs each measure over all batches once, then serves them."""
    driver = Driver()
    for name, run in measures.items():
        losses = [run(i) for i in range(batches)]
        if not all(map(math.isfinite, losses)):
            msg = f"{name}: the loss is not finite: {losses}."
            raise ArithmeticError(msg)
        driver.fact(f"{name}_first_losses", losses[:3])
        driver.measure(name, run)
    driver.serve()


def main() -> None:
    """Runs the case named on the command line."""
    cases = {"step": step_case, "pooling": pooling_case}
    arguments = parse_arguments(list(cases))
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    torch.set_num_interop_threads(arguments.threads)
    cases[arguments.case](arguments)


if __name__ == "__main__":
    main()
