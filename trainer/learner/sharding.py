"""Shares a model out among the processes that train it: FSDP2, through accelerate.

Each process holds its part of the weights, gradients and moments. A layer is whole while it computes and no longer;
checkpoints are gathered, and the first process writes them whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Without FSDP's own `activation_checkpointing`: it renames the layers, and PEFT then writes an adapter without weights.
SHARDING: Mapping[str, Any] = {"fsdp": True, "fsdp_config": {"version": 2, "state_dict_type": "FULL_STATE_DICT"}}


def shard_on_cpu(trainer: Any) -> None:
    """Let a trainer that has no GPU shard, too. Without this accelerate would leave the model whole and say nothing:
    it takes FSDP's settings to heart for GPUs alone, although all that it then does also works on a CPU."""
    from accelerate.state import PartialState
    from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin

    if not trainer.args.fsdp or trainer.is_fsdp_enabled:
        return
    state, plugin = trainer.accelerator.state, FullyShardedDataParallelPlugin(**trainer.args.fsdp_plugin_args)
    if state.mixed_precision != "no":
        plugin.set_mixed_precision(state.mixed_precision)
    state.fsdp_plugin = plugin
    state.distributed_type = PartialState().distributed_type = DistributedType.FSDP
    trainer.is_fsdp_enabled = True
