"""Scores that are made a few tokens at a time are those of the whole softmax, and so are their gradients."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.medium


def score_all_at_once(states, weight, targets, temperature):
    log_p = ((states @ weight.T).float() / temperature).log_softmax(-1)
    entropy = -(log_p.detach().exp() * log_p.detach()).sum(-1)
    return log_p.gather(-1, targets[:, None])[:, 0], entropy


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_scores_and_gradients_are_those_of_the_whole_softmax(count, temperature, monkeypatch):
    import torch

    from trainer.learner import token_scores
    from trainer.learner.token_scores import TokenScores

    monkeypatch.setattr(token_scores, "LOGITS", 64 * 300)  # 64 tokens at a time
    generator = torch.Generator().manual_seed(count)
    targets = torch.randint(0, 300, (count,), generator=generator)
    weights = torch.randn(count, generator=generator)
    outcomes = []
    for score in (TokenScores.apply, score_all_at_once):
        generator.manual_seed(count + 1)
        states = torch.randn(count, 24, generator=generator, requires_grad=True)
        head = torch.randn(300, 24, generator=generator, requires_grad=True)
        log_p, entropy = score(states, head, targets, temperature)
        (log_p * weights).sum().backward()
        outcomes.append((log_p.detach(), entropy, states.grad, head.grad))
    for ours, whole in zip(*outcomes, strict=True):
        torch.testing.assert_close(ours, whole, atol=1e-4, rtol=1e-4)


def test_tokens_that_a_grammar_refused_have_no_share_and_no_gradient():
    import numpy
    import torch

    from trainer.learner.token_scores import TokenScores

    generator = torch.Generator().manual_seed(3)
    allowed = torch.rand(70, 300, generator=generator) < 0.1
    allowed[:, 7] = True
    bits = torch.from_numpy(numpy.packbits(allowed.numpy(), axis=1, bitorder="little"))
    targets, outcomes = torch.full((70,), 7), []
    for masked in (True, False):
        generator.manual_seed(4)
        states = torch.randn(70, 24, generator=generator, requires_grad=True)
        head = torch.randn(300, 24, generator=generator, requires_grad=True)
        if masked:
            log_p, entropies = TokenScores.apply(states, head, targets, 1.0, bits)
        else:
            every = (states @ head.T).masked_fill(~allowed, -1e30).log_softmax(-1)
            log_p, entropies = every[:, 7], -(every.exp() * every).sum(-1)
        log_p.sum().backward()
        outcomes.append((log_p.detach(), entropies.detach(), states.grad, head.grad))
    for ours, whole in zip(*outcomes, strict=True):
        torch.testing.assert_close(ours, whole, atol=1e-4, rtol=1e-4)


def test_a_frozen_head_gets_no_gradient_and_bfloat16_states_keep_their_kind():
    import torch

    from trainer.learner.token_scores import TokenScores

    states = torch.randn(70, 16, dtype=torch.bfloat16, requires_grad=True)
    head = torch.randn(50, 16, dtype=torch.bfloat16)
    log_p, entropies = TokenScores.apply(states, head, torch.randint(0, 50, (70,)), 1.0)
    assert log_p.dtype == entropies.dtype == torch.float32 and not entropies.requires_grad
    log_p.sum().backward()
    assert states.grad.dtype == torch.bfloat16 and head.grad is None
