"""Documents that leave the studio: a trace as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import Retried, dump_event
from orchestrator.failure_memory.describe_retry import describe_retry, has_run
from orchestrator.traces.episode_totals import compute_totals
from orchestrator.traces.run_limits import list_violations, read_with_inner
from orchestrator.traces.store import EpisodeRow, Store
from studio.episode_documents.audit import list_audit
from studio.episode_documents.chance import measure_chance
from studio.episode_documents.final_answer import build_final_view


def build_trace_document(store: Store, row: EpisodeRow) -> dict[str, Any]:
    """The whole trace of an episode: its summary, totals and every event in order."""
    episode = store.traces.episode(row.id)
    events = [json.loads(dump_event(event)) for _, event in store.traces.events_after(row.id)]
    graded, agreement = episode.graded, episode.agreement
    return {
        "podium_trace": 1,
        "id": row.id,
        "query": row.query,
        "answer": episode.final_answer,
        "presented": episode.presented,
        "final": build_final(episode),
        "outcome": row.state,
        "reason": episode.ended.reason if episode.ended else None,
        "correct": graded.correct if graded else None,
        "expected": graded.expected if graded else None,
        "not_judged": episode.not_judged.reason if episode.not_judged else None,
        "agreement": asdict(agreement) if agreement else None,
        "chance": asdict(chance) if (chance := measure_chance(episode, row.orchestrator)) else None,
        "confidence": asdict(episode.confidence[1]) if episode.confidence else None,
        "out_of_depth": asdict(episode.out_of_depth) if episode.out_of_depth else None,
        "orchestrator": row.orchestrator,
        "pool": row.pool,
        "pool_hash": row.pool_hash,
        "started_at": row.started_at,
        "follow_up": asdict(follow_up) if (follow_up := episode.started and episode.started.follow_up) else None,
        "served_as": asdict(served_as) if (served_as := episode.started and episode.started.served_as) else None,
        "retry_of": episode.started.retry_of if episode.started else "",
        "retried": asdict(episode.retried) if episode.retried else None,
        "audit": [line.to_json() for line in list_audit(episode)],
        "run_limits": build_limits_document(store, episode),
        "totals": asdict(compute_totals(episode)),
        "events": events,
    }


def build_limits_document(store: Store, episode: Episode) -> dict[str, Any] | None:
    """What the caller limited a run to, and whether its trace shows that this was kept; None where nothing limited
    it."""
    if not episode.run_limits:
        return None
    broken = list_violations(read_with_inner(store.traces, episode))
    return {**asdict(episode.run_limits), "lines": episode.run_limits.describe(), "broken": broken}


def build_final(episode: Episode) -> dict[str, Any] | None:
    """Who wrote the answer in the place of the plan's own, or why nobody did; None where no finalizer was on."""
    view = build_final_view(episode)
    return None if view is None else view.to_json()


def shown_answer(document: Mapping[str, Any]) -> Any:
    """What a person reads for the answer of a trace document."""
    return document["answer"] if document["presented"] is None else document["presented"]


def describe_final(document: Mapping[str, Any]) -> list[str]:
    """The final answer of a trace document as lines for a terminal: who wrote it, and what the plan's own was."""
    final = document["final"]
    if final is None:
        return []
    own = [f"The plan's own answer: {final['plan_answer']}"] if final["state"] == "OK" else []
    return [final["sentence"], *own]


def describe_second_try(document: Mapping[str, Any]) -> list[str]:
    """What came of trying a failed run again with its lesson, as a line for a terminal."""
    if document["retried"] is None:
        return []
    retried = Retried(**document["retried"])
    place = f" That run is {retried.episode}." if has_run(retried) else ""
    return [f"{describe_retry(retried)}.{place}"]


def describe_limits(document: Mapping[str, Any]) -> list[str]:
    """The limits of a run and whether they were kept, as lines for a terminal."""
    limits = document["run_limits"]
    if limits is None:
        return []
    return [f"limits: {' '.join(limits['lines'])}", *(f"limit broken: {sentence}" for sentence in limits["broken"])]


def describe_bindings(document: Mapping[str, Any]) -> list[str]:
    """A line for each step of a trace whose worker the model asked for by a name of another pool."""
    turns = [event["turn"] for event in document["events"] if event["type"] == "turn_taken"]
    return [_describe_binding(bound) for turn in turns for bound in turn.get("bindings", ())]


def _describe_binding(bound: Mapping[str, Any]) -> str:
    request = f"step {bound['step']}: asked for {bound['learnt']}"
    if not bound["worker"]:
        return f"{request}, bound to no worker of this pool"
    how = "chosen by a person" if bound["by"] == "person" else f"{bound['likeness']:.2f}"
    return f"{request}, bound to {bound['worker']}, {how}"
