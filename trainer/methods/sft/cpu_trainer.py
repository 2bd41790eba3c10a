"""TRL's SFTTrainer for a CPU (learner/cpu_trainers.py)."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch.nn.functional import nll_loss
from trl import SFTTrainer  # type: ignore[attr-defined]  # lazily exported

from trainer.learner.cpu_kernels import find_trees, speed_up_adapters, tree_attention
from trainer.learner.cpu_trainers import can_share_openings, compute_states, is_plain_on_cpu
from trainer.learner.shared_openings import FamilySampler, collate_trees


def choose_sft_trainer(model: Any) -> type[SFTTrainer]:
    """Choose the fastest trainer for this model on its device."""
    return CpuSftTrainer if is_plain_on_cpu(model) else SFTTrainer


class CpuSftTrainer(SFTTrainer):
    """SFTTrainer that computes logits for labelled tokens only, and what several rows begin with only once.

    An adapter's model may be bfloat16: its products run in it, while the adapter itself stays float32.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._trees = can_share_openings(self.model) and not self.args.packing
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
            states, head = compute_states(model, labels != -100, **without_labels)  # -100: no loss, as in transformers
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
