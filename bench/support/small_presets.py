"""Presets at toy size: the same recipe on a two-layer model of the same architecture with random weights, and small
counts. For tests and for bench/gpu.py on a machine without a GPU.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pool_registry.language_models.model_files import model_path
from trainer.methods.grpo.method import GRPO
from trainer.methods.grpo.section import GrpoSettings, PhaseSettings
from trainer.methods.sft.method import SFT
from trainer.methods.sft.section import SftSettings
from trainer.recipe import Recipe
from trainer.recipe_sections import EvaluateSettings, SavingSettings

LONGER = 4  # times as many tokens for the same text: the small tokenizer has 2 thousand words instead of 150
ARCHITECTURES = {"Qwen3": "qwen3", "Qwen2.5": "qwen2", "starter": "llama"}


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The size of a transformer, in the words of its config.json."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int


TWO_LAYERS = ModelShape(64, 128, 2, 2, 1, head_dim=32)  # vLLM's attention on a CPU knows no smaller head


def make_small_base(
    folder: Path, reference: str, seed: int = 0, shape: ModelShape = TWO_LAYERS, vocabulary: int | None = None
) -> Path:
    """Write a random model of the architecture that `reference` has, with the tokenizer of starter:tiny.

    Its weights are bfloat16, as those of models on the Hub are. `vocabulary`: words of the model, the tokenizer's by
    default.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path("starter:tiny"), trust_remote_code=False)
    config = make_config(reference, shape, tokenizer, vocabulary)
    torch.manual_seed(seed)
    AutoModelForCausalLM.from_config(config).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_config(reference: str, shape: ModelShape, tokenizer: Any, vocabulary: int | None = None) -> Any:
    """The configuration of a model of this shape, with the architecture that `reference` has. Raises TypeError for
    anything else: transformers takes unknown words, and would build a model of its own size."""
    from transformers import AutoConfig

    if not isinstance(shape, ModelShape):
        raise TypeError(f"a shape is a ModelShape, not {type(shape).__name__}")
    return AutoConfig.for_model(
        find_architecture(reference),
        **asdict(shape),
        vocab_size=vocabulary or len(tokenizer),
        max_position_embeddings=131_072,
        tie_word_embeddings="7B" not in reference,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )


def find_architecture(reference: str) -> str:
    return next(kind for word, kind in ARCHITECTURES.items() if word in reference)


def shrink_recipe(recipe: Recipe, base: Path) -> Recipe:
    """The recipe on the model in `base`, with two steps of every stage and one of every phase, a few episodes and one
    task to evaluate."""
    model = recipe.model.model_copy(update={"base": str(base), "start": "", "turn_tokens": 24})
    sft, grpo = SFT.read(recipe), GRPO.read(recipe)
    return recipe.model_copy(
        update={
            "model": model,
            "tasks": recipe.tasks.model_copy(update={"count": 12}),
            "sft": sft and _shrink_sft(sft),
            "grpo": grpo and _shrink_grpo(grpo),
            "evaluate": recipe.evaluate and _shrink_evaluation(recipe.evaluate),
            "threads": 1,
        }
    )


def _shrink_sft(settings: SftSettings) -> SftSettings:
    demonstrations = settings.demonstrations.model_copy(update={"samples": 1, "variants": 0})
    passes = min(2, settings.accumulation)
    changes: dict[str, Any] = {"steps": 2, "batch": 2, "accumulation": passes, "demonstrations": demonstrations}
    changes |= {"max_length": LONGER * settings.max_length, "saving": _shrink_saving(settings.saving)}
    return settings.model_copy(update=changes)


def _shrink_grpo(settings: GrpoSettings) -> GrpoSettings:
    longest = LONGER * settings.rollouts.max_length
    rollouts = settings.rollouts.model_copy(update={"prompts": 2, "group": 2, "max_length": longest})
    changes = {"steps": 2, "micro_batch": 2, "rollouts": rollouts, "saving": _shrink_saving(settings.saving)}
    return settings.model_copy(update=changes | {"phases": tuple(map(_shrink_phase, settings.phases))})


def _shrink_phase(phase: PhaseSettings) -> PhaseSettings:
    tasks = phase.tasks and phase.tasks.model_copy(update={"count": 12})
    return phase.model_copy(update={"steps": 1, "tasks": tasks})


def _shrink_saving(settings: SavingSettings) -> SavingSettings:
    return settings.model_copy(update={"every": 2, "check_tasks": min(1, settings.check_tasks)})


def _shrink_evaluation(settings: EvaluateSettings) -> EvaluateSettings:
    return settings.model_copy(update={"count": 1})
