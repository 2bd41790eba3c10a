"""SFTTrainer without a GPU: the output head sees only the positions that are learnt.

TRL's fused head leaves out prompts and padding where Triton runs; elsewhere it scores every position, and a
small model then spends two fifths of its time on tokens that nobody asked about. The loss is the same.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import cross_entropy
from trl import SFTTrainer  # type: ignore[attr-defined]  # lazily exported

from trainer.fit import SMALL_VOCABULARY

# What some models do to their logits after the head (TRL's add_fused_lm_head lists them)
CHANGES_LOGITS = (
    "final_logit_softcapping",
    "logit_scale",
    "logits_scaling",
    "lm_head_multiplier",
    "output_multiplier",
)


def sft_trainer(model: Any) -> type[SFTTrainer]:
    """The trainer that is quickest for this model where it lies."""
    config = model.config.get_text_config()
    plain = all(getattr(config, name, None) is None for name in CHANGES_LOGITS)
    plain = plain and not getattr(config, "output_router_logits", False)
    small = config.vocab_size <= SMALL_VOCABULARY
    return CpuSftTrainer if model.device.type == "cpu" and plain and small else SFTTrainer


class CpuSftTrainer(SFTTrainer):
    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Mean negative log-likelihood of the learnt tokens; `num_items_in_batch` is their number in a whole step."""
        if return_outputs or not model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)  # type: ignore[no-untyped-call]
        labels = inputs["labels"][:, 1:]
        learnt = labels != -100
        causal = getattr(model, "get_base_model", lambda: model)()
        told = {name: value for name, value in inputs.items() if name != "labels"}
        hidden = causal.base_model(**told, use_cache=False).last_hidden_state[:, :-1]
        logits, wanted = causal.get_output_embeddings()(hidden[learnt]).float(), labels[learnt]
        count = learnt.sum() if num_items_in_batch is None else num_items_in_batch
        self._measure(logits.detach(), wanted, inputs)
        return cross_entropy(logits, wanted, reduction="sum") / torch.as_tensor(count).clamp(min=1)

    def _measure(self, logits: torch.Tensor, wanted: torch.Tensor, inputs: dict[str, Any]) -> None:
        """Entropy (nats), share of tokens that are the likeliest one, and tokens so far, where TRL logs them from."""
        found, count = self._metrics["train"], max(1, len(wanted))
        log_p = logits.log_softmax(-1)
        found["entropy"].append(-(log_p.exp() * log_p).sum().item() / count)
        found["mean_token_accuracy"].append((logits.argmax(-1) == wanted).sum().item() / count)
        seen = inputs["attention_mask"].sum() if "attention_mask" in inputs else inputs["position_ids"].numel()
        self._total_train_tokens += int(seen)
        found["num_tokens"] = [self._total_train_tokens]
