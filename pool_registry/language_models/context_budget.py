"""Fits what an agent is sent into its context: what is fixed first, then the outputs that it may see, shortened where
they are too long. A call that cannot fit is refused before anything is paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pool_registry.actions import ContextPart, ContextUse
from pool_registry.errors import WorkerFault
from pool_registry.language_models.completion import (
    BYTES_PER_TOKEN,
    LEAST_SHARE,
    MESSAGE_TOKENS,
    estimate_tokens,
    share_room,
    visible_text,
)
from pool_registry.language_models.skills import Skill, find_longest, write_body, write_offer
from pool_registry.worker import Visible

CHARS_PER_TOKEN = BYTES_PER_TOKEN
BLOCK_TOKENS = 40  # the tags around an output
TOO_LONG = "context_too_long"


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """What bounds the prompt of an agent: tokens of prompt and reply together (None where that is not known), tokens of
    the reply, and the characters that all outputs may have."""

    context_tokens: int | None
    reply_tokens: int
    visible_chars: int


def find_visible_room(
    worker: str,
    role: str,
    instruction: str,
    visible: Sequence[Visible],
    limits: AgentLimits,
    skills: Sequence[Skill] = (),
) -> int:
    """How many characters the outputs may have in this prompt, beside the longest skill, which may be read. Raises
    WorkerFault when the call cannot fit."""
    if limits.context_tokens is None:
        return limits.visible_chars
    fixed = estimate_tokens(role) + estimate_tokens(instruction) + 2 * MESSAGE_TOKENS + _count_skills(skills)
    left = limits.context_tokens - limits.reply_tokens - fixed
    needed = len(visible) * (BLOCK_TOKENS + LEAST_SHARE // CHARS_PER_TOKEN)
    if left < min(needed, _count_needed(visible)):
        outputs = f", {len(visible)} outputs" if visible else ""
        raise WorkerFault(
            TOO_LONG,
            f"{worker} takes {limits.context_tokens:,} tokens, {limits.reply_tokens:,} of them for its reply; the role "
            f"and the instruction{', with the longest skill,' if skills else ''} have about {fixed:,}{outputs}. "
            "Shorten the instruction, let it see fewer steps, or choose a worker with a larger context",
        )
    return min(limits.visible_chars, (left - len(visible) * BLOCK_TOKENS) * CHARS_PER_TOKEN)


def describe_context(
    role: str,
    instruction: str,
    visible: Sequence[Visible],
    room: int,
    limits: AgentLimits,
    skills: Sequence[Skill] = (),
    read: Skill | None = None,
) -> ContextUse:
    """What the prompt is made of, with `room` characters for the outputs; `read` is the skill whose body is in it."""
    parts = [ContextPart("role", estimate_tokens(role), estimate_tokens(role))] if role else []
    if skills:
        offer = estimate_tokens(write_offer(skills))
        parts.append(ContextPart("skills", offer, offer))
    if read is not None:
        body = estimate_tokens(write_body(read))
        parts.append(ContextPart("skills", body, body, name=read.name))
    size = estimate_tokens(instruction)
    parts.append(ContextPart("instruction", size, size))
    for item, share in zip(visible, share_room(visible, room), strict=True):
        text = visible_text(item)
        whole = item.whole_chars or len(text)
        cut = "excerpt" if share < len(text) else ("summary" if item.whole_chars else "")
        tokens = min(share, len(text)) // CHARS_PER_TOKEN
        parts.append(ContextPart("output", tokens, whole // CHARS_PER_TOKEN, item.step, cut))
    return ContextUse(tuple(parts), limits.context_tokens, limits.reply_tokens)


def _count_skills(skills: Sequence[Skill]) -> int:
    """The most tokens that skills can take: all descriptions, the longest body, and the turns in which it is read."""
    if not skills:
        return 0
    return estimate_tokens(write_offer(skills)) + estimate_tokens(find_longest(skills)) + 3 * MESSAGE_TOKENS


def _count_needed(visible: Sequence[Visible]) -> int:
    return sum(BLOCK_TOKENS + len(visible_text(item)) // CHARS_PER_TOKEN for item in visible)
