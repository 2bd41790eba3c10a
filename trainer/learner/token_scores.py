"""Log-probabilities of tokens under a large vocabulary, a few at a time.

The logits of a thousand tokens over 50,000 words are 200 MB in float32, and each step from logits to a loss reads and
writes them once more. Here LOGITS of them exist at a time, which fit into a processor's cache, and the backward pass
makes them again: softmax minus the target is the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.functional import linear

LOGITS = 2**22  # 16 MB
REFUSED = -1e30  # the logit of a token that a grammar refuses; infinity times a probability of 0 would be no number


class TokenScores(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed
    """Log-probabilities and entropies (nats, without gradients), each [tokens], of `targets` [tokens].

    `states` [tokens, hidden] come before the targets, `weight` [vocabulary, hidden] makes logits of them, which are
    divided by the temperature of sampling. `allowed`, where tokens were drawn under grammars, holds the tokens that
    might be drawn, as bits [tokens, vocabulary / 8], lowest bit first (held_tokens.py).
    """

    @staticmethod
    def forward(
        context: Any,
        states: torch.Tensor,
        weight: torch.Tensor,
        targets: torch.Tensor,
        temperature: float,
        allowed: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        log_p = torch.empty(len(targets), device=states.device)
        entropies, totals = torch.empty_like(log_p), torch.empty_like(log_p)
        for part in _list_parts(len(targets), len(weight)):
            logits = _compute_logits(states[part], weight, temperature, None if allowed is None else allowed[part])
            totals[part] = logits.logsumexp(-1)
            log_p[part] = logits.gather(-1, targets[part, None])[:, 0] - totals[part]
            # H = -sum p log p = log Z - sum p logit
            entropies[part] = totals[part] - torch.linalg.vecdot((logits - totals[part, None]).exp_(), logits)
        context.save_for_backward(states, weight, targets, totals)
        context.temperature, context.allowed = temperature, allowed
        context.mark_non_differentiable(entropies)
        return log_p, entropies

    @staticmethod
    def backward(context: Any, *grads: torch.Tensor) -> Any:
        states, weight, targets, totals = context.saved_tensors
        scale = grads[0].float() / context.temperature
        grad_states = torch.empty_like(states) if context.needs_input_grad[0] else None
        grad_weight = torch.zeros_like(weight) if context.needs_input_grad[1] else None
        for part in _list_parts(len(targets), len(weight)):
            # d log p(target) / d logit = [target] - p
            bits = None if context.allowed is None else context.allowed[part]
            grad = _compute_logits(states[part], weight, context.temperature, bits).sub_(totals[part, None]).exp_()
            grad *= -scale[part, None]
            grad.scatter_add_(-1, targets[part, None], scale[part, None])
            grad = grad.to(weight.dtype)
            if grad_states is not None:
                grad_states[part] = (grad @ weight).to(states.dtype)
            if grad_weight is not None:
                grad_weight += grad.T @ states[part].to(grad.dtype)
        return grad_states, grad_weight, None, None, None


def _list_parts(count: int, vocabulary: int) -> Iterator[slice]:
    """The tokens in parts whose logits make LOGITS numbers at most."""
    size = max(1, LOGITS // vocabulary)
    return (slice(first, first + size) for first in range(0, count, size))


def _compute_logits(
    states: torch.Tensor, weight: torch.Tensor, temperature: float, allowed: torch.Tensor | None
) -> torch.Tensor:
    """float32 also for a bfloat16 model: the softmax over the vocabulary needs the precision."""
    logits = linear(states.to(weight.dtype), weight).float()
    logits = logits if temperature == 1 else logits.div_(temperature)
    if allowed is None:
        return logits
    bits = allowed.to(logits.device)[:, :, None] >> torch.arange(8, device=logits.device) & 1
    return logits.masked_fill_(bits.flatten(1)[:, : logits.shape[-1]] == 0, REFUSED)
