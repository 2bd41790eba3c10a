"""The memory of a step: sampling and the update, which take turns, and what vLLM and the reference model hold."""

from __future__ import annotations

from trainer.errors import TrainingFailed
from trainer.memory_fit.model_sizes import FLOAT32, ModelSizes
from trainer.memory_fit.stages import (
    CPU_RUNTIME,
    PASS_TOKENS,
    Allocation,
    Machine,
    allocate_holes,
    allocate_model,
    allocate_runtime,
    allocate_training_step,
    boolean_mask_bytes,
    format_bytes,
    head_bytes,
    mask_bytes,
)
from trainer.methods.grpo.section import GrpoSettings, RolloutSettings

LOGITS = 3  # float32 copies of whole logits on a CPU: log-probabilities, their gradient, one temporary
VLLM_CPU_CACHE = 2 * 1024**3  # VLLM_CPU_KVCACHE_SPACE of trainer/learner/vllm_server.py
VLLM_PROFILE = 1.1  # of weights and cache: what vLLM's trial run takes beside them; assumed, not measured
BFLOAT16 = 2  # bytes


def allocate_step(
    settings: GrpoSettings, processes: int, sizes: ModelSizes, machine: Machine, recomputes: bool, continues: bool
) -> list[Allocation]:
    """Allocate the larger of sampling and the training step, which take turns."""
    rollouts = settings.rollouts
    rows = settings.micro_batch // processes
    tokens = rows * rollouts.max_length
    passes = rollouts.prompts * rollouts.group // settings.micro_batch
    head = head_bytes(sizes, machine, tokens, min(tokens, PASS_TOKENS), LOGITS)
    step = allocate_training_step(sizes, rows, rollouts.max_length, passes, head, recomputes)
    server, sampling = _allocate_rollouts(rollouts, sizes, machine)
    if sum(part.bytes for part in step) >= sum(part.bytes for part in sampling):
        sampling = [_absorb(part, "given back before the step") for part in sampling]
    else:
        step = [_absorb(part, "fits into what sampling needs") for part in step]
    reference = _allocate_reference_model(settings.loss.beta, sizes, continues)
    holes = allocate_holes([*step, *sampling], machine)
    return [*allocate_model(sizes), reference, *server, *step, *sampling, *holes, allocate_runtime(machine)]


def _absorb(part: Allocation, why: str) -> Allocation:
    """Return the item with 0 bytes, and its size and the reason in the note."""
    return Allocation(name=part.name, bytes=0, note=f"{format_bytes(part.bytes)}, {why}")


def _allocate_reference_model(beta: float, sizes: ModelSizes, continues: bool) -> Allocation:
    """Allocate TRL's reference model for the KL term: the whole start, or without one a copy of its adapter.

    A new adapter changes nothing, so the base alone is its reference; `continues`: the adapter was trained before.
    """
    if beta == 0:
        return Allocation(name="reference model", bytes=0, note="no KL term (loss.beta is 0)")
    if not sizes.adapter:
        return Allocation(name="reference model", bytes=sizes.weights, note="the start, whole")
    copied = sizes.adapter if continues else 0
    return Allocation(name="reference model", bytes=copied, note="the base without its adapter, or with the first one")


def _allocate_rollouts(
    settings: RolloutSettings, sizes: ModelSizes, machine: Machine
) -> tuple[list[Allocation], list[Allocation]]:
    """Allocate what exists all the time (a vLLM server) and what exists only while episodes are sampled."""
    if settings.backend in ("vllm", "vllm-async") and settings.vllm_url:
        return [Allocation(name="vLLM", bytes=0, note=f"runs elsewhere: {settings.vllm_url}")], []
    if settings.backend == "vllm" and not machine.gpu:
        held = sizes.weights + VLLM_CPU_CACHE + CPU_RUNTIME
        return [
            Allocation(name="vLLM", bytes=held, note="a server of its own: weights, 2 GiB of cache, its runtime")
        ], []
    if settings.backend != "transformers":
        share = round(settings.vllm_memory * machine.total)
        note = f"{settings.vllm_memory:.0%} of {format_bytes(machine.total)}"
        part = Allocation(name="vLLM", bytes=share, note=note)
        return ([part], []) if settings.backend == "vllm" else ([], [part])  # in this process it sleeps during the step
    rows = min(settings.concurrency, settings.prompts * settings.group)
    tokens = rows * settings.max_length
    # A layer's cache is copied when it grows (kv_cache.py, DynamicCache): once more for one layer.
    cache = tokens * sizes.kv_token * (sizes.layers + 1) // sizes.layers
    # Reading the prompts: one layer's forward pass and its mask; then float32 logits of the last token, scaled,
    # softmaxed, and for top_p sorted with their indices (8 bytes each).
    reading = sizes.forward.bytes_for(tokens) + mask_bytes(rows, settings.max_length, sizes.width)
    reading += boolean_mask_bytes(rows, settings.max_length)
    drawing = rows * sizes.vocabulary * (3 * FLOAT32 + (2 * FLOAT32 + 8 if settings.top_p < 1 else 0))
    what = f"{rows} rows of {settings.max_length:,} tokens"
    return [], [
        Allocation(name="KV cache", bytes=cache, note=what),
        Allocation(name="reading prompts", bytes=max(reading, drawing), note=f"one layer over {what}"),
    ]


def check_share_of_vllm(rollouts: RolloutSettings, sizes: ModelSizes, machine: Machine) -> None:
    """Raise TrainingFailed when vLLM's share of the GPU does not hold the weights and the cache of one episode."""
    if not machine.gpu or rollouts.backend == "transformers" or rollouts.vllm_url:
        return
    cache = rollouts.max_length * sizes.kv_token * BFLOAT16 / sizes.width
    least = VLLM_PROFILE * (BFLOAT16 * sizes.parameters + cache)
    share = least / machine.total
    if rollouts.vllm_memory >= share:
        return
    advice = (
        f"set it to {share + 0.05:.2f} or more, or lower rollouts.max_length"
        if share < 0.9
        else "choose a smaller base model"
    )
    given = format_bytes(round(rollouts.vllm_memory * machine.total))
    raise TrainingFailed(
        "vllm_memory",
        f"grpo.rollouts.vllm_memory: {rollouts.vllm_memory:g} gives vLLM {given} of {machine.name}; "
        f"the weights and the cache of one episode need {format_bytes(round(least))}: {advice}",
    )
