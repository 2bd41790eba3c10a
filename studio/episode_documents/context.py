"""What filled a prompt, by origin: of an agent's call as it was recorded, of an orchestrator's turn from its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, cast

from orchestrator.engine.episode import StepRun
from orchestrator.plan import Turn
from pool_registry.actions import ContextPart, ContextUse
from pool_registry.language_models.completion import estimate_tokens
from studio.episode_documents.schema import ContextBudget, ContextSlice

Origin = Literal["role", "skills", "instruction", "output", "workers", "memory", "history"]
LABELS: Mapping[str, str] = {
    "role": "Role",
    "skills": "Agent skills",
    "instruction": "Instruction",
    "workers": "Rules and workers",
    "memory": "Failure memory",
    "history": "Earlier rounds",
}
_MESSAGE = re.compile(r"^\[(system|user|assistant|tool)\]$", re.MULTILINE)


def describe_use(use: ContextUse, steps: Mapping[int, StepRun]) -> ContextBudget:
    """The prompt of an agent's call."""
    return ContextBudget(slices=[_slice(part, steps) for part in use.parts], limit=use.limit, reply=use.reply)


def estimate_turn_context(turn: Turn, query: str) -> ContextBudget | None:
    """The prompt of a turn: what stands before the query's message, the query, lessons, and the rounds after it."""
    if not turn.prompt:
        return None
    head, first, rest = _split_prompt(turn.prompt)
    lessons = turn.recalled.lessons if turn.recalled else ()
    memory = sum(estimate_tokens(lesson.sentence) for lesson in lessons if lesson.sentence in head + first)
    query_tokens = estimate_tokens(query) if query in head + first else 0
    sizes = {
        "workers": max(0, estimate_tokens(head + first) - query_tokens - memory),
        "instruction": query_tokens,
        "memory": memory,
        "history": estimate_tokens(rest) if rest else 0,
    }
    slices = [
        ContextSlice(origin=cast(Origin, origin), label=LABELS[origin], tokens=size, whole=size, cut="")
        for origin, size in sizes.items()
        if size
    ]
    return ContextBudget(slices=slices, limit=None, reply=0)


def _split_prompt(prompt: str) -> tuple[str, str, str]:
    """What stands before the first message of the user, that message, and what comes after it."""
    starts = [(match.group(1), match.start()) for match in _MESSAGE.finditer(prompt)]
    place = next((index for index, (role, _) in enumerate(starts) if role == "user"), None)
    if place is None:
        return prompt, "", ""
    begin = starts[place][1]
    end = starts[place + 1][1] if place + 1 < len(starts) else len(prompt)
    return prompt[:begin], prompt[begin:end], prompt[end:]


def _slice(part: ContextPart, steps: Mapping[int, StepRun]) -> ContextSlice:
    run = steps.get(part.step)
    label = LABELS.get(part.origin, "") if part.origin != "output" else f"Step {part.step}"
    if part.origin == "output" and run is not None:
        label = f"Step {part.step} \u00b7 {run.step.worker}"
    elif part.name:
        label = f"Agent skill {part.name}, read"
    cut = cast(Literal["", "excerpt", "summary"], part.cut)
    return ContextSlice(
        origin=cast(Origin, part.origin), label=label, tokens=part.tokens, whole=part.whole or part.tokens, cut=cut
    )
