"""TRL's GRPOTrainer for a CPU (learner/cpu_trainers.py).

TRL pads every episode of a step to the longest prompt plus the longest completion; here episodes of similar lengths go
through the model together.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from trl import GRPOTrainer  # type: ignore[attr-defined]  # lazily exported

from pool_registry.load_once import LoadOnce
from trainer.learner.cpu_kernels import speed_up_adapters
from trainer.learner.cpu_trainers import compute_states, is_plain_on_cpu
from trainer.learner.held_tokens import HeldCompletions, list_end_tokens, open_compiler, pack_masks
from trainer.learner.token_scores import TokenScores
from trainer.memory_fit.stages import PASS_TOKENS


def choose_grpo_trainer(model: Any) -> type[GRPOTrainer]:
    """Choose the fastest trainer for this model on its device."""
    return CpuGrpoTrainer if is_plain_on_cpu(model) else GRPOTrainer


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
                states, head = compute_states(model, learnt, input_ids=ids, attention_mask=mask)
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
