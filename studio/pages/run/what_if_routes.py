"""What-ifs of recorded runs: the editor of a round, the check of edits, the start, and the result beside the original
run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from orchestrator.engine.edits import AddStep, AnyEdit, ChangeStep, RemoveStep, RunAgain, SetAnswer
from orchestrator.engine.episode import Episode, Round
from orchestrator.errors import EpisodeNotFound, InvalidEdits
from orchestrator.graphs.diff import diff_steps, place_steps
from orchestrator.plan import Step
from orchestrator.traces.store import EpisodeRow, Store
from orchestrator.what_if import Variation, vary
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.pool import Pool
from studio.access.permissions import needs
from studio.forks import list_effectful_steps
from studio.pages.run.edit_requests import RoundEdits, VariedRound, respond_to_edits
from studio.pages.run.what_if_documents import (
    CallableWorker,
    ChangeDocument,
    CopiesDocument,
    EditDocument,
    EditedField,
    EditedRound,
    PlannedStep,
    RoundDocument,
    RunResult,
    StartedVariation,
    StepFates,
    VariationsDocument,
    WhatIfEditor,
)
from studio.runtime import Runtime


def what_if_routes(runtime: Runtime) -> APIRouter:
    """The routes below /api/episodes."""
    router = APIRouter()

    @router.get("/{episode_id}/what-if")
    @needs("viewer")
    def editor(episode_id: str) -> JSONResponse:
        return respond_to_edits(lambda: build_editor(runtime, episode_id))

    @router.post("/{episode_id}/what-if/check")
    @needs("editor")
    def check(episode_id: str, request: RoundEdits) -> JSONResponse:
        return respond_to_edits(lambda: check_edits(runtime, episode_id, request))

    @router.post("/{episode_id}/what-if")
    @needs("editor")
    def start(episode_id: str, request: VariedRound) -> JSONResponse:
        return respond_to_edits(lambda: start_variation(runtime, episode_id, request))

    @router.get("/{episode_id}/variations")
    @needs("viewer")
    def variations(episode_id: str) -> JSONResponse:
        return respond_to_edits(lambda: list_variations(runtime.store, episode_id))

    return router


# The editor


def build_editor(runtime: Runtime, episode_id: str) -> WhatIfEditor:
    """The recorded rounds, and the workers that a step may call. Raises PoolNotFound when they are not kept."""
    return build_editor_of(*runtime.open_recorded(episode_id))


def build_editor_of(episode: Episode, pool: LivePool) -> WhatIfEditor:
    """Build the rounds of an episode, and the workers that a step may call."""
    return WhatIfEditor(
        episode=episode.id,
        rounds=[_build_round(done) for done in episode.rounds],
        fresh=max(episode.steps, default=0) + 1,
        workers=[_build_worker(pool, name) for name in pool.workers],
    )


def build_round(episode: Episode, number: int) -> RoundDocument:
    """One round of a recorded run, ready to be edited. Raises InvalidEdits when there is no such round."""
    done = next((done for done in episode.rounds if done.number == number), None)
    if done is None:
        raise InvalidEdits([("", f"this run has no round {number}; it has {len(episode.rounds)}")])
    fresh = max(episode.steps, default=0) + 1
    return RoundDocument(**dict(_build_round(done)), rounds=len(episode.rounds), fresh=fresh)


def _build_round(done: Round) -> EditedRound:
    turn = done.turn
    return EditedRound(
        round=done.number,
        error=turn.error if turn else None,
        answer=turn.answer if turn and turn.error is None else None,
        steps=[_build_step(run.step, run.state) for run in done.steps],
    )


def _build_step(step: Step, state: str) -> PlannedStep:
    return PlannedStep(
        id=step.id,
        worker=step.worker,
        arguments=dict(step.arguments),
        access=list(step.access),
        problem=step.problem,
        status=state,
    )


def _build_worker(pool: LivePool, name: str) -> CallableWorker:
    worker = pool.workers[name]
    return CallableWorker(
        name=name,
        role=worker.role,
        kind=worker.spec.kind,
        description=worker.spec.description,
        parameters=dict(worker.parameters),
        instruction=worker.instruction_parameter,
    )


def start_variation(runtime: Runtime, episode_id: str, request: VariedRound) -> StartedVariation:
    """Start the edited round."""
    started = runtime.start_variation(episode_id, request.round, request.edits, on_copies=request.on_copies)
    return StartedVariation(episode=started)


def check_edits(runtime: Runtime, episode_id: str, request: RoundEdits) -> StepFates:
    """The steps that these edits would run again, and those that they would keep, by the numbers that the edits use."""
    episode, pool = runtime.open_recorded(episode_id)
    return describe_fates(vary(episode, request.round, request.edits, pool), pool)


async def check_variation(origin: Episode, pool: Pool, number: int, edits: Sequence[AnyEdit]) -> StepFates:
    """The same for a run that no studio has open. Raises InvalidEdits."""
    async with live_pool(pool) as live:
        return describe_fates(vary(origin, number, edits, live), live)


def describe_fates(variation: Variation, pool: LivePool | None = None) -> StepFates:
    """What a variation calls and keeps, by the numbers that its edits use; with the recorded run's pool also which of
    the calls may change something."""
    old = {new: k for k, new in variation.ids.items()}
    return StepFates(
        rerun=sorted(old[new] for new in variation.rerun),
        kept=sorted(old[new] for new in variation.kept),
        dropped=variation.dropped,
        effectful=sorted(old[new] for new in list_effectful_steps(variation, pool)) if pool else [],
    )


# What came of it


def list_variations(store: Store, episode_id: str) -> VariationsDocument:
    """List the what-ifs of a run; of a what-if also the run that it varies, its edits and the difference."""
    traces = store.traces
    traces.row(episode_id)
    made = [_build_result(row) for row in traces.variations(episode_id)]
    episode = traces.episode(episode_id)
    what_if = episode.started.what_if if episode.started else None
    if what_if is None:
        return VariationsDocument(variations=made)
    try:
        origin_row, origin = traces.row(what_if.episode), traces.episode(what_if.episode)
    except EpisodeNotFound:
        return VariationsDocument(variations=made)
    return VariationsDocument(
        origin=_build_result(origin_row),
        result=_build_result(traces.row(episode_id)),
        round=what_if.round,
        dropped=sum(done.number > what_if.round for done in origin.rounds),
        kept=len(what_if.kept),
        rerun=sum(run.started_at is not None for run in episode.steps.values()),
        edits=[_describe_edit(edit, origin, what_if.round) for edit in what_if.edits],
        differences=diff_steps(place_steps(origin), place_steps(episode)).counts(),
        variations=made,
        copies=_describe_copies(episode),
    )


def _describe_copies(episode: Episode) -> CopiesDocument | None:
    """What a what-if on copies left alone, and what it changed on the copies."""
    started, compared = episode.started, episode.compared
    if started is None or started.what_if is None or not started.what_if.on_copies:
        return None
    changes = [ChangeDocument.model_validate(change) for change in compared.changes] if compared else []
    return CopiesDocument(places=list(started.what_if.on_copies), compared=compared is not None, changes=changes)


def _build_result(row: EpisodeRow) -> RunResult:
    return RunResult(
        id=row.id,
        orchestrator=row.orchestrator,
        state=row.state,
        answer=row.answer,
        correct=row.correct,
        started_at=row.started_at,
        wall_s=row.wall_s,
        counts=row.counts,
        tokens=row.tokens,
        cost=row.cost,
    )


def _describe_edit(edit: AnyEdit, origin: Episode, number: int) -> EditDocument:
    """An edit in words: what it did, to which step, and every field that is another now."""
    if isinstance(edit, SetAnswer):
        done = next((done for done in origin.rounds if done.number == number), None)
        before = done.turn.answer if done and done.turn else None
        fields = [EditedField(field="answer", before=_as_text(before), after=_as_text(edit.answer))]
        return EditDocument(edit=edit.edit, step=None, fields=fields)
    run = origin.steps.get(edit.step)
    old = run.step if run else None
    name = edit.worker if isinstance(edit, AddStep) else old.worker if old else ""
    fields = _list_fields(old, edit) if isinstance(edit, ChangeStep | AddStep) else []
    assert isinstance(edit, ChangeStep | AddStep | RemoveStep | RunAgain), "the answer was dealt with"
    return EditDocument(edit=edit.edit, step=edit.step, worker=name, fields=fields)


def _list_fields(old: Step | None, new: ChangeStep | AddStep) -> list[EditedField]:
    before = {"worker": old.worker, **_write_arguments(old.arguments), "sees": _join_steps(old.access)} if old else {}
    after = {"worker": new.worker, **_write_arguments(new.arguments), "sees": _join_steps(new.access)}
    names = dict.fromkeys([*before, *after])
    return [
        EditedField(field=name, before=before.get(name, ""), after=after.get(name, ""))
        for name in names
        if before.get(name, "") != after.get(name, "")
    ]


def _write_arguments(arguments: Mapping[str, JsonValue]) -> dict[str, str]:
    return {name: _as_text(value) for name, value in arguments.items()}


def _join_steps(access: tuple[int, ...]) -> str:
    return ", ".join(map(str, access)) or "nothing"


def _as_text(value: JsonValue) -> str:
    return "" if value is None else as_text(value)
