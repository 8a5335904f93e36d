"""Options of HybridBackend that scopes accept and that change nothing here."""

_ONE_WAY = "there is one way to exchange values; the option changes nothing"
_WIRE = "`wire_dtype` is that of rows and gradients; the option changes nothing"
_NO_GPU_POOL = "rows are in the memory of the host; the option changes nothing"

MEANINGLESS = {
    "batch_size": "tables grow with their ids, so that none is replicated for "
    "being smaller than a batch; the option changes nothing",
    "comm_default": _ONE_WAY,
    "comm_pool_capacity": _ONE_WAY,
    "comm_pool_name": _ONE_WAY,
    "comm_gradient_wire_dtype": _WIRE,
    "comm_wire_dtype": _WIRE,
    "data_batch_count": "a step takes one batch; the option changes nothing",
    "data_sync_drop_remainder": "no batch is dropped, and no process waits for "
    "one that has none; the option changes nothing",
    "emb_buffer_size": _NO_GPU_POOL,
    "emb_backend_default": _NO_GPU_POOL,
    "grad_lazy_sync": "gradients are reduced before they are clipped; the "
    "option changes nothing",
    "pipeline_dense_ga_enabled": "steps are not pipelined; the option changes "
    "nothing",
    "use_hierarchical_embedding_lookup": _ONE_WAY,
}
"""What is logged when one is given, by its name."""
