"""Estimates the RAM or GPU memory of each stage of a recipe, item by item, at its peak.

model_sizes.py measures the model from its config alone. The rest are formulas, each with its source beside it.
What a method adds is in its row (trainer/methods). Lengths are taken at their limit. All sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from trainer.memory_fit.model_sizes import FLOAT32, ModelSizes, measure_model
from trainer.recipe import Recipe

GB = 1_000_000_000
HEAD_ROWS, HEAD_COLUMNS = 4096, 32_768  # TRL's tile of logits: kernels/chunked_logprob.py, trainer/utils.py
CPU_TILES = 7.25  # float32 copies of it without Triton: y, z, log_p, p, grad, two temporary, a mask (_backward_tile)
SMALL_VOCABULARY = 65_536  # up to this size a CPU computes whole logits (cpu_trainers.py)
PASS_TOKENS = 2_048  # and scores sampled episodes of so many tokens at once
CUDA_RUNTIME = 700_000_000  # context, cuBLAS workspaces, allocator's rounding: assumed, not measured
CPU_RUNTIME = 950_000_000  # a process that has trained a step with torch, transformers, TRL and PEFT: 900 MiB measured
# On a CPU freed memory is kept (language_models/freed_memory.py). A block that fits no hole in it takes more: a share
# of what a step allocates and frees, measured by bench/memory.py.
HOLES = 0.15
SHARED_OUT = ("weights", "adapter", "optimizer", "gradients")  # of what a process allocates, by FSDP2
EVALUATED_ROWS = 16  # pool_registry.language_models.batched_model.MAX_BATCH


class Allocation(BaseModel):
    """One item of the estimate: the bytes that it takes at the peak. Keys are the contract with the Train page."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    bytes: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """The device of a job, in bytes: the memory of a CUDA GPU (`gpu`), else the RAM of the computer."""

    name: str
    gpu: bool
    total: int
    free: int


def detect_machine() -> Machine:
    """Detect the first CUDA GPU with its free memory, else the computer with its available RAM."""
    import psutil
    import torch

    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        return Machine(f"cuda: {torch.cuda.get_device_name()}", True, total, free)
    ram = psutil.virtual_memory()
    return Machine("cpu", False, ram.total, ram.available)


def find_largest_stage(recipe: Recipe, machine: Machine) -> tuple[str, list[Allocation]]:
    """Estimate every stage in one of the recipe's processes; return the name and the allocations of the one that needs
    most."""
    sizes = measure_model(recipe.model, machine.gpu)
    stages = {}
    for stage in recipe.training_stages:
        parts = stage.method.allocate(stage.settings, recipe, sizes, machine)
        stages[stage.name] = _share_out(parts, recipe.processes, sizes) if recipe.sharding == "full" else parts
        if recipe.evaluate is not None and not machine.gpu:
            stages[stage.name].append(_allocate_last_evaluation(sizes))
    if not stages:
        stages["evaluate"] = _allocate_evaluation(sizes, machine)
    return max(stages.items(), key=lambda stage: sum(part.bytes for part in stage[1]))


def _share_out(parts: list[Allocation], processes: int, sizes: ModelSizes) -> list[Allocation]:
    """Give each process its part of what FSDP2 shares out, and the two layers that are whole at a time."""
    among = f"; shared out among {processes}"
    shared = [
        Allocation(name=part.name, bytes=part.bytes // processes, note=f"{part.note}{among}")
        if part.name in SHARED_OUT
        else part
        for part in parts
    ]
    gathered = 2 * sizes.weights // sizes.layers
    return [*shared, Allocation(name="gathered layers", bytes=gathered, note="one computes, the next one arrives")]


def _allocate_evaluation(sizes: ModelSizes, machine: Machine) -> list[Allocation]:
    """Estimate the base model and its cache; checkpoints of other models are not considered."""
    cache = EVALUATED_ROWS * 2048 * sizes.kv_token
    return [
        Allocation(name="weights", bytes=sizes.weights, note=f"{sizes.parameters:,} parameters"),
        Allocation(name="KV cache", bytes=cache, note=f"{EVALUATED_ROWS} rows of 2,048 tokens"),
        allocate_runtime(machine),
    ]


def _allocate_last_evaluation(sizes: ModelSizes) -> Allocation:
    """Estimate what the evaluation at the end of a job adds on a CPU, where a process keeps what training freed."""
    return Allocation(
        name="evaluation",
        bytes=sizes.weights + EVALUATED_ROWS * 2048 * sizes.kv_token,
        note=f"the checkpoint once more, and a cache of {EVALUATED_ROWS} rows of 2,048 tokens",
    )


def allocate_model(sizes: ModelSizes) -> list[Allocation]:
    """Allocate what exists all the time: weights, adapter and optimizer.

    Weights that learn are float32, and so are AdamW's two moments of each (torch.optim.AdamW: zeros_like): with the
    gradient 16 bytes a weight. Autocast's bfloat16 copies exist during a pass only (allocate_training_step).
    """
    base = sizes.parameters - sizes.trainable if sizes.adapter else sizes.parameters
    return [
        Allocation(name="weights", bytes=sizes.weights, note=f"{base:,} parameters of {sizes.width} bytes"),
        Allocation(
            name="adapter",
            bytes=sizes.adapter,
            note=f"{sizes.trainable:,} parameters, kept in float32" if sizes.adapter else "none",
        ),
        Allocation(name="optimizer", bytes=2 * sizes.trained, note="AdamW's two moments, as precise as what they move"),
    ]


def allocate_training_step(
    sizes: ModelSizes, rows: int, length: int, accumulation: int, head: tuple[int, str], recomputes: bool
) -> list[Allocation]:
    """Allocate the larger of two moments of a forward and backward pass over `rows` x `length` tokens.

    When the backward pass begins, all activations exist and no gradients yet, except for the head's and those of
    earlier passes when there are several (`accumulation`). When it ends, all gradients exist and no activations.
    `head` is the temporary peak of the loss (bytes, note); `recomputes`: with gradient checkpointing.
    """
    tokens = rows * length
    # Every layer keeps its activations, and the mask as numbers, until its own backward pass.
    layer = sizes.layer.bytes_for(tokens) + mask_bytes(rows, length, sizes.width)
    kept, again, how = sizes.layers * layer, 0, ""
    # Recomputing drops what a layer keeps, but autocast holds the copies of its weights until the forward pass is over.
    inputs = sizes.layers * (tokens * sizes.hidden * sizes.width + round(sizes.layer.fixed))
    # Checkpointing pays only where it needs less: for a model of few layers the recomputed one may be most of it.
    if recomputes and inputs + layer < kept:
        # Non-reentrant checkpointing: every layer keeps its input; later one layer at a time is computed again.
        kept, again, how = inputs, layer, ", recomputed"
    kept += sizes.rest.bytes_for(tokens) + boolean_mask_bytes(rows, length)
    head_bytes, head_note = head
    head_gradient = sizes.head * sizes.width if sizes.head_trained else 0
    # The loss comes first and is over when the layers' backward passes begin: the two share the same memory.
    inside = again + sizes.backward.bytes_for(tokens) + head_gradient
    workspace = max(head_bytes, inside)
    # Gradients of an earlier pass of the same step stay until the optimizer has used them.
    earlier = sizes.trained if accumulation > 1 else 0
    beginning = earlier + kept + workspace
    # A tied embedding gets its second gradient last, beside the first (embedding_dense_backward is dense).
    ending = sizes.trained + (head_gradient if sizes.tied else 0) + sizes.backward.bytes_for(tokens)
    note = f"{rows} rows of {length:,} tokens, {sizes.layers} layers{how}"
    if beginning >= ending:
        when = "of the passes before" if earlier else "there after the activations are gone"
        what = head_note if head_bytes >= inside else "one layer's backward pass"
        return [
            Allocation(name="gradients", bytes=earlier, note=when),
            Allocation(name="activations", bytes=kept, note=note),
            Allocation(name="workspace", bytes=workspace, note=what),
        ]
    freed = f"{note}: {format_bytes(kept)}, given back before the gradients end"
    rest = "the embedding's and the first layer's gradients"
    return [
        Allocation(name="gradients", bytes=sizes.trained, note=f"{sizes.trainable:,} numbers"),
        Allocation(name="activations", bytes=0, note=freed),
        Allocation(name="workspace", bytes=ending - sizes.trained, note=rest),
    ]


def mask_bytes(rows: int, length: int, width: int) -> int:
    """Compute the bytes of the mask [rows, length, length] that each layer keeps where rows differ in length.

    scaled_dot_product_attention turns the boolean mask into numbers in every layer and keeps them for the backward
    pass (convert_boolean_attn_mask in ATen's attention.cpp).
    """
    return rows * length * length * width if rows > 1 else 0


def boolean_mask_bytes(rows: int, length: int) -> int:
    """Compute the bytes of the boolean mask, made once for all layers (transformers.masking_utils)."""
    return rows * length * length if rows > 1 else 0


def head_bytes(sizes: ModelSizes, machine: Machine, tokens: int, at_once: int, copies: int) -> tuple[int, str]:
    """Compute the temporary peak of the loss, if every token is learnt: (bytes, note).

    Where a CPU computes whole logits (cpu_trainers.py), it does so for `at_once` tokens, in `copies` float32 copies.
    """
    if machine.gpu or sizes.vocabulary > SMALL_VOCABULARY:
        return loss_tile_bytes(sizes, machine, tokens)
    logits = at_once * sizes.vocabulary * copies * FLOAT32
    hidden = tokens * sizes.hidden * (FLOAT32 + sizes.width)
    return logits + hidden + _head_gradient_bytes(sizes), f"logits of {at_once:,} tokens x {sizes.vocabulary:,}"


def loss_tile_bytes(sizes: ModelSizes, machine: Machine, tokens: int) -> tuple[int, str]:
    """Compute the temporary peak of TRL's loss: (bytes, note).

    TRL 1.16 never has all logits: it computes them tile by tile, once forward and once backward
    (ChunkedLogProbFunction), and keeps the gradients of hidden states and of the head in float32.
    """
    rows = min(tokens, HEAD_ROWS)
    if machine.gpu:
        tile = rows * HEAD_COLUMNS * sizes.width
    else:
        tile = round(rows * min(sizes.vocabulary, HEAD_COLUMNS) * (sizes.width + CPU_TILES * FLOAT32))
    gradients = tokens * sizes.hidden * FLOAT32
    if sizes.width != FLOAT32:
        gradients += tokens * sizes.hidden * sizes.width
    gradients += _head_gradient_bytes(sizes)
    return tile + gradients, f"logits in tiles of {rows:,} tokens x {min(sizes.vocabulary, HEAD_COLUMNS):,}"


def _head_gradient_bytes(sizes: ModelSizes) -> int:
    """Compute the bytes of the head's gradient in float32, and once more in its own precision where that is lower."""
    if not sizes.head_trained:
        return 0
    return sizes.head * FLOAT32 + (sizes.head * sizes.width if sizes.width != FLOAT32 else 0)


def allocate_holes(parts: list[Allocation], machine: Machine) -> list[Allocation]:
    """Allocate what lies free between blocks on a CPU."""
    if machine.gpu:
        return []
    changing = sum(part.bytes for part in parts if part.name != "gradients")
    return [Allocation(name="holes", bytes=round(HOLES * changing), note="freed memory that no new block fits into")]


def allocate_runtime(machine: Machine) -> Allocation:
    if machine.gpu:
        return Allocation(
            name="runtime", bytes=CUDA_RUNTIME, note="CUDA, its libraries and what the allocator rounds up"
        )
    return Allocation(name="runtime", bytes=CPU_RUNTIME, note="Python with torch, transformers and TRL")


def format_bytes(size: int) -> str:
    """Format bytes as "1.5 GB" or "20 MB"."""
    return f"{size / GB:.1f} GB" if abs(size) >= GB / 10 else f"{size / 1_000_000:.0f} MB"
