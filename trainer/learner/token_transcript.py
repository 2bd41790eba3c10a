"""An episode as one sequence of tokens that only ever grows at its end, and which of them the model wrote.

SFT and GRPO learn from the same form: prompt, turn, observation, turn, ... Observations are context and
never a target. What stands between two turns is taken from the base model's own chat template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.language_models.completion import Message
from trainer.errors import TrainingFailed
from trainer.learner.held_tokens import HeldTokens


@dataclass(slots=True)
class Transcript:
    """Token ids. `mask` is as long as `completion`: 1 where the model wrote the token and may learn it. `held` says
    which tokens were drawn under a grammar."""

    prompt: list[int]
    completion: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    held: list[HeldTokens] = field(default_factory=list)

    @property
    def ids(self) -> list[int]:
        """The context of the next turn."""
        return [*self.prompt, *self.completion]

    def add(self, ids: Sequence[int], learn: bool) -> None:
        self.completion += ids
        self.mask += [int(learn)] * len(ids)  # one entry for every token, always

    def labels(self) -> list[int]:
        """The targets of a causal model over prompt and completion; -100 is none (transformers' convention)."""
        return [-100] * len(self.prompt) + [
            token if learn else -100 for token, learn in zip(self.completion, self.mask, strict=True)
        ]


class ChatTokens:
    """A tokenizer's chat template, taken apart into what an episode needs.

    Raises TrainingFailed `chat_template` when the template rewrites earlier turns (some do so with
    reasoning): such a conversation is no single sequence of tokens.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        if not tokenizer.chat_template or tokenizer.eos_token is None:
            raise TrainingFailed("chat_template", "the base model has no chat template; choose an instruct model")
        # The template is taken apart by rendering one exchange: what stands behind its answer stands after every turn.
        # The answer is never the last message, before which some templates put empty thoughts that they drop later.
        self._opened = self._render([Message("user", "q")], True) + "a"
        self.encode_between("o")

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, JsonValue]] | None = None
    ) -> list[int]:
        """Encode everything before the first turn, with the functions that the template offers.

        Raises TrainingFailed `chat_template` where there are functions and the template knows none.
        """
        return self._encode(self._render(messages, True, tools))

    def encode_turn(self, text: str) -> list[int]:
        """A turn as the model would have written it, with its end token."""
        return [*self._encode(text), self.tokenizer.eos_token_id]

    def encode_between(self, reply: str | Sequence[Message]) -> list[int]:
        """What stands between the end token of one turn and the start of the next: a message of the user, or others."""
        replies = [Message("user", reply)] if isinstance(reply, str) else reply
        messages = [Message("user", "q"), Message("assistant", "a"), *replies]
        text = self._render(messages, True)
        if not text.startswith(self._opened):
            raise TrainingFailed("chat_template", "the chat template rewrites earlier turns; choose another base")
        after = text.removeprefix(self._opened)
        # The end token is the model's own to write, so it belongs to the turn; the rest is context.
        if not after.startswith(self.tokenizer.eos_token):
            end = self.tokenizer.eos_token
            raise TrainingFailed("chat_template", f"turns do not end with the end token {end}; choose another base")
        # Encoded alone, not with the conversation: no token reaches across a turn's end, where the model stopped.
        return self._encode(after.removeprefix(self.tokenizer.eos_token))

    def decode(self, ids: Sequence[int]) -> str:
        """What the model wrote, without control tokens."""
        written: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return written.strip()

    def _render(
        self, messages: Sequence[Message], open_turn: bool, tools: Sequence[Mapping[str, JsonValue]] | None = None
    ) -> str:
        called = tools or any(message.role == "tool" for message in messages)
        if called and "tools" not in self.tokenizer.chat_template:
            raise TrainingFailed(
                "chat_template",
                "the base's chat template knows no tools; choose another base, or set model.dialect: plan",
            )
        chat = [message.write_plain() for message in messages]
        offered = {"tools": list(tools)} if tools else {}
        text: str = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=open_turn, **offered)
        return text

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
