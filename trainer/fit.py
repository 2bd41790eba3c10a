"""Will it fit? What a recipe needs in memory, episodes and money, told before its job starts.

No weights are loaded: anatomy.py takes the model apart by its config alone. What does not follow from that is
a formula here, with its source beside it.

Lengths are taken at their limit (sft.max_length, rollouts.max_length): most jobs need less than this says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.anatomy import FLOAT32, Anatomy, anatomy_of
from trainer.recipe import Lora, Recipe
from trainer.tasks.source import source_named

GB = 1_000_000_000
HEAD_ROWS, HEAD_COLUMNS = 4096, 32_768  # TRL's tile of logits: kernels/chunked_logprob.py, trainer/utils.py
CPU_TILES = 7.25  # float32 copies of it without Triton: y, z, log_p, p, grad, two on the way, a mask (_backward_tile)
SMALL_VOCABULARY = 65_536  # up to it a CPU makes whole logits (cpu_trainers.py)
PASS_TOKENS = 2_048  # and GRPO those of so many tokens at once
SFT_LOGITS = 4  # float32 copies of them then: the logits, their softmax, two on the way
GRPO_LOGITS = 3  # log-probabilities, their gradient, one on the way
CUDA_RUNTIME = 700_000_000  # context, cuBLAS workspaces, allocator's rounding: assumed, not measured
CPU_RUNTIME = 600_000_000  # a process that has imported torch, transformers, TRL and PEFT: 540 MiB measured
VLLM_CPU_CACHE = 2 * 1024**3  # VLLM_CPU_KVCACHE_SPACE of trainer/vllm_server.py
STEPS_WITHOUT_PLAN = 4
SAMPLE_TASKS = 40
TOKENS_IN, TOKENS_OUT = 500, 200  # assumed of one call, for prices by token
EVALUATED_ROWS = 16  # pool_registry.loaded_models.MAX_BATCH


class _Figures(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Part(_Figures):
    """One share of the memory at the moment when most is needed."""

    name: str
    bytes: int
    note: str = ""


class Fit(_Figures):
    """Memory in bytes; `need_bytes` is the sum of the parts. `cost` in US dollars, None where nothing has a price."""

    device: str
    parts: list[Part]
    need_bytes: int
    free_bytes: int
    fits: bool
    advice: list[str]
    episodes: int
    cost: float | None
    note: str


@dataclass(frozen=True, slots=True)
class Machine:
    """What a job would run on. Bytes; `gpu` is a CUDA card, else it is the computer's own memory."""

    name: str
    gpu: bool
    total: int
    free: int


def this_machine() -> Machine:
    """The first CUDA card with what is free on it now, else the computer with its available memory."""
    import psutil
    import torch

    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        return Machine(f"cuda: {torch.cuda.get_device_name()}", True, total, free)
    memory = psutil.virtual_memory()
    return Machine("cpu", False, memory.total, memory.available)


def estimate(recipe: Recipe, pool: Pool | None = None, machine: Machine | None = None) -> Fit:
    """What the recipe needs on `machine` (default: this one) and what its calls cost on `pool`.

    Raises TrainerError when the model's configuration cannot be had or the model cannot be worked out.
    """
    machine = machine or this_machine()
    stage, parts = _needed(recipe, machine)
    need = sum(part.bytes for part in parts)
    fits = need <= machine.free
    episodes = _episodes(recipe)
    cost, priced = _cost(recipe, pool, sum(episodes.values()))
    told = [
        f"the {stage} stage needs most",
        "lengths are taken at their limit, so most jobs need less",
        f"episodes: {', '.join(f'{count:,} for {name}' for name, count in episodes.items()) or 'none'}",
    ]
    return Fit(
        device=machine.name,
        parts=parts,
        need_bytes=need,
        free_bytes=machine.free,
        fits=fits,
        advice=[f"fits with {_gb(machine.free - need)} to spare"] if fits else _advice(recipe, machine, need),
        episodes=sum(episodes.values()),
        cost=cost,
        note="; ".join([*told, *priced]),
    )


# --- The stages ---


def _needed(recipe: Recipe, machine: Machine) -> tuple[str, list[Part]]:
    """The stage that needs most, and its parts."""
    anatomy = anatomy_of(recipe, machine.gpu)
    stages = {}
    if recipe.sft is not None:
        stages["sft"] = _sft(recipe, anatomy, machine)
    if recipe.grpo is not None:
        stages["grpo"] = _grpo(recipe, anatomy, machine)
    if not stages:
        stages["evaluate"] = _evaluation(anatomy, machine)
    return max(stages.items(), key=lambda stage: sum(part.bytes for part in stage[1]))


def _sft(recipe: Recipe, anatomy: Anatomy, machine: Machine) -> list[Part]:
    settings = recipe.sft
    assert settings is not None
    tokens = settings.batch * settings.max_length
    head = _head(anatomy, machine, tokens, whole=tokens * SFT_LOGITS)
    step = _training_step(recipe, anatomy, settings.batch, settings.max_length, settings.accumulation, head)
    return [*_standing(anatomy), *step, _runtime(machine)]


def _grpo(recipe: Recipe, anatomy: Anatomy, machine: Machine) -> list[Part]:
    """Episodes are sampled first, then the step is taken: the larger of the two counts."""
    settings = recipe.grpo
    assert settings is not None
    wanted = settings.rollouts
    episodes = wanted.prompts * wanted.group
    tokens = settings.micro_batch * wanted.max_length
    head = _head(anatomy, machine, tokens, whole=min(tokens, PASS_TOKENS) * GRPO_LOGITS)
    step = _training_step(
        recipe, anatomy, settings.micro_batch, wanted.max_length, episodes // settings.micro_batch, head
    )
    server, rollouts = _rollout_parts(recipe, anatomy, machine)
    taken, sampled = sum(part.bytes for part in step), sum(part.bytes for part in rollouts)
    if taken >= sampled:
        rollouts = [_within(part, "given back before the step") for part in rollouts]
    else:
        step = [_within(part, "fits into what sampling needs") for part in step]
    return [*_standing(anatomy), *_reference(recipe, anatomy), *server, *step, *rollouts, _runtime(machine)]


def _within(part: Part, why: str) -> Part:
    return Part(name=part.name, bytes=0, note=f"{_gb(part.bytes)}, {why}")


def _evaluation(anatomy: Anatomy, machine: Machine) -> list[Part]:
    """The base model and its cache; an evaluation of checkpoints of other models is not foreseen here."""
    cache = EVALUATED_ROWS * 2048 * anatomy.kv_token
    return [
        Part(name="weights", bytes=anatomy.weights, note=f"{anatomy.parameters:,} parameters"),
        Part(name="KV cache", bytes=cache, note=f"{EVALUATED_ROWS} rows of 2,048 tokens"),
        _runtime(machine),
    ]


def _standing(anatomy: Anatomy) -> list[Part]:
    """What is there all the time. AdamW keeps two moments per trained number, in that number's own precision
    (torch.optim.AdamW: zeros_like); nothing in this trainer keeps float32 master copies."""
    base = anatomy.parameters - anatomy.trainable if anatomy.adapter else anatomy.parameters
    return [
        Part(name="weights", bytes=anatomy.weights, note=f"{base:,} parameters of {anatomy.width} bytes"),
        Part(
            name="adapter",
            bytes=anatomy.adapter,
            note=f"{anatomy.trainable:,} parameters, kept in float32" if anatomy.adapter else "none",
        ),
        Part(name="optimizer", bytes=2 * anatomy.trained, note="AdamW's two moments, as precise as what they move"),
    ]


def _training_step(
    recipe: Recipe, anatomy: Anatomy, rows: int, length: int, accumulation: int, the_head: tuple[int, str]
) -> list[Part]:
    """The larger of two moments of a forward and backward pass over `rows` x `length` tokens.

    When the backward pass begins, all activations are there and no gradients yet (but those of earlier passes
    when there are several, and the head's); when it ends, all gradients and no activations.
    """
    tokens = rows * length
    layer = anatomy.layer.at(tokens) + _mask(rows, length, anatomy.width)
    kept, again, how = anatomy.layers * layer, 0, ""
    inputs = anatomy.layers * tokens * anatomy.hidden * anatomy.width
    if recipe.model.checkpointing and inputs + layer < kept:
        # Non-reentrant checkpointing: every layer keeps its input; later one layer at a time is computed again.
        kept, again, how = inputs, layer, ", recomputed"
    kept += anatomy.rest.at(tokens) + _shared_mask(rows, length)
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
            Part(name="gradients", bytes=earlier, note=when),
            Part(name="activations", bytes=kept, note=note),
            Part(
                name="workspace",
                bytes=max(head, inside),
                note=head_note if head >= inside else "one layer's backward pass",
            ),
        ]
    return [
        Part(name="gradients", bytes=anatomy.trained, note=f"{anatomy.trainable:,} numbers"),
        Part(name="activations", bytes=0, note=f"{note}: {_gb(kept)}, given back before the gradients end"),
        Part(name="workspace", bytes=ending - anatomy.trained, note="the embedding's and the first layer's gradients"),
    ]


def _mask(rows: int, length: int, width: int) -> int:
    """Rows of unequal length need a mask. scaled_dot_product_attention turns it into numbers in every layer, rows x
    length x length, and keeps them for the backward pass (convert_boolean_attn_mask in ATen's attention.cpp)."""
    return rows * length * length * width if rows > 1 else 0


def _shared_mask(rows: int, length: int) -> int:
    """The mask itself, one byte per entry, made once for all layers (transformers.masking_utils)."""
    return rows * length * length if rows > 1 else 0


def _head(anatomy: Anatomy, machine: Machine, tokens: int, whole: int) -> tuple[int, str]:
    """What the loss needs for a moment, if every token is learnt; `whole`: rows of logits where a CPU makes whole ones
    (cpu_trainers.py), with every copy."""
    if machine.gpu or anatomy.vocabulary > SMALL_VOCABULARY:
        return _tiled_head(anatomy, machine, tokens)
    hidden = tokens * anatomy.hidden * (FLOAT32 + anatomy.width)
    need = whole * anatomy.vocabulary * FLOAT32 + hidden + _head_gradients(anatomy)
    return need, f"logits of {tokens:,} tokens x {anatomy.vocabulary:,}"


def _tiled_head(anatomy: Anatomy, machine: Machine, tokens: int) -> tuple[int, str]:
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
    gradients += _head_gradients(anatomy)
    return tile + gradients, f"logits in tiles of {rows:,} tokens x {min(anatomy.vocabulary, HEAD_COLUMNS):,}"


def _head_gradients(anatomy: Anatomy) -> int:
    """In float32, and once more where the head is less precise."""
    if not anatomy.head_trained:
        return 0
    return anatomy.head * FLOAT32 + (anatomy.head * anatomy.width if anatomy.width != FLOAT32 else 0)


def _reference(recipe: Recipe, anatomy: Anatomy) -> list[Part]:
    """With a KL term TRL keeps the start: a second model, or without one a copy of an adapter that was there."""
    assert recipe.grpo is not None
    if recipe.grpo.loss.beta == 0:
        return [Part(name="reference model", bytes=0, note="no KL term (loss.beta is 0)")]
    if not anatomy.adapter:
        return [Part(name="reference model", bytes=anatomy.weights, note="the start, whole")]
    copied = anatomy.adapter if recipe.sft is not None or recipe.model.start else 0
    return [Part(name="reference model", bytes=copied, note="the base without its adapter, or with the first one")]


def _rollout_parts(recipe: Recipe, anatomy: Anatomy, machine: Machine) -> tuple[list[Part], list[Part]]:
    """What serves episodes all the time (a server), and what only while they are sampled."""
    assert recipe.grpo is not None
    wanted = recipe.grpo.rollouts
    share = round(wanted.vllm_memory * machine.total)
    if wanted.backend == "vllm" and wanted.vllm_url:
        return [Part(name="vLLM", bytes=0, note=f"runs elsewhere: {wanted.vllm_url}")], []
    if wanted.backend == "vllm" and not machine.gpu:
        held = anatomy.weights + VLLM_CPU_CACHE + CPU_RUNTIME
        return [Part(name="vLLM", bytes=held, note="a server of its own: weights, 2 GiB of cache, its runtime")], []
    if wanted.backend != "transformers":
        part = Part(name="vLLM", bytes=share, note=f"{wanted.vllm_memory:.0%} of {_gb(machine.total)}")
        return ([part], []) if wanted.backend == "vllm" else ([], [part])  # in this process it sleeps during the step
    rows = min(wanted.concurrency, wanted.prompts * wanted.group)
    tokens = rows * wanted.max_length
    # A layer's cache is concatenated anew for every token (DynamicCache): once more for one layer.
    cache = tokens * anatomy.kv_token * (anatomy.layers + 1) // anatomy.layers
    # Reading the prompts: one layer's forward pass and its mask; then float32 logits of the last token, scaled,
    # softmaxed, and for top_p sorted with their places (8 bytes each).
    reading = anatomy.forward.at(tokens) + _mask(rows, wanted.max_length, anatomy.width)
    reading += _shared_mask(rows, wanted.max_length)
    drawing = rows * anatomy.vocabulary * (3 * FLOAT32 + (2 * FLOAT32 + 8 if wanted.top_p < 1 else 0))
    what = f"{rows} rows of {wanted.max_length:,} tokens"
    return [], [
        Part(name="KV cache", bytes=cache, note=what),
        Part(name="reading prompts", bytes=max(reading, drawing), note=f"one layer over {what}"),
    ]


def _runtime(machine: Machine) -> Part:
    if machine.gpu:
        return Part(name="runtime", bytes=CUDA_RUNTIME, note="CUDA, its libraries and what the allocator rounds up")
    return Part(name="runtime", bytes=CPU_RUNTIME, note="Python with torch, transformers and TRL")


# --- Advice ---


def _advice(recipe: Recipe, machine: Machine, need: int) -> list[str]:
    """Edits that need less, what frees most first, each measured on its own; a set of them where none is enough."""
    found = []
    for change in EDITS:
        if (edit := change(recipe)) is None:
            continue
        text, edited = edit
        freed = need - sum(part.bytes for part in _needed(edited, machine)[1])
        if freed > 0:
            found.append((freed, text, change))
    found.sort(key=lambda each: -each[0])
    lines = [
        f"{text} frees {_gb(freed)}{'; then it fits' if need - freed <= machine.free else ''}"
        for freed, text, _ in found
    ]
    if found and need - found[0][0] <= machine.free:
        return lines
    return [*lines, _together(recipe, machine)]


def _together(recipe: Recipe, machine: Machine) -> str:
    """Edit after edit, always the one that frees most, until it fits or none frees anything."""
    need = sum(part.bytes for part in _needed(recipe, machine)[1])
    texts: dict[Callable[[Recipe], Edit], str] = {}
    while need > machine.free:
        tried = [(change, edit) for change in EDITS if (edit := change(recipe)) is not None]
        needs = [sum(part.bytes for part in _needed(edit[1], machine)[1]) for _, edit in tried]
        if not needs or min(needs) >= need:
            return f"at least {_gb(need)} are needed: choose a smaller base model or a machine with more memory"
        need = min(needs)
        change, (text, recipe) = tried[needs.index(need)]
        texts[change] = text
    return f"to make it fit: {'; '.join(texts.values())} ({_gb(machine.free - need)} to spare)"


Edit = tuple[str, Recipe] | None


def _halve_sft(recipe: Recipe) -> Edit:
    if (sft := recipe.sft) is None or sft.batch == 1:
        return None
    half = sft.batch // 2
    accumulation = min(4096, math.ceil(sft.accumulation * sft.batch / half))
    edited = sft.model_copy(update={"batch": half, "accumulation": accumulation})
    return f"sft.batch: {half} with sft.accumulation: {accumulation}", recipe.model_copy(update={"sft": edited})


def _halve_grpo(recipe: Recipe) -> Edit:
    if (grpo := recipe.grpo) is None or grpo.micro_batch == 1:
        return None
    episodes = grpo.rollouts.prompts * grpo.rollouts.group
    half = next(size for size in range(grpo.micro_batch // 2, 0, -1) if episodes % size == 0)
    edited = grpo.model_copy(update={"micro_batch": half})
    return f"grpo.micro_batch: {half}", recipe.model_copy(update={"grpo": edited})


def _halve_concurrency(recipe: Recipe) -> Edit:
    grpo = recipe.grpo
    if grpo is None or grpo.rollouts.backend != "transformers":
        return None
    rows = min(grpo.rollouts.concurrency, grpo.rollouts.prompts * grpo.rollouts.group) // 2
    return _rollouts(recipe, "concurrency", rows, f"grpo.rollouts.concurrency: {rows}") if rows else None


def _halve_vllm(recipe: Recipe) -> Edit:
    if recipe.grpo is None or recipe.grpo.rollouts.backend == "transformers":
        return None
    share = recipe.grpo.rollouts.vllm_memory / 2
    return _rollouts(recipe, "vllm_memory", share, f"grpo.rollouts.vllm_memory: {share:g}")


def _rollouts(recipe: Recipe, key: str, value: float, text: str) -> Edit:
    assert recipe.grpo is not None
    rollouts = recipe.grpo.rollouts.model_copy(update={key: value})
    return text, recipe.model_copy(update={"grpo": recipe.grpo.model_copy(update={"rollouts": rollouts})})


def _model(key: str, before: object, after: object, text: str) -> Callable[[Recipe], Edit]:
    def change(recipe: Recipe) -> Edit:
        if getattr(recipe.model, key) != before:
            return None
        return text, recipe.model_copy(update={"model": recipe.model.model_copy(update={key: after})})

    return change


EDITS: tuple[Callable[[Recipe], Edit], ...] = (  # those of trainer/runner.py, and fewer episodes at a time
    _halve_sft,
    _halve_grpo,
    _halve_concurrency,
    _model("checkpointing", False, True, "model.checkpointing: true"),
    _model("precision", "float32", "bfloat16", "model.precision: bfloat16"),
    _model("lora", None, Lora(), "model.lora: {} (an adapter instead of every weight)"),
    _halve_vllm,
)


# --- Episodes and what they cost ---


def _episodes(recipe: Recipe) -> dict[str, int]:
    """Episodes by purpose, without those drawn anew. An evaluation with no list measures the start and every stage."""
    counts: dict[str, int] = {}
    if (sft := recipe.sft) is not None:
        counts["demonstrations"] = recipe.tasks.count * sft.demonstrations.samples
    if (grpo := recipe.grpo) is not None:
        batches = math.ceil(grpo.steps / grpo.loss.iterations)
        counts["rollouts"] = batches * grpo.rollouts.prompts * grpo.rollouts.group
    checks = 0
    for stage in (recipe.sft, recipe.grpo):
        if stage is not None:
            checks += math.ceil(stage.steps / stage.saving.every) * stage.saving.check_tasks
    if checks:
        counts["checks"] = checks
    if (wanted := recipe.evaluate) is not None:
        counts["evaluation"] = wanted.count * (len(wanted.orchestrators) or len(recipe.stages))
    return counts


def _cost(recipe: Recipe, pool: Pool | None, episodes: int) -> tuple[float | None, list[str]]:
    """US dollars: episodes x expected steps x the mean price of a call, every enabled worker called equally often."""
    workers = pool.enabled if pool is not None else ()
    prices = [_price(spec) for spec in workers]
    if not any(prices):
        return None, []
    steps, source = _steps(recipe)
    cost = episodes * steps * sum(prices) / len(prices)
    told = [
        f"cost: {steps:.1f} steps per episode ({source}), every worker called equally often, "
        f"{TOKENS_IN} tokens in and {TOKENS_OUT} out per call"
    ]
    if recipe.grpo is not None and recipe.grpo.rollouts.mixed_only and recipe.grpo.rollouts.redraws:
        told.append(f"rollouts may be up to {1 + recipe.grpo.rollouts.redraws:g} times as many with redraws")
    if recipe.sft is not None and recipe.sft.demonstrations.teacher.startswith("model:"):
        told.append("the teacher's own tokens are not counted")
    return cost, told


def _price(spec: WorkerSpec) -> float:
    """US dollars per call."""
    return spec.price_call + (spec.price_in * TOKENS_IN + spec.price_out * TOKENS_OUT) / 1_000_000


def _steps(recipe: Recipe) -> tuple[float, str]:
    """Mean length of the reference plans of the recipe's first tasks, and where it comes from."""
    tasks = source_named(recipe.tasks.source).tasks(
        "train", min(recipe.tasks.count, SAMPLE_TASKS), levels=recipe.tasks.levels
    )
    lengths = [len(task.oracle_turn.steps) for task in tasks if task.oracle_turn is not None]
    if not lengths:
        return float(STEPS_WITHOUT_PLAN), "assumed"
    return sum(lengths) / len(lengths), f"mean of {len(lengths)} reference plans"


def _gb(size: int) -> str:
    return f"{size / GB:.1f} GB" if abs(size) >= GB / 10 else f"{size / 1_000_000:.0f} MB"
