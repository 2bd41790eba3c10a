"""The worker kind, chat template and model that tests of rollouts share."""

from __future__ import annotations

import pytest

from pool_registry.kinds import KINDS, add_kind
from tests.trainer.support.rollouts import Repeats
from trainer.learner.token_transcript import ChatTokens


@pytest.fixture(autouse=True, scope="module")
def kinds():
    add_kind("repeats", Repeats)
    yield
    del KINDS.built_in["repeats"]


@pytest.fixture(scope="module")
def chat(tiny_base):
    from transformers import AutoTokenizer

    return ChatTokens(AutoTokenizer.from_pretrained(tiny_base, padding_side="left"))


@pytest.fixture(scope="module")
def model(tiny_base):
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    return AutoModelForCausalLM.from_pretrained(tiny_base, dtype=torch.float32)
