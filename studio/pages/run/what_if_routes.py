"""What-ifs of recorded runs: the editor of a round, the check of edits, the start, and the result beside the original
run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from orchestrator.engine.edits import AddStep, AnyEdit, ChangeStep, Edit, RemoveStep, RunAgain, SetAnswer
from orchestrator.engine.episode import Episode, Round
from orchestrator.errors import DamagedTrace, EpisodeNotFound, InvalidEdits
from orchestrator.graphs.diff import diff_steps, place_steps
from orchestrator.plan import Step
from orchestrator.traces.store import EpisodeRow, Store
from orchestrator.what_if import Variation, vary
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.errors import PoolError
from pool_registry.pool import Pool
from studio.runtime import Runtime

MAX_EDITS = 1000


class RoundEdits(BaseModel):
    """Edits of one round, as the page sends them; steps by the numbers that they have in the recorded run."""

    model_config = ConfigDict(extra="forbid")

    round: int
    edits: list[Edit] = Field(max_length=MAX_EDITS)


def what_if_routes(runtime: Runtime) -> APIRouter:
    """The routes below /api/episodes."""
    router = APIRouter()

    @router.get("/{episode_id}/what-if")
    def editor(episode_id: str) -> JSONResponse:
        return _respond(lambda: build_editor(runtime, episode_id))

    @router.post("/{episode_id}/what-if/check")
    def check(episode_id: str, request: RoundEdits) -> JSONResponse:
        return _respond(lambda: check_edits(runtime, episode_id, request))

    @router.post("/{episode_id}/what-if")
    def start(episode_id: str, request: RoundEdits) -> JSONResponse:
        return _respond(lambda: {"episode": runtime.start_variation(episode_id, request.round, request.edits)})

    @router.get("/{episode_id}/variations")
    def variations(episode_id: str) -> JSONResponse:
        return _respond(lambda: list_variations(runtime.store, episode_id))

    return router


def _respond(work: Callable[[], dict[str, Any]]) -> JSONResponse:
    """The document of `work` with no problems, or the problems of the edits. Raises HTTPException when the run cannot
    be read."""
    try:
        return JSONResponse({"problems": [], **work()})
    except InvalidEdits as error:
        return JSONResponse({"problems": error.problems})
    except EpisodeNotFound as error:
        raise HTTPException(404, str(error)) from error
    except (DamagedTrace, PoolError) as error:
        raise HTTPException(409, str(error)) from error


# The editor


def build_editor(runtime: Runtime, episode_id: str) -> dict[str, Any]:
    """The recorded rounds, and the workers that a step may call. Raises PoolNotFound when they are not kept."""
    episode, pool = runtime.open_recorded(episode_id)
    return {
        "episode": episode_id,
        "rounds": [_round(done) for done in episode.rounds],
        "fresh": max(episode.steps, default=0) + 1,
        "workers": [_worker(pool, name) for name in pool.workers],
    }


def build_round(episode: Episode, number: int) -> dict[str, Any]:
    """One round of a recorded run, ready to be edited. Raises InvalidEdits when there is no such round."""
    done = next((done for done in episode.rounds if done.number == number), None)
    if done is None:
        raise InvalidEdits([("", f"this run has no round {number}; it has {len(episode.rounds)}")])
    return {"rounds": len(episode.rounds), "fresh": max(episode.steps, default=0) + 1, **_round(done)}


def _round(done: Round) -> dict[str, Any]:
    turn = done.turn
    return {
        "round": done.number,
        "error": turn.error if turn else None,
        "answer": turn.answer if turn and turn.error is None else None,
        "steps": [{**build_step(run.step), "status": run.state} for run in done.steps],
    }


def build_step(step: Step) -> dict[str, Any]:
    """A step as it was planned."""
    return {
        "id": step.id,
        "worker": step.worker,
        "arguments": dict(step.arguments),
        "access": list(step.access),
        "problem": step.problem,
    }


def _worker(pool: LivePool, name: str) -> dict[str, Any]:
    worker = pool.workers[name]
    return {
        "name": name,
        "role": worker.role,
        "kind": worker.spec.kind,
        "description": worker.spec.description,
        "parameters": dict(worker.parameters),
        "instruction": worker.instruction_parameter,
    }


def check_edits(runtime: Runtime, episode_id: str, request: RoundEdits) -> dict[str, Any]:
    """The steps that these edits would run again, and those that they would keep, by the numbers that the edits use."""
    return describe_fates(runtime.vary(episode_id, request.round, request.edits))


async def check_variation(origin: Episode, pool: Pool, number: int, edits: Sequence[AnyEdit]) -> dict[str, Any]:
    """The same for a run that no studio has open. Raises InvalidEdits."""
    async with live_pool(pool) as live:
        return describe_fates(vary(origin, number, edits, live))


def describe_fates(variation: Variation) -> dict[str, Any]:
    """What a variation calls and keeps, by the numbers that its edits use."""
    old = {new: k for k, new in variation.ids.items()}
    return {
        "rerun": sorted(old[new] for new in variation.rerun),
        "kept": sorted(old[new] for new in variation.kept),
        "dropped": variation.dropped,
    }


# What came of it


def list_variations(store: Store, episode_id: str) -> dict[str, Any]:
    """For a what-if: the run that it varies, the edits and the difference. For any run: its what-ifs."""
    traces = store.traces
    traces.row(episode_id)
    made = [_result(row) for row in traces.variations(episode_id)]
    episode = traces.episode(episode_id)
    what_if = episode.started.what_if if episode.started else None
    if what_if is None:
        return {"origin": None, "variations": made}
    try:
        origin_row, origin = traces.row(what_if.episode), traces.episode(what_if.episode)
    except EpisodeNotFound:
        return {"origin": None, "variations": made}
    return {
        "origin": _result(origin_row),
        "result": _result(traces.row(episode_id)),
        "round": what_if.round,
        "dropped": sum(done.number > what_if.round for done in origin.rounds),
        "kept": len(what_if.kept),
        "rerun": sum(run.started_at is not None for run in episode.steps.values()),
        "edits": [_edit(edit, origin, what_if.round) for edit in what_if.edits],
        "differences": diff_steps(place_steps(origin), place_steps(episode)).counts(),
        "variations": made,
    }


def _result(row: EpisodeRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "orchestrator": row.orchestrator,
        "state": row.state,
        "answer": row.answer,
        "correct": row.correct,
        "started_at": row.started_at,
        "wall_s": row.wall_s,
        "steps": row.steps,
        "tokens": row.tokens,
        "cost": row.cost,
    }


def _edit(edit: AnyEdit, origin: Episode, number: int) -> dict[str, Any]:
    """An edit in words: what it did, to which step, and every field that is another now."""
    if isinstance(edit, SetAnswer):
        done = next((done for done in origin.rounds if done.number == number), None)
        before = done.turn.answer if done and done.turn else None
        return {"edit": edit.edit, "step": None, "fields": [_field("answer", _as_text(before), _as_text(edit.answer))]}
    run = origin.steps.get(edit.step)
    old = run.step if run else None
    name = edit.worker if isinstance(edit, AddStep) else old.worker if old else ""
    fields = _fields(old, edit) if isinstance(edit, ChangeStep | AddStep) else []
    assert isinstance(edit, ChangeStep | AddStep | RemoveStep | RunAgain), "the answer was dealt with"
    return {"edit": edit.edit, "step": edit.step, "worker": name, "fields": fields}


def _fields(old: Step | None, new: ChangeStep | AddStep) -> list[dict[str, str]]:
    before = {"worker": old.worker, **_arguments(old.arguments), "sees": _join_steps(old.access)} if old else {}
    after = {"worker": new.worker, **_arguments(new.arguments), "sees": _join_steps(new.access)}
    names = dict.fromkeys([*before, *after])
    return [
        _field(name, before.get(name, ""), after.get(name, ""))
        for name in names
        if before.get(name, "") != after.get(name, "")
    ]


def _arguments(arguments: Any) -> dict[str, str]:
    return {name: _as_text(value) for name, value in arguments.items()}


def _join_steps(access: tuple[int, ...]) -> str:
    return ", ".join(map(str, access)) or "nothing"


def _as_text(value: JsonValue) -> str:
    return "" if value is None else as_text(value)


def _field(name: str, before: str, after: str) -> dict[str, str]:
    return {"field": name, "before": before, "after": after}
