"""Chat templates of bases: what stands between two turns, and templates that cannot be one growing sequence."""

from __future__ import annotations

import copy

import pytest

from pool_registry.language_models.completion import Message
from trainer.errors import TrainingFailed
from trainer.learner.token_transcript import ChatTokens

pytestmark = pytest.mark.medium
TURN = "{{ '<|' + message.role + '|>' + %s + message.content + %s }}"
OPEN = "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
# Qwen3's: thoughts, if empty ones, stand before the last message of the assistant and are dropped from earlier ones.
THOUGHTS = "('<think></think>' if message.role == 'assistant' and loop.last else '')"
REWRITTEN = "('(earlier)' if message.role == 'assistant' and not loop.last else '')"


def make_template(before: str, after: str = "'<|end|>'") -> str:
    return "{% for message in messages %}" + TURN % (before, after) + "{% endfor %}" + OPEN


@pytest.fixture
def tokenizer(tiny_base):
    from transformers import AutoTokenizer

    return copy.copy(AutoTokenizer.from_pretrained(tiny_base))


def test_a_template_with_thoughts_before_the_last_turn_alone_grows_at_its_end(tokenizer):
    tokenizer.chat_template = make_template(THOUGHTS)
    chat = ChatTokens(tokenizer)
    opening = [Message("user", "q")]
    grown = [*chat.encode_prompt(opening), *chat.encode_turn("needs"), *chat.encode_between("cards")]
    assert grown == chat.encode_prompt([*opening, Message("assistant", "needs"), Message("user", "cards")])


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (make_template(REWRITTEN), "rewrites earlier turns"),
        (make_template("''", "'<|stop|>'"), "do not end with"),
        (None, "no chat template"),
    ],
)
def test_a_template_that_is_no_growing_sequence_is_told(tokenizer, template, problem):
    tokenizer.chat_template = template
    with pytest.raises(TrainingFailed, match=problem):
        ChatTokens(tokenizer)
