"""TRL's trainers without a GPU: no time goes into tokens that nobody learns from.

TRL's fused head leaves out prompts and padding where Triton runs; elsewhere it scores every position, and a
small model then spends two fifths of its time on tokens that nobody asked about. GRPO also pads every episode
of a step to the longest prompt and the longest completion; here episodes of like lengths go through the model
together. The losses are the same.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint
from trl import GRPOTrainer, SFTTrainer  # type: ignore[attr-defined]  # lazily exported

from trainer.memory_fit.stages import PASS_TOKENS, SMALL_VOCABULARY

# What some models do to their logits after the head (TRL's add_fused_lm_head lists them)
LOGIT_TRANSFORMS = (
    "final_logit_softcapping",
    "logit_scale",
    "logits_scaling",
    "lm_head_multiplier",
    "output_multiplier",
)


def choose_sft_trainer(model: Any) -> type[SFTTrainer]:
    """The trainer that is quickest for this model where it lies."""
    return CpuSftTrainer if _is_plain_on_cpu(model) else SFTTrainer


def choose_grpo_trainer(model: Any) -> type[GRPOTrainer]:
    """The trainer that is quickest for this model where it lies."""
    return CpuGrpoTrainer if _is_plain_on_cpu(model) else GRPOTrainer


def _is_plain_on_cpu(model: Any) -> bool:
    """Whether logits are the head's product with the hidden states, and small enough to be made whole."""
    config = model.config.get_text_config()
    plain = all(getattr(config, name, None) is None for name in LOGIT_TRANSFORMS)
    plain = plain and not getattr(config, "output_router_logits", False)
    return model.device.type == "cpu" and plain and config.vocab_size <= SMALL_VOCABULARY


def _compute_states(model: Any, learnt: torch.Tensor, **told: Any) -> tuple[torch.Tensor, Any]:
    """Hidden states [learnt tokens, hidden] that predict the tokens where `learnt` [rows, tokens] is true, and the
    head that makes logits of them."""
    causal = getattr(model, "get_base_model", lambda: model)()
    hidden = causal.base_model(**told, use_cache=False).last_hidden_state[:, :-1]
    return hidden[learnt[:, 1:]], causal.get_output_embeddings()


class CpuSftTrainer(SFTTrainer):
    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Mean negative log-likelihood of the learnt tokens; `num_items_in_batch` is their number in a whole step."""
        if return_outputs or not model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)  # type: ignore[no-untyped-call]
        labels = inputs["labels"]
        told = {name: value for name, value in inputs.items() if name != "labels"}
        states, head = _compute_states(model, labels != -100, **told)
        logits, wanted = head(states).float(), labels[:, 1:][labels[:, 1:] != -100]
        count = len(wanted) if num_items_in_batch is None else num_items_in_batch
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


class CpuGrpoTrainer(GRPOTrainer):
    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,  # noqa: ARG002
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,  # noqa: ARG002
        **_images: None,
    ) -> tuple[torch.Tensor, torch.Tensor | None, None]:
        """Log-probabilities and entropies (nats, without gradients) [rows, logits_to_keep]; 0 where padding is."""
        seen = attention_mask.bool()
        scored = seen.clone()
        scored[:, :-logits_to_keep] = False
        found = []
        for rows in _plan_passes(seen.sum(1)):
            ids, learnt, mask = (
                pad_sequence([each[row][seen[row]] for row in rows], batch_first=True)
                for each in (input_ids, scored, attention_mask)
            )
            states, head = _compute_states(model, learnt, input_ids=ids, attention_mask=mask)
            wanted = ids[:, 1:][learnt[:, 1:]]
            # Made again in the backward pass: there are never more logits than one pass has.
            scores = checkpoint(_score_tokens, head, states, wanted, self.temperature, use_reentrant=False)
            row, token = scored[rows].nonzero(as_tuple=True)
            found.append((rows[row] * scored.shape[1] + token, *scores))
        places, log_p, entropies = (torch.cat(each) for each in zip(*found, strict=True))

        def laid_out(values: torch.Tensor) -> torch.Tensor:
            flat = values.new_zeros(scored.numel()).scatter(0, places, values)
            return flat.view(scored.shape)[:, -logits_to_keep:]

        return laid_out(log_p), laid_out(entropies) if compute_entropy else None, None


def _plan_passes(lengths: torch.Tensor) -> list[torch.Tensor]:
    """Rows of like lengths (tokens) together, as many as fit into PASS_TOKENS with their padding."""
    passes: list[list[int]] = []
    for row in lengths.argsort().tolist():
        if not passes or (len(passes[-1]) + 1) * int(lengths[row]) > PASS_TOKENS:
            passes.append([])
        passes[-1].append(row)
    return [torch.tensor(rows) for rows in passes]


def _score_tokens(
    head: Any, states: torch.Tensor, wanted: torch.Tensor, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability of each wanted token and entropy (nats, without gradients) of its place."""
    log_p = (head(states).float() / temperature).log_softmax(-1)
    entropy = -(log_p.detach().exp() * log_p.detach()).sum(-1)
    return log_p.gather(-1, wanted[:, None])[:, 0], entropy
