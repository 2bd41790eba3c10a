"""What TRL's trainers share on a CPU, where no time is spent on tokens that carry no loss. The losses are the same.

TRL's fused head leaves out prompts and padding where Triton runs; elsewhere it computes logits for every position,
and a small model then spends two fifths of its time on tokens without a label.

Shapes below: `rows` sequences of `tokens` tokens, `hidden` numbers per token, `learnt` tokens with a loss in all rows
together, `vocabulary` logits per token.
"""

from __future__ import annotations

from typing import Any

import torch

from trainer.learner.ranks import count_ranks
from trainer.memory_fit.stages import SMALL_VOCABULARY

# Settings by which some models change their logits after the head (the list of TRL's add_fused_lm_head)
LOGIT_TRANSFORMS = (
    "final_logit_softcapping",
    "logit_scale",
    "logits_scaling",
    "lm_head_multiplier",
    "output_multiplier",
)

# Models whose tokens meet in attention alone, through transformers' AttentionInterface
PLAIN_ATTENTION = ("llama", "qwen2", "qwen3", "smollm3")


def is_plain_on_cpu(model: Any) -> bool:
    """Whether logits are the head's product with the hidden states, and small enough to be computed whole.

    Never where several processes train: they join their gradients in the model's own forward, which is left out here.
    """
    config = model.config.get_text_config()
    plain = all(getattr(config, name, None) is None for name in LOGIT_TRANSFORMS)
    plain = plain and not getattr(config, "output_router_logits", False)  # mixtures of experts add a router loss
    plain = (
        plain and type(model.get_output_embeddings()) is torch.nn.Linear and model.get_output_embeddings().bias is None
    )
    return count_ranks() == 1 and model.device.type == "cpu" and plain and config.vocab_size <= SMALL_VOCABULARY


def compute_states(model: Any, learnt: torch.Tensor, **inputs: Any) -> tuple[torch.Tensor, Any]:
    """Run the model without its head.

    `learnt` [rows, tokens] marks the tokens with a loss. Returns the hidden states [learnt, hidden] that predict
    them, and the head that turns hidden states into logits.
    """
    causal = getattr(model, "get_base_model", lambda: model)()  # PEFT wraps the model; its adapters stay active
    # The state at position t predicts the token at t + 1: the last state and the first label have no partner.
    hidden = causal.base_model(**inputs, use_cache=False).last_hidden_state[:, :-1]
    return hidden[learnt[:, 1:]], causal.get_output_embeddings()


def can_share_openings(model: Any) -> bool:
    """Whether rows may stand in one sequence: every token sees all before it, and nothing else joins tokens."""
    config = model.config.get_text_config()
    full = all(kind == "full_attention" for kind in getattr(config, "layer_types", None) or [])
    return config.model_type in PLAIN_ATTENTION and full and not getattr(config, "attention_dropout", 0)
