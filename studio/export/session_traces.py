"""Episodes in the Session Trace Simple Format, which the trace viewer of the Hugging Face Hub shows.

https://huggingface.co/docs/hub/session-traces-format. One file is one session: a header, then a message a line. The
turns of an episode are messages of the assistant, its steps their calls, what these returned messages of the role
`tool`. A call's arguments are those that the worker got, and `access`: the earlier steps that it was allowed to see.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from orchestrator.engine.episode import Episode, Round, StepRun
from orchestrator.traces.store import EpisodeRow, Store
from pool_registry.actions import JsonValue, as_text
from studio.episode_documents.recorded_runs import find_nested_episodes

HARNESS = "podium"
MAX_NAME_CHARS = 100


def export_session(store: Store, episode: str) -> str:
    """Write one episode as a session, JSON Lines; those that its steps ran are sessions of their own."""
    lines = _list_lines(store.traces.episode(episode), store.traces.row(episode))
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def list_sessions(store: Store, episode: str) -> list[str]:
    """The ids of an episode and of those that its steps ran: each is a session."""
    row = store.traces.row(episode)
    return [row.id, *(nested.id for nested in find_nested_episodes(store, row))]


def _list_lines(episode: Episode, row: EpisodeRow) -> Iterator[dict[str, Any]]:
    started = episode.started
    name = " ".join(episode.query.split())[:MAX_NAME_CHARS]
    header = {"type": "session", "harness": HARNESS, "id": episode.id, "name": name, "pool": row.pool}
    yield {**header, "parent": row.parent} if row.parent else header
    if started is None:
        return
    begun = datetime.fromisoformat(started.started_at).timestamp()
    yield _write_message(begun, 0.0, role="user", content=episode.query)
    for done in episode.rounds:
        yield from _list_round(done, begun, row.orchestrator)
    if episode.ended is not None:
        content = as_text(episode.final_answer) if episode.answer is not None else episode.ended.reason or ""
        yield _write_message(begun, episode.ended.at, role="assistant", content=content, model=row.orchestrator)


def _list_round(done: Round, begun: float, model: str) -> Iterator[dict[str, Any]]:
    """A turn with its calls, and what these returned; nothing for a turn that only answers."""
    problem = done.turn.error if done.turn is not None else None
    if not done.steps and not problem:
        return
    at = done.turn_ended_at if done.turn_ended_at is not None else done.started_at
    calls = [_write_call(run) for run in done.steps]
    more = {"toolCalls": calls} if calls else {}
    yield _write_message(begun, at, role="assistant", content=problem or "", model=model, **more)
    for run in done.steps:
        if run.observation is not None:
            content = _write_output(run)
            ended = run.ended_at if run.ended_at is not None else at
            yield _write_message(begun, ended, role="tool", content=content, toolCallId=str(run.step.id))


def _write_call(run: StepRun) -> dict[str, Any]:
    got = run.arguments if run.arguments is not None else run.step.arguments
    arguments = {**got, "access": list(run.step.access)}
    function = {"name": run.step.worker, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": str(run.step.id), "function": function}


def _write_output(run: StepRun) -> str:
    """What a worker returned, or its status with what went wrong."""
    seen = run.observation
    assert seen is not None, "the caller looked"
    return as_text(seen.value) if seen.error is None else f"{seen.status.value}: {seen.error.message}"


def _write_message(begun: float, at: float, **message: JsonValue) -> dict[str, Any]:
    """A message at `at` seconds after `begun`, which is in seconds since 1970."""
    return {"type": "message", "message": {**message, "timestamp": round((begun + at) * 1000)}}
