"""TRL's trainers for a CPU: no time is spent on tokens that carry no loss. The losses are the same.

TRL's fused head leaves out prompts and padding where Triton runs; elsewhere it computes logits for every position,
and a small model then spends two fifths of its time on tokens without a label. GRPO also pads every episode of a step
to the longest prompt plus the longest completion; here episodes of similar lengths go through the model together.

Shapes below: `rows` sequences of `tokens` tokens, `hidden` numbers per token, `learnt` tokens with a loss in all rows
together, `vocabulary` logits per token.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch.nn.functional import nll_loss
from torch.nn.utils.rnn import pad_sequence
from trl import GRPOTrainer, SFTTrainer  # type: ignore[attr-defined]  # lazily exported

from pool_registry.load_once import LoadOnce
from trainer.learner.cpu_kernels import find_trees, speed_up_adapters, tree_attention
from trainer.learner.held_tokens import HeldCompletions, list_end_tokens, open_compiler, pack_masks
from trainer.learner.ranks import count_ranks
from trainer.learner.shared_openings import FamilySampler, collate_trees
from trainer.learner.token_scores import TokenScores
from trainer.memory_fit.stages import PASS_TOKENS, SMALL_VOCABULARY

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


def choose_sft_trainer(model: Any) -> type[SFTTrainer]:
    """Choose the fastest trainer for this model on its device."""
    return CpuSftTrainer if _is_plain_on_cpu(model) else SFTTrainer


def choose_grpo_trainer(model: Any) -> type[GRPOTrainer]:
    """Choose the fastest trainer for this model on its device."""
    return CpuGrpoTrainer if _is_plain_on_cpu(model) else GRPOTrainer


def _is_plain_on_cpu(model: Any) -> bool:
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


def _compute_states(model: Any, learnt: torch.Tensor, **inputs: Any) -> tuple[torch.Tensor, Any]:
    """Run the model without its head.

    `learnt` [rows, tokens] marks the tokens with a loss. Returns the hidden states [learnt, hidden] that predict
    them, and the head that turns hidden states into logits.
    """
    causal = getattr(model, "get_base_model", lambda: model)()  # PEFT wraps the model; its adapters stay active
    # The state at position t predicts the token at t + 1: the last state and the first label have no partner.
    hidden = causal.base_model(**inputs, use_cache=False).last_hidden_state[:, :-1]
    return hidden[learnt[:, 1:]], causal.get_output_embeddings()


def _can_share_openings(model: Any) -> bool:
    """Whether rows may stand in one sequence: every token sees all before it, and nothing else joins tokens."""
    config = model.config.get_text_config()
    full = all(kind == "full_attention" for kind in getattr(config, "layer_types", None) or [])
    return config.model_type in PLAIN_ATTENTION and full and not getattr(config, "attention_dropout", 0)


class CpuSftTrainer(SFTTrainer):
    """SFTTrainer that computes logits for labelled tokens only, and what several rows begin with only once.

    An adapter's model may be bfloat16: its products run in it, while the adapter itself stays float32.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._trees = _can_share_openings(self.model) and not self.args.packing
        # Tree attention is over when layers are computed again.
        self._trees = self._trees and not self.args.gradient_checkpointing
        speed_up_adapters(self.model)

    def get_train_dataloader(self) -> Any:
        """Pack the rows of a batch, where the model allows it."""
        usual = self.data_collator  # type: ignore[has-type]  # set by the trainer
        self.data_collator = collate_trees if self._trees else usual
        try:
            return super().get_train_dataloader()
        finally:
            self.data_collator = usual

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        """Draw rows with a long common opening together, where a batch can share it."""
        rows = self.train_dataset if train_dataset is None else train_dataset
        if not self._trees:
            return super()._get_train_sampler(train_dataset)
        pairs = list(zip(rows["input_ids"], rows["labels"], strict=True))
        sampler = FamilySampler(pairs, self.args.train_batch_size, self.args.data_seed or self.args.seed)
        return sampler if len(sampler.families) < len(pairs) else super()._get_train_sampler(train_dataset)

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Compute the mean negative log-likelihood of the labelled tokens, in nats.

        `num_items_in_batch` is their number in the whole optimizer step: with gradient accumulation the losses of
        its batches then add up to the mean over the step.
        """
        if return_outputs or not model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)  # type: ignore[no-untyped-call]
        labels = inputs["labels"]
        without_labels = {name: value for name, value in inputs.items() if name != "labels"}
        spans = without_labels.pop("spans", None)
        attention = nullcontext() if spans is None else tree_attention(model.config.get_text_config())
        with attention, self.accelerator.autocast():  # which accelerate puts around the model's own forward alone
            if spans is not None:
                # A mask of any kind keeps the model from making its own.
                without_labels |= {"trees": find_trees(spans), "attention_mask": torch.zeros(1, 1, 1, 1)}
            states, head = _compute_states(model, labels != -100, **without_labels)  # -100: no loss, as in transformers
            logits = head(states)
        # float32 also for a bfloat16 model: the softmax over the vocabulary needs the precision.
        log_p, targets = logits.float().log_softmax(-1), labels[:, 1:][labels[:, 1:] != -100]
        count = len(targets) if num_items_in_batch is None else num_items_in_batch
        self._record_metrics(log_p.detach(), targets, inputs)
        return nll_loss(log_p, targets, reduction="sum") / torch.as_tensor(count).clamp(min=1)

    def _record_metrics(self, log_p: torch.Tensor, targets: torch.Tensor, inputs: dict[str, Any]) -> None:
        """Store what TRL logs: entropy (nats), share of tokens that were the most likely one, tokens so far."""
        metrics, count = self._metrics["train"], max(1, len(targets))
        metrics["entropy"].append(-torch.linalg.vecdot(log_p.exp(), log_p).sum().item() / count)
        metrics["mean_token_accuracy"].append((log_p.argmax(-1) == targets).sum().item() / count)
        # Packed batches come without a mask: every position is a token.
        tokens = inputs["attention_mask"].sum() if "attention_mask" in inputs else inputs["position_ids"].numel()
        self._total_train_tokens += int(tokens)
        metrics["num_tokens"] = [self._total_train_tokens]


class CpuGrpoTrainer(GRPOTrainer):
    """GRPOTrainer that scores completions in passes of similar lengths, without the padding of the whole step."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        speed_up_adapters(self.model, samples=True)
        self._own_tokens: torch.Tensor | None = None
        self.held: HeldCompletions = {}  # of the present step, set with its episodes
        self._compiler = LoadOnce(self._open_compiler)

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        """Compute TRL's loss, with the model's own tokens scored alone: it masks what workers wrote."""
        self._own_tokens = inputs.get("tool_mask")
        try:
            return super()._compute_loss(model, inputs)  # type: ignore[no-untyped-call]
        finally:
            self._own_tokens = None

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,  # noqa: ARG002  TRL's own signature
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,  # noqa: ARG002
        **_images: None,
    ) -> tuple[torch.Tensor, torch.Tensor | None, None]:
        """Compute log-probabilities and entropies (nats, without gradients) of the completions; 0 at padding.

        `input_ids` and `attention_mask` are [rows, tokens]: prompts padded on the left, completions on the right.
        The last `logits_to_keep` columns are the completions. Both results are [rows, logits_to_keep].
        """
        present = attention_mask.bool()
        begins = input_ids.shape[1] - logits_to_keep
        scored = present.clone()
        scored[:, :-logits_to_keep] = False
        if self._own_tokens is not None:
            scored[:, -logits_to_keep:] &= self._own_tokens.bool()
        passes = []
        for rows in _plan_passes(present.sum(1)):
            # Cut the padding of the step off each row, and pad it again on the right to the longest row of this pass.
            ids, learnt, mask = (
                pad_sequence([tensor[row][present[row]] for row in rows], batch_first=True)
                for tensor in (input_ids, scored, attention_mask)
            )
            targets = ids[:, 1:][learnt[:, 1:]]
            with self.accelerator.autocast():  # which accelerate puts around the model's own forward alone
                states, head = _compute_states(model, learnt, input_ids=ids, attention_mask=mask)
                # The temperature is that of sampling: the policy whose ratio GRPO clips is the one that sampled.
                completions = (input_ids[:, begins:], present[:, begins:], scored[:, begins:])
                allowed = self._find_allowed(rows, *completions, vocabulary=len(head.weight))
                scores = TokenScores.apply(states, head.weight, targets, self.temperature, allowed)
            # Both masks list the scored tokens row by row, left to right, so scores and positions are in one order.
            row, token = scored[rows].nonzero(as_tuple=True)
            passes.append((rows[row] * scored.shape[1] + token, *scores))
        positions, log_p, entropies = (torch.cat(parts) for parts in zip(*passes, strict=True))

        def restore_layout(values: torch.Tensor) -> torch.Tensor:
            """Put one value per scored token back to its place in [rows, logits_to_keep]."""
            flat = values.new_zeros(scored.numel()).scatter(0, positions, values)  # differentiable, unlike assignment
            return flat.view(scored.shape)[:, -logits_to_keep:]

        return restore_layout(log_p), restore_layout(entropies) if compute_entropy else None, None

    def _find_allowed(
        self, rows: torch.Tensor, ids: torch.Tensor, present: torch.Tensor, scored: torch.Tensor, *, vocabulary: int
    ) -> torch.Tensor | None:
        """The tokens that might be drawn in the place of each scored one, as bits; None where no grammar held any. The
        tensors [rows, tokens] are those of the completions."""
        if not any(self.held.values()):
            return None
        masks = []
        for row in rows.tolist():
            completion = ids[row][present[row]].tolist()
            held = self.held.get(tuple(completion), ())
            bits = torch.from_numpy(pack_masks(self._compiler(), completion, held, vocabulary))
            masks.append(bits[scored[row][present[row]]])
        return torch.cat(masks)

    def _open_compiler(self) -> Any:
        model = self.accelerator.unwrap_model(self.model)
        return open_compiler(model, self.processing_class, list_end_tokens(model, self.processing_class))


def _plan_passes(lengths: torch.Tensor) -> list[torch.Tensor]:
    """Group rows of similar lengths (tokens): as many row indices a pass as fit into PASS_TOKENS with padding."""
    passes: list[list[int]] = []
    for row in lengths.argsort().tolist():  # ascending, so the newest row is the longest and sets the padded width
        if not passes or (len(passes[-1]) + 1) * int(lengths[row]) > PASS_TOKENS:
            passes.append([])
        passes[-1].append(row)
    return [torch.tensor(rows) for rows in passes]
