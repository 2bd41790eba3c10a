"""vLLM inside the trainer's process, through TRL: what the platform decides, and how weights get there unrounded.

TRL builds the engine and offers no setting for CUDA graphs. It merges an adapter into its base to hand the weights over
and subtracts it again afterwards, which in bfloat16 changes the base a little in every step.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pool_registry.language_models.completion import Grammar
from trainer.errors import TrainingFailed


def check_vllm_is_here() -> None:
    """Raise TrainingFailed where vLLM is not installed."""
    if find_spec("vllm") is None:
        raise TrainingFailed(
            "vllm",
            "vLLM is not installed here: set rollouts.backend: transformers, which needs nothing else, or see "
            "docs/train.md for how to install vLLM",
        )


@contextmanager
def follow_platform(gpu: bool, eager: bool) -> Iterator[None]:
    """While the block runs, TRL builds its engine for this platform: on a CPU without CUDA graphs (`eager`), in this
    process, and with products that see new weights."""
    module: Any = import_module("trl.generation.vllm_generation")
    build = module.LLM

    def build_here(**options: Any) -> Any:
        return build(**options, enforce_eager=eager or not gpu)

    module.LLM = build_here
    try:
        if not gpu:
            os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
            os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
            _multiply_unpacked()
            _pass_over_foreign_namespaces()
        yield
    finally:
        module.LLM = build


def _multiply_unpacked() -> None:
    """Keep vLLM on a CPU from packing weights once: its products would not see those that training sends later."""
    import torch

    def leave_unpacked(layer: Any, remove_weight: bool) -> None:  # noqa: ARG001  vLLM's own signature
        layer.cpu_linear = torch.nn.functional.linear

    utils: Any = import_module("vllm.model_executor.layers.utils")
    utils.dispatch_cpu_unquantized_gemm = leave_unpacked


def _pass_over_foreign_namespaces() -> None:
    """vLLM on a CPU looks through all loaded modules, and stumbles over objects whose `__dict__` is no dictionary."""
    dispatcher: Any = import_module("vllm.triton_utils.dispatcher")
    dispatcher.vars = lambda value: names if isinstance(names := vars(value), Mapping) else {}


def generate_held(
    trainer: Any, prompts: list[list[int]], grammar: Grammar | None
) -> tuple[list[list[int]], list[list[float]] | None]:
    """Have TRL's engine continue prompts, all held to one grammar: TRL has one setting for every row of a call."""
    engine = trainer.vllm_generation
    usual = engine.generation_kwargs
    if grammar is not None:
        engine.generation_kwargs = {**(usual or {}), "structured_outputs": {"grammar": grammar.lark}}
    try:
        made: tuple[list[list[int]], list[list[float]] | None] = trainer._generate_single_turn(prompts, None, {}, 1)  # noqa: SLF001
        return made
    finally:
        engine.generation_kwargs = usual


def send_exact_weights(trainer: Any) -> None:
    """Let the trainer hand merged weights to vLLM, one at a time, without changing its base."""
    engine = trainer.vllm_generation
    if hasattr(engine.model, "peft_config"):
        engine._iter_named_params = lambda: merge_weights(engine.model)  # noqa: SLF001


def merge_weights(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the weights of a model with a LoRA adapter as those of a model without: (name, tensor)."""
    import torch
    from peft.tuners.lora import LoraLayer

    layers: dict[str, Any] = {name: module for name, module in model.named_modules() if isinstance(module, LoraLayer)}
    for name, weight in model.named_parameters():
        if model.prefix in name:
            continue
        value = weight.data
        layer = layers.get(name.removesuffix(".base_layer.weight"))
        if layer is not None and name.endswith(".base_layer.weight"):
            with torch.no_grad():
                for adapter in layer.active_adapters:
                    value = (value.float() + layer.get_delta_weight(adapter).float()).to(weight.dtype)
        yield name.removeprefix("base_model.model.").replace(".base_layer", ""), value
