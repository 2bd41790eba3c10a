"""Outputs that are too long for an agent's prompt, shortened by another agent. The whole output stays in the trace."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pool_registry.actions import NO_USAGE, Status, Usage, as_text
from pool_registry.calls.worker_state import WorkerState
from pool_registry.errors import WorkerFault
from pool_registry.language_models.agent import Agent
from pool_registry.language_models.completion import share_room, visible_text
from pool_registry.worker import Call, Visible

ASK = (
    "Shorten the output above to at most {chars} characters. Keep every name, number, date and unit that this task "
    "needs, word for word, and add nothing: {task}"
)


@dataclass(frozen=True, slots=True)
class ShortenedCall:
    """A call whose outputs fit, and what shortening them took."""

    call: Call
    usage: Usage = NO_USAGE
    latency_s: float = 0.0


async def shorten_outputs(worker: WorkerState, call: Call, workers: Mapping[str, WorkerState]) -> ShortenedCall:
    """The call with each output that is too long for the worker's prompt shortened by its summarizer. Where that fails,
    the output stays as it is: its beginning is taken."""
    summarizer, agent = workers.get(worker.spec.summarizer), worker.worker
    if summarizer is None or not isinstance(agent, Agent) or not call.visible:
        return ShortenedCall(call)
    task = call.text("instruction")
    try:
        room = agent.find_room(call)
    except WorkerFault:  # the call is refused in a moment
        return ShortenedCall(call)
    shares = share_room(call.visible, room)
    results = await asyncio.gather(
        *(_shorten(item, share, task, summarizer) for item, share in zip(call.visible, shares, strict=True))
    )
    usage = sum((used for _, used, _ in results), NO_USAGE)
    latency_s = max(seconds for _, _, seconds in results)
    return ShortenedCall(replace(call, visible=tuple(item for item, _, _ in results)), usage, latency_s)


async def _shorten(item: Visible, share: int, task: str, summarizer: WorkerState) -> tuple[Visible, Usage, float]:
    size = len(visible_text(item))
    if size <= share or not item.observation.ok:
        return item, NO_USAGE, 0.0
    instruction = ASK.format(chars=share, task=task)
    seen = await summarizer.call(Call({"instruction": instruction}, (item,)))
    summary = as_text(seen.value)
    if seen.status is not Status.OK or not 0 < len(summary) < size:
        return item, seen.usage, seen.latency_s
    observation = replace(item.observation, value=summary)
    return replace(item, observation=observation, whole_chars=size), seen.usage, seen.latency_s
