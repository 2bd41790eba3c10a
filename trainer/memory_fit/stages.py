"""What a recipe needs in memory: by stage, part by part, at the moment when most is needed.

model_sizes.py takes the model apart by its config alone. What does not follow from that is a formula here, with
its source beside it. Lengths are taken at their limit (sft.max_length, rollouts.max_length).
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from trainer.memory_fit.model_sizes import FLOAT32, ModelSizes, measure_model
from trainer.recipe import Recipe

GB = 1_000_000_000
HEAD_ROWS, HEAD_COLUMNS = 4096, 32_768  # TRL's tile of logits: kernels/chunked_logprob.py, trainer/utils.py
CPU_TILES = 7.25  # float32 copies of it without Triton: y, z, log_p, p, grad, two on the way, a mask (_backward_tile)
SMALL_VOCABULARY = 65_536  # up to it a CPU makes whole logits (cpu_trainers.py)
PASS_TOKENS = 2_048  # and GRPO those of so many tokens at once
SFT_LOGITS = 4  # float32 copies of them then: the logits, their softmax, two on the way
GRPO_LOGITS = 3  # log-probabilities, their gradient, one on the way
CUDA_RUNTIME = 700_000_000  # context, cuBLAS workspaces, allocator's rounding: assumed, not measured
CPU_RUNTIME = 600_000_000  # a process that has imported torch, transformers, TRL and PEFT: 540 MiB measured
VLLM_CPU_CACHE = 2 * 1024**3  # VLLM_CPU_KVCACHE_SPACE of trainer/learner/vllm_server.py
EVALUATED_ROWS = 16  # pool_registry.language_models.batched_model.MAX_BATCH


class Allocation(BaseModel):
    """One share of the memory at the moment when most is needed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    bytes: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a job would run on. Bytes; `gpu` is a CUDA card, else it is the computer's own memory."""

    name: str
    gpu: bool
    total: int
    free: int


def detect_machine() -> Machine:
    """The first CUDA card with what is free on it now, else the computer with its available memory."""
    import psutil
    import torch

    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        return Machine(f"cuda: {torch.cuda.get_device_name()}", True, total, free)
    memory = psutil.virtual_memory()
    return Machine("cpu", False, memory.total, memory.available)


def find_largest_stage(recipe: Recipe, machine: Machine) -> tuple[str, list[Allocation]]:
    """The stage that needs most, and its parts."""
    anatomy = measure_model(recipe, machine.gpu)
    stages = {}
    if recipe.sft is not None:
        stages["sft"] = _allocate_sft(recipe, anatomy, machine)
    if recipe.grpo is not None:
        stages["grpo"] = _allocate_grpo(recipe, anatomy, machine)
    if not stages:
        stages["evaluate"] = _allocate_evaluation(anatomy, machine)
    return max(stages.items(), key=lambda stage: sum(part.bytes for part in stage[1]))


def _allocate_sft(recipe: Recipe, anatomy: ModelSizes, machine: Machine) -> list[Allocation]:
    settings = recipe.sft
    assert settings is not None
    tokens = settings.batch * settings.max_length
    head = _head_bytes(anatomy, machine, tokens, tokens, SFT_LOGITS)
    step = _allocate_training_step(recipe, anatomy, settings.batch, settings.max_length, settings.accumulation, head)
    return [*_allocate_model(anatomy), *step, _allocate_runtime(machine)]


def _allocate_grpo(recipe: Recipe, anatomy: ModelSizes, machine: Machine) -> list[Allocation]:
    """Episodes are sampled first, then the step is taken: the larger of the two counts."""
    settings = recipe.grpo
    assert settings is not None
    wanted = settings.rollouts
    episodes = wanted.prompts * wanted.group
    tokens = settings.micro_batch * wanted.max_length
    head = _head_bytes(anatomy, machine, tokens, min(tokens, PASS_TOKENS), GRPO_LOGITS)
    step = _allocate_training_step(
        recipe, anatomy, settings.micro_batch, wanted.max_length, episodes // settings.micro_batch, head
    )
    server, rollouts = _allocate_rollouts(recipe, anatomy, machine)
    taken, sampled = sum(part.bytes for part in step), sum(part.bytes for part in rollouts)
    if taken >= sampled:
        rollouts = [_absorb(part, "given back before the step") for part in rollouts]
    else:
        step = [_absorb(part, "fits into what sampling needs") for part in step]
    return [
        *_allocate_model(anatomy),
        *_allocate_reference_model(recipe, anatomy),
        *server,
        *step,
        *rollouts,
        _allocate_runtime(machine),
    ]


def _absorb(part: Allocation, why: str) -> Allocation:
    return Allocation(name=part.name, bytes=0, note=f"{format_bytes(part.bytes)}, {why}")


def _allocate_evaluation(anatomy: ModelSizes, machine: Machine) -> list[Allocation]:
    """The base model and its cache; an evaluation of checkpoints of other models is not foreseen here."""
    cache = EVALUATED_ROWS * 2048 * anatomy.kv_token
    return [
        Allocation(name="weights", bytes=anatomy.weights, note=f"{anatomy.parameters:,} parameters"),
        Allocation(name="KV cache", bytes=cache, note=f"{EVALUATED_ROWS} rows of 2,048 tokens"),
        _allocate_runtime(machine),
    ]


def _allocate_model(anatomy: ModelSizes) -> list[Allocation]:
    """What is there all the time. AdamW keeps two moments per trained number, in that number's own precision
    (torch.optim.AdamW: zeros_like); nothing in this trainer keeps float32 master copies."""
    base = anatomy.parameters - anatomy.trainable if anatomy.adapter else anatomy.parameters
    return [
        Allocation(name="weights", bytes=anatomy.weights, note=f"{base:,} parameters of {anatomy.width} bytes"),
        Allocation(
            name="adapter",
            bytes=anatomy.adapter,
            note=f"{anatomy.trainable:,} parameters, kept in float32" if anatomy.adapter else "none",
        ),
        Allocation(
            name="optimizer", bytes=2 * anatomy.trained, note="AdamW's two moments, as precise as what they move"
        ),
    ]


def _allocate_training_step(
    recipe: Recipe, anatomy: ModelSizes, rows: int, length: int, accumulation: int, the_head: tuple[int, str]
) -> list[Allocation]:
    """The larger of two moments of a forward and backward pass over `rows` x `length` tokens.

    When the backward pass begins, all activations are there and no gradients yet (but those of earlier passes
    when there are several, and the head's); when it ends, all gradients and no activations.
    """
    tokens = rows * length
    layer = anatomy.layer.at(tokens) + _mask_bytes(rows, length, anatomy.width)
    kept, again, how = anatomy.layers * layer, 0, ""
    inputs = anatomy.layers * tokens * anatomy.hidden * anatomy.width
    if recipe.model.checkpointing and inputs + layer < kept:
        # Non-reentrant checkpointing: every layer keeps its input; later one layer at a time is computed again.
        kept, again, how = inputs, layer, ", recomputed"
    kept += anatomy.rest.at(tokens) + _boolean_mask_bytes(rows, length)
    head, head_note = the_head
    head_gradient = anatomy.head * anatomy.width if anatomy.head_trained else 0
    inside = again + anatomy.backward.at(tokens) + head_gradient
    earlier = anatomy.trained if accumulation > 1 else 0
    beginning = earlier + kept + max(head, inside)
    # A tied embedding gets its second gradient last, beside the first (embedding_dense_backward is dense).
    ending = anatomy.trained + (head_gradient if anatomy.tied else 0) + anatomy.backward.at(tokens)
    note = f"{rows} rows of {length:,} tokens, {anatomy.layers} layers{how}"
    if beginning >= ending:
        when = "of the passes before" if earlier else "there after the activations are gone"
        return [
            Allocation(name="gradients", bytes=earlier, note=when),
            Allocation(name="activations", bytes=kept, note=note),
            Allocation(
                name="workspace",
                bytes=max(head, inside),
                note=head_note if head >= inside else "one layer's backward pass",
            ),
        ]
    return [
        Allocation(name="gradients", bytes=anatomy.trained, note=f"{anatomy.trainable:,} numbers"),
        Allocation(
            name="activations", bytes=0, note=f"{note}: {format_bytes(kept)}, given back before the gradients end"
        ),
        Allocation(
            name="workspace", bytes=ending - anatomy.trained, note="the embedding's and the first layer's gradients"
        ),
    ]


def _mask_bytes(rows: int, length: int, width: int) -> int:
    """Rows of unequal length need a mask. scaled_dot_product_attention turns it into numbers in every layer, rows x
    length x length, and keeps them for the backward pass (convert_boolean_attn_mask in ATen's attention.cpp)."""
    return rows * length * length * width if rows > 1 else 0


def _boolean_mask_bytes(rows: int, length: int) -> int:
    """The mask itself, one byte per entry, made once for all layers (transformers.masking_utils)."""
    return rows * length * length if rows > 1 else 0


def _head_bytes(anatomy: ModelSizes, machine: Machine, tokens: int, at_once: int, copies: int) -> tuple[int, str]:
    """What the loss needs for a moment, if every token is learnt. Where a CPU makes whole logits (cpu_trainers.py), it
    makes them for `at_once` tokens, in so many float32 copies."""
    if machine.gpu or anatomy.vocabulary > SMALL_VOCABULARY:
        return _loss_tile_bytes(anatomy, machine, tokens)
    logits = at_once * anatomy.vocabulary * copies * FLOAT32
    hidden = tokens * anatomy.hidden * (FLOAT32 + anatomy.width)
    return logits + hidden + _head_gradient_bytes(anatomy), f"logits of {at_once:,} tokens x {anatomy.vocabulary:,}"


def _loss_tile_bytes(anatomy: ModelSizes, machine: Machine, tokens: int) -> tuple[int, str]:
    """What the loss needs for a moment. TRL 1.16 never has all logits: it makes them tile by tile, twice
    (ChunkedLogProbFunction), and keeps the gradients of hidden states and of the head in float32."""
    rows = min(tokens, HEAD_ROWS)
    if machine.gpu:
        tile = rows * HEAD_COLUMNS * anatomy.width
    else:
        tile = round(rows * min(anatomy.vocabulary, HEAD_COLUMNS) * (anatomy.width + CPU_TILES * FLOAT32))
    gradients = tokens * anatomy.hidden * FLOAT32
    if anatomy.width != FLOAT32:
        gradients += tokens * anatomy.hidden * anatomy.width
    gradients += _head_gradient_bytes(anatomy)
    return tile + gradients, f"logits in tiles of {rows:,} tokens x {min(anatomy.vocabulary, HEAD_COLUMNS):,}"


def _head_gradient_bytes(anatomy: ModelSizes) -> int:
    """In float32, and once more where the head is less precise."""
    if not anatomy.head_trained:
        return 0
    return anatomy.head * FLOAT32 + (anatomy.head * anatomy.width if anatomy.width != FLOAT32 else 0)


def _allocate_reference_model(recipe: Recipe, anatomy: ModelSizes) -> list[Allocation]:
    """With a KL term TRL keeps the start: a second model, or without one a copy of an adapter that was there."""
    assert recipe.grpo is not None
    if recipe.grpo.loss.beta == 0:
        return [Allocation(name="reference model", bytes=0, note="no KL term (loss.beta is 0)")]
    if not anatomy.adapter:
        return [Allocation(name="reference model", bytes=anatomy.weights, note="the start, whole")]
    copied = anatomy.adapter if recipe.sft is not None or recipe.model.start else 0
    return [
        Allocation(name="reference model", bytes=copied, note="the base without its adapter, or with the first one")
    ]


def _allocate_rollouts(
    recipe: Recipe, anatomy: ModelSizes, machine: Machine
) -> tuple[list[Allocation], list[Allocation]]:
    """What serves episodes all the time (a server), and what only while they are sampled."""
    assert recipe.grpo is not None
    wanted = recipe.grpo.rollouts
    share = round(wanted.vllm_memory * machine.total)
    if wanted.backend == "vllm" and wanted.vllm_url:
        return [Allocation(name="vLLM", bytes=0, note=f"runs elsewhere: {wanted.vllm_url}")], []
    if wanted.backend == "vllm" and not machine.gpu:
        held = anatomy.weights + VLLM_CPU_CACHE + CPU_RUNTIME
        return [
            Allocation(name="vLLM", bytes=held, note="a server of its own: weights, 2 GiB of cache, its runtime")
        ], []
    if wanted.backend != "transformers":
        part = Allocation(name="vLLM", bytes=share, note=f"{wanted.vllm_memory:.0%} of {format_bytes(machine.total)}")
        return ([part], []) if wanted.backend == "vllm" else ([], [part])  # in this process it sleeps during the step
    rows = min(wanted.concurrency, wanted.prompts * wanted.group)
    tokens = rows * wanted.max_length
    # A layer's cache is concatenated anew for every token (DynamicCache): once more for one layer.
    cache = tokens * anatomy.kv_token * (anatomy.layers + 1) // anatomy.layers
    # Reading the prompts: one layer's forward pass and its mask; then float32 logits of the last token, scaled,
    # softmaxed, and for top_p sorted with their places (8 bytes each).
    reading = anatomy.forward.at(tokens) + _mask_bytes(rows, wanted.max_length, anatomy.width)
    reading += _boolean_mask_bytes(rows, wanted.max_length)
    drawing = rows * anatomy.vocabulary * (3 * FLOAT32 + (2 * FLOAT32 + 8 if wanted.top_p < 1 else 0))
    what = f"{rows} rows of {wanted.max_length:,} tokens"
    return [], [
        Allocation(name="KV cache", bytes=cache, note=what),
        Allocation(name="reading prompts", bytes=max(reading, drawing), note=f"one layer over {what}"),
    ]


def _allocate_runtime(machine: Machine) -> Allocation:
    if machine.gpu:
        return Allocation(
            name="runtime", bytes=CUDA_RUNTIME, note="CUDA, its libraries and what the allocator rounds up"
        )
    return Allocation(name="runtime", bytes=CPU_RUNTIME, note="Python with torch, transformers and TRL")


def format_bytes(size: int) -> str:
    return f"{size / GB:.1f} GB" if abs(size) >= GB / 10 else f"{size / 1_000_000:.0f} MB"
