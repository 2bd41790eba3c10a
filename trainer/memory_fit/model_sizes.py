"""Measures a model without its weights: exact parameter counts, and the bytes that autograd keeps per token.

The model is built from its config on the meta device, and two of its layers run on fake tensors (shapes without
contents). Counting the bytes of their storages shows what is kept, for every architecture of transformers, with its
norms, adapters and casts. stages.py adds it up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.checkpoints import find_checkpoint
from orchestrator.errors import OrchestratorError
from pool_registry.errors import WorkerFault
from pool_registry.language_models.model_files import HUB, STARTER, model_path, starter_folder
from pool_registry.validation_words import describe_problems
from trainer.errors import TrainerError
from trainer.precision import choose_precision
from trainer.recipe_sections import LoraSettings, ModelSettings

FLOAT32 = 4  # bytes
TRACED_LENGTHS = (4096, 8192)  # tokens of the two traces; their difference gives the bytes of one token
TRACED_LAYERS = 2


@dataclass(frozen=True, slots=True)
class LinearSize:
    """Bytes as a linear function of tokens."""

    fixed: float
    per_token: float

    def bytes_for(self, tokens: float) -> int:
        return round(self.fixed + self.per_token * tokens)


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """The sizes of a model with its adapter, whose weights have one precision.

    Counts of parameters: `parameters` (all), `trainable`, `head`. Bytes: `weights` (without the adapter), `adapter`,
    `trained` (the trainable parameters), `kv_token` (the cache of one token in all layers), `width` (one number).
    Bytes by tokens: `layer` is what one decoder layer keeps for the backward pass (its fixed part: the bfloat16 copies
    of its weights that autocast makes), `rest` what the model keeps beside its layers, `backward` and `forward` the
    temporary peak of a layer in passes with and without gradients.
    """

    parameters: int
    trainable: int
    weights: int
    adapter: int
    trained: int
    head: int
    head_trained: bool
    tied: bool
    hidden: int
    vocabulary: int
    layers: int
    width: int
    kv_token: int
    layer: LinearSize
    rest: LinearSize
    backward: LinearSize
    forward: LinearSize


def measure_model(settings: ModelSettings, gpu: bool) -> ModelSizes:
    """Measure the model of a recipe. Raises TrainerError when its config is missing or cannot be traced."""
    reference, lora = settings.base, settings.lora.model_dump_json() if settings.lora else ""
    if settings.start:
        try:
            folder, manifest = find_checkpoint(settings.start)
        except OrchestratorError as error:
            raise TrainerError(f"model.start: {error}") from error
        reference = manifest.base if manifest.kind == "adapter" else str(folder)
        lora = _read_adapter(folder) if manifest.kind == "adapter" else lora
    try:
        # As learner.load_and_save does: weights that learn are float32, and bfloat16 is then autocast.
        bfloat16 = choose_precision(settings, gpu) == "bfloat16"
        precision = "bfloat16" if bfloat16 and lora else "float32"
        return _measure(read_config(reference), lora, precision, bfloat16 and (gpu or not lora))
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0][:300] if str(error).strip() else "no reason given"
        raise TrainerError(
            f"the memory of {reference} cannot be worked out ({type(error).__name__}: {reason}); "
            "start with a small batch and watch, or choose another base model"
        ) from error


def read_config(reference: str) -> str:
    """Read the config.json of a model reference; nothing else is read or fetched. Raises TrainerError."""
    if reference.startswith(HUB):
        return _fetch_hub_config(reference.removeprefix(HUB))
    if reference == STARTER and not starter_folder().exists():
        raise TrainerError(f"{STARTER} is not converted yet, so its size is unknown; run: podium prepare")
    try:
        folder = model_path(reference)
        return (folder / "config.json").read_text(encoding="utf-8")
    except (WorkerFault, OSError, UnicodeDecodeError) as error:
        raise TrainerError(f"the size of {reference} is unknown: {error}") from error


def _fetch_hub_config(repository: str) -> str:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return Path(hf_hub_download(repository, "config.json")).read_text(encoding="utf-8")
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        raise TrainerError(
            f"the size of hub:{repository} is unknown: its config.json is not in the local cache and cannot be fetched "
            f"({str(error).splitlines()[0][:200]}). Fetch the model once, or name a folder"
        ) from error


def _read_adapter(folder: Path) -> str:
    """Read the settings of an adapter on disk, as JSON of LoraSettings."""
    try:
        config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        return LoraSettings(
            rank=config["r"], alpha=config["lora_alpha"], targets=config["target_modules"]
        ).model_dump_json()
    except ValidationError as error:
        problem = describe_problems(error)
        raise TrainerError(f"model.start: {folder} holds no adapter that can be read: {problem}") from error
    except (OSError, ValueError, KeyError) as error:
        raise TrainerError(f"model.start: {folder} holds no adapter that can be read: {error}") from error


@lru_cache(maxsize=64)
def _measure(config_json: str, lora: str, precision: str, autocast: bool) -> ModelSizes:
    """Measure a model with weights of `precision`; with `autocast` products are bfloat16 whatever the weights are."""
    import torch

    model, layers = _build_model(config_json, lora, precision, None)
    text = model.config.get_text_config()
    named = list(model.named_parameters())  # lists a tied weight once
    base = [parameter for name, parameter in named if "lora_" not in name]
    adapter = [parameter for name, parameter in named if "lora_" in name]
    trained = [parameter for _, parameter in named if parameter.requires_grad]
    head = model.get_output_embeddings()
    width = getattr(torch, precision).itemsize
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    kept, rest, backward, forward = _trace_lengths(config_json, lora, precision, autocast)
    return ModelSizes(
        parameters=sum(parameter.numel() for parameter in [*base, *adapter]),
        trainable=sum(parameter.numel() for parameter in trained),
        weights=sum(parameter.nbytes for parameter in base),
        adapter=sum(parameter.nbytes for parameter in adapter),
        trained=sum(parameter.nbytes for parameter in trained),
        head=head.weight.numel(),
        head_trained=head.weight.requires_grad,
        tied=head.weight is model.get_input_embeddings().weight,
        hidden=text.hidden_size,
        vocabulary=head.weight.shape[0],
        layers=layers,
        width=width,
        kv_token=layers * 2 * heads * size * width,  # 2: keys and values
        layer=kept,
        rest=rest,
        backward=backward,
        forward=forward,
    )


def _build_model(config_json: str, lora: str, precision: str, only: int | None) -> tuple[Any, int]:
    """Build the model on the meta device, cut to at most `only` layers; return it with its real number of layers."""
    import torch

    # transformers puts another object in its place at the end of its import: `from transformers import` would look
    # into the first one where another thread imports it at this moment.
    transformers = import_module("transformers")
    document = json.loads(config_json)
    config = transformers.AutoConfig.for_model(**document)
    text = config.get_text_config()
    layers = int(text.num_hidden_layers)
    if only is not None and layers > only:
        text.num_hidden_layers = only
        if getattr(text, "layer_types", None):
            text.layer_types = text.layer_types[-only:]  # hybrid models have their full attention last
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(
            config,
            dtype=getattr(torch, precision),
            attn_implementation="sdpa" if only is None else _register_attention(),
        )
    if lora:
        from peft import LoraConfig, get_peft_model

        settings = LoraSettings.model_validate_json(lora)
        model = get_peft_model(
            model,
            LoraConfig(
                r=settings.rank,
                lora_alpha=settings.alpha,
                lora_dropout=settings.dropout,
                target_modules=settings.targets,
                task_type="CAUSAL_LM",
            ),
        )
    return model.train(), layers


# --- What autograd keeps ---


def _trace_lengths(
    config_json: str, lora: str, precision: str, autocast: bool
) -> tuple[LinearSize, LinearSize, LinearSize, LinearSize]:
    """Trace two lengths, which separates the bytes that grow with the tokens from the fixed ones."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    model, _ = _build_model(config_json, lora, precision, TRACED_LAYERS)
    with FakeTensorMode(allow_non_fake_inputs=True):
        model.to_empty(device="cpu")
        short, long = (_trace(model, tokens, autocast) for tokens in TRACED_LENGTHS)
    return tuple(_fit_line(below, above) for below, above in zip(short, long, strict=True))  # type: ignore[return-value]


def _fit_line(below: float, above: float) -> LinearSize:
    # Both are differences of counts, which can come out below 0; sizes cannot.
    slope = max(0.0, (above - below) / (TRACED_LENGTHS[1] - TRACED_LENGTHS[0]))
    return LinearSize(max(0.0, below - slope * TRACED_LENGTHS[0]), slope)


def _trace(model: Any, tokens: int, autocast: bool) -> tuple[float, float, float, float]:
    """Run one row of `tokens` through the model on fake tensors and count bytes.

    Returns four counts: what one layer keeps for the backward pass; what the model keeps beside its layers; the peak
    of the backward pass beyond everything kept; the peak of a forward pass without gradients.
    """
    import torch
    from transformers.modeling_layers import GradientCheckpointingLayer

    # Without the head: its logits are far larger than anything else, and the trainers never have them whole.
    backbone = getattr(whole := model.get_base_model() if hasattr(model, "peft_config") else model, "base_model", whole)
    blocks = [module for module in backbone.modules() if isinstance(module, GradientCheckpointingLayer)]
    if not blocks:
        raise TypeError(f"{type(whole).__name__} has no decoder layers that could be recomputed")
    casting = (lambda: torch.autocast("cpu", torch.bfloat16)) if autocast else nullcontext
    with _count_live_bytes() as counter:
        ids = torch.zeros(1, tokens, dtype=torch.long)
        # Live bytes before and after the last layer; their difference is what a layer adds. The last one, because
        # whatever the first layers share (rotary tables, masks) exists by then and is not counted again.
        marks: list[int] = []
        hooks = [blocks[-1].register_forward_pre_hook(lambda *_: marks.append(counter.live))]
        hooks += [blocks[-1].register_forward_hook(lambda *_: marks.append(counter.live))]
        start = counter.live
        with casting():
            output = backbone(input_ids=ids, use_cache=False).last_hidden_state
        for hook in hooks:
            hook.remove()
        # From here on the peak is that of the backward pass alone, with the gradients that exist at that moment.
        after = counter.reset_peak()
        output.backward(torch.empty_like(output))
        beyond = counter.peak - after
        # Let go of gradients and graph, so that the second pass starts from the weights alone.
        model.zero_grad(set_to_none=True)
        del output
        before = counter.reset_peak()
        with torch.no_grad(), casting():
            backbone(input_ids=ids, use_cache=False)
        reading = counter.peak - before
    layer = marks[1] - marks[0]
    return layer, max(0, after - start - len(blocks) * layer), max(0, beyond), reading


@contextmanager
def _count_live_bytes() -> Iterator[Any]:
    """Count the bytes of all storages that operations in the block create and release.

    Yields an object with `live` (bytes now), `peak`, and `reset_peak()`. Storages and not tensors are counted, because
    a view has no bytes of its own. Weights that existed before the block are never counted.
    """
    import weakref

    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class ByteCounter(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed
        live = peak = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            # An operation may return its input or a view of it: those storages are not new.
            inputs = {
                id(leaf.untyped_storage()) for leaf in tree_leaves((args, kwargs)) if hasattr(leaf, "untyped_storage")
            }
            results = func(*args, **(kwargs or {}))
            for leaf in tree_leaves(results):
                if hasattr(leaf, "untyped_storage"):
                    storage = leaf.untyped_storage()
                    if id(storage) not in inputs and id(storage) not in counted:
                        counted.add(id(storage))
                        self.live += storage.nbytes()
                        # Called when the storage is freed; not at exit, when torch may already be unloaded.
                        weakref.finalize(storage, self.release, id(storage), storage.nbytes()).atexit = False
            self.peak = max(self.peak, self.live)
            return results

        def release(self, key: int, size: int) -> None:
            counted.discard(key)  # the next storage may get the same id
            self.live -= size

        def reset_peak(self) -> int:
            self.peak = self.live
            return self.live

    counted: set[int] = set()
    with ByteCounter() as counter:
        yield counter


@lru_cache(maxsize=1)
def _register_attention() -> str:
    """Register an attention for traces and return its name.

    Like the fused kernels it keeps queries, keys, values, its output and one float32 per query, never the scores
    (FlashAttention, arXiv 2205.14135). Keys and values are repeated for every group of queries, as transformers does
    wherever there is a mask (integrations/sdpa_attention.py).
    """
    import torch
    from transformers.integrations.sdpa_attention import repeat_kv
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    class FusedAttention(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed
        @staticmethod
        def forward(ctx: Any, query: Any, key: Any, value: Any) -> Any:
            rows, heads, length, _ = query.shape
            # Laid out in memory as [rows, length, heads, size], which is what the kernels return
            output = query.new_empty(rows, length, heads, value.shape[-1]).transpose(1, 2)
            ctx.save_for_backward(query, key, value, output, query.new_empty(rows, heads, length, dtype=torch.float32))
            return output

        @staticmethod
        def backward(ctx: Any, _gradient: Any) -> Any:
            return tuple(torch.empty_like(tensor) for tensor in ctx.saved_tensors[:3])

    def attention(module: Any, query: Any, key: Any, value: Any, _mask: Any, **_: Any) -> tuple[Any, None]:
        groups = getattr(module, "num_key_value_groups", 1)
        output = FusedAttention.apply(query, repeat_kv(key, groups), repeat_kv(value, groups))
        return output.transpose(1, 2).contiguous(), None

    ALL_ATTENTION_FUNCTIONS.register("podium_trace", attention)
    return "podium_trace"
