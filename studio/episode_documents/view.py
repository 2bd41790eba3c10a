"""An episode as the Run page draws it: its view, and the details of a step or a turn (schema.py has the documents)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, TypedDict, cast

import networkx as nx

from orchestrator.agreement import describe_agreement, is_unsure
from orchestrator.choice.describe_choice import describe_choice, describe_confidence
from orchestrator.choice.weigh_answers import SURE
from orchestrator.engine.episode import Episode, Round, StepRun
from orchestrator.engine.events import EVALUATION, Graded, Retried
from orchestrator.failure_memory.describe_retry import describe_retry, has_run
from orchestrator.graphs.alignment import AlignedGraph
from orchestrator.graphs.episode_graph import ANSWER, episode_graph
from orchestrator.graphs.folded_layout import compute_folded_layout
from orchestrator.graphs.layered_layout import NODE_WIDTH, Band, GraphLayout, Spacing, svg_path
from orchestrator.out_of_depth.gauge import describe_depth, is_beyond
from orchestrator.plan import (
    AnswerConfidence,
    OutOfDepth,
    ShownWorkers,
    Turn,
    Vote,
)
from orchestrator.policies.labels import label_orchestrator
from orchestrator.reader.refusal import is_refusal
from orchestrator.repairs.table import OWN_TURNS, label_repair
from orchestrator.traces.episode_totals import compute_totals
from orchestrator.traces.step_counts import find_tries
from pool_registry.actions import NO_USAGE, Observation, as_text
from pool_registry.kinds import icon_of, role_of
from pool_registry.pool import Pool
from studio.episode_documents.arguments import describe_arguments
from studio.episode_documents.audit import build_request, list_audit
from studio.episode_documents.chance import show_chance
from studio.episode_documents.context import describe_use, estimate_turn_context
from studio.episode_documents.final_answer import build_final_view
from studio.episode_documents.follow_up import build_follow_up_view
from studio.episode_documents.schema import (
    AgreementView,
    AnswerChance,
    AnswerNode,
    AnswerVotes,
    ConfidenceView,
    CountOf,
    Edge,
    EpisodeHead,
    EpisodeView,
    Graph,
    Lane,
    Offer,
    OutOfDepthView,
    RetriedView,
    ReusedStep,
    SeenStep,
    ShownWorker,
    ShownWorkersDetail,
    StepBinding,
    StepDetail,
    StepNode,
    StepStatus,
    TurnDetail,
    TurnStatus,
    TurnView,
    Verdict,
    ViewPatch,
    VoteDetail,
)
from studio.episode_documents.served import build_served_view

if TYPE_CHECKING:
    from orchestrator.traces.store import EpisodeRow  # a published Space draws episodes, too, and has no database

SHORT = 160  # characters of an instruction on a card
LANE_PADDING = 14


def build_episode_view(
    episode: Episode,
    row: EpisodeRow,
    pool: Pool | None,
    version: int | None,
    aligned: AlignedGraph | None = None,
    offers: Sequence[Offer] = (),
) -> EpisodeView:
    """The whole view of an episode so far; `aligned` places its steps beside those of other episodes."""
    graph = aligned.graph if aligned else episode_graph(episode, pool)
    return EpisodeView(
        clock_s=episode.last_at,
        episode=_head(episode, row, version, offers),
        graph=_graph(graph, aligned.layout if aligned else compute_folded_layout(graph), episode),
        turns=[_turn(turn) for turn in episode.rounds],
        totals=compute_totals(episode),
    )


def build_view_patch(
    episode: Episode, row: EpisodeRow, pool: Pool | None, version: int | None, offers: Sequence[Offer] = ()
) -> ViewPatch:
    """What may change without the graph changing its shape: states, times, totals."""
    view = build_episode_view(episode, row, pool, version, offers=offers)
    return ViewPatch(
        clock_s=view.clock_s, episode=view.episode, turns=view.turns, totals=view.totals, nodes=view.graph.nodes
    )


def _head(episode: Episode, row: EpisodeRow, version: int | None, offers: Sequence[Offer]) -> EpisodeHead:
    started, ended, graded = episode.started, episode.ended, episode.graded
    return EpisodeHead(
        id=episode.id,
        query=row.query,
        pool=row.pool,
        pool_version=version,
        orchestrator=row.orchestrator,
        orchestrator_label=label_orchestrator(row.orchestrator),
        state=_episode_state(episode, row),
        outcome=ended.outcome if ended else None,
        reason=ended.reason if ended else None,
        answer=None if episode.shown_answer is None else as_text(episode.shown_answer),
        final=build_final_view(episode),
        refused=is_refusal(episode.answer),
        started_at=row.started_at,
        depth=row.depth,
        parent=started.parent if started else None,
        what_if_of=started.what_if.episode if started and started.what_if else None,
        follow_up=build_follow_up_view(started.follow_up) if started and started.follow_up else None,
        task=started.task if started else None,
        verdict=_build_verdict(episode, graded) if graded else None,
        not_judged=episode.not_judged.reason if episode.not_judged else None,
        agreement=AgreementView(**asdict(episode.agreement)) if episode.agreement else None,
        chance=show_chance(episode, row.orchestrator),
        confidence=_show_confidence(*episode.confidence) if episode.confidence else None,
        out_of_depth=_out_of_depth(episode.out_of_depth, row.orchestrator),
        offers=list(offers),
        served=build_served_view(started.served_as) if started and started.served_as else None,
        retry_of=started.retry_of if started else "",
        retried=_build_retried(episode.retried) if episode.retried else None,
        mode=started.mode.name if started and started.mode else None,
        limits=episode.run_limits.describe(),
        approval=build_request(episode),
        audit=list_audit(episode),
    )


def _build_retried(retried: Retried) -> RetriedView:
    return RetriedView(episode=retried.episode if has_run(retried) else "", sentence=describe_retry(retried))


def _build_verdict(episode: Episode, graded: Graded) -> Verdict:
    """An evaluation grades what a finalizer wrote and a person what they read; any other verdict is on the plan's own
    answer."""
    is_final_graded = episode.source == EVALUATION or episode.started is None or episode.started.task is None
    of_plan = episode.final is not None and episode.final.is_written and not is_final_graded
    return Verdict(correct=graded.correct, expected=graded.expected, of_plan=of_plan)


def _episode_state(episode: Episode, row: EpisodeRow) -> Literal["running", "waiting", "ended", "interrupted"]:
    if episode.ended is not None:
        return "ended"
    if row.state == "interrupted":
        return "interrupted"
    return "waiting" if episode.held is not None else "running"


def _out_of_depth(depth: OutOfDepth | None, orchestrator: str) -> OutOfDepthView | None:
    if depth is None:
        return None
    return OutOfDepthView(
        probability=depth.probability,
        sentence=describe_depth(depth, label_orchestrator(orchestrator)),
        beyond=is_beyond(depth),
    )


def _find_kept(episode: Episode) -> Mapping[int, int]:
    """Map each step of a what-if whose observation was kept to the step of the varied run that it comes from."""
    what_if = episode.started.what_if if episode.started else None
    return what_if.kept if what_if else {}


def _graph(graph: nx.DiGraph, layout: GraphLayout, episode: Episode) -> Graph:
    kept = _find_kept(episode)
    remarks = {done.number: _remark(done, episode.rounds[0]) for done in episode.rounds}
    tries = find_tries(episode)
    return Graph(
        width=layout.width,
        height=layout.height,
        node_width=NODE_WIDTH,
        node_height=layout.spacing.node_height,
        lanes=_lanes(graph, layout, remarks),
        nodes=[_node(graph, layout, episode, k, kept.get(k), k in tries) for k in graph if k != ANSWER],
        edges=[
            Edge(source=cast(int, u), target=cast(int, v), used=graph.edges[u, v]["used"], path=svg_path(route))
            for (u, v), route in layout.routes.items()
            if v != ANSWER
        ],
        answer=_answer(layout) if ANSWER in graph else None,
    )


def _answer(layout: GraphLayout) -> AnswerNode:
    x, y = layout.places[ANSWER]
    edges = [edge for edge in layout.routes if edge[1] == ANSWER]
    return AnswerNode(
        x=x,
        y=y,
        width=NODE_WIDTH,
        height=layout.spacing.node_height,
        sources=[cast(int, source) for source, _ in edges],
        paths=[svg_path(layout.routes[edge]) for edge in edges],
    )


def _remark(done: Round, first: Round) -> str:
    """What a round does about earlier ones: it is planned anew by the model, tries other words for rejected calls, or
    another plan in place of one that failed. Where the first turn was voted on all are."""
    if done.turn is None or first.turn is None:
        return ""
    if OWN_TURNS.intersection(done.turn.repairs):
        return ": planned again"
    if done.turn.trial:
        return ": other words"
    return ": another plan" if done.turn.vote is not None and first.turn.vote is None else ""


def _lanes(graph: nx.DiGraph, layout: GraphLayout, remarks: Mapping[int, str]) -> list[Lane]:
    """One lane a round and band: the round, its remark, and how many steps it has in all."""
    columns: dict[int, dict[int, int]] = {}
    for k, layer in graph.nodes(data="layer"):
        if k != ANSWER:
            counts = columns.setdefault(graph.nodes[k]["lane"], {})
            counts[layer] = counts.get(layer, 0) + 1
    lanes = []
    for number, counts in sorted(columns.items()):
        label = f"Round {number}{remarks.get(number, '')}"
        parts = [part for part in (_cut_lane(counts, band, layout.spacing) for band in layout.bands) if part]
        for place, part in enumerate(parts):
            note = _count_steps(counts) if place == 0 else "goes on"
            lanes.append(Lane(**part, round=number, label=label, note=note))
    return lanes


def _cut_lane(counts: Mapping[int, int], band: Band, spacing: Spacing) -> dict[str, float] | None:
    """Where the columns of a round stand in a band; None where there are none."""
    layers = [layer for layer in counts if band.first <= layer < band.end]
    if not layers:
        return None
    left, right = spacing.left_of(min(layers) - band.first), spacing.left_of(max(layers) - band.first) + NODE_WIDTH
    width = right - left + 2 * LANE_PADDING
    return {"x": left - LANE_PADDING, "y": band.top, "width": width, "height": band.bottom - band.top + LANE_PADDING}


def _count_steps(counts: Mapping[int, int]) -> str:
    """ "3 in parallel", "5 steps"; a round of one step needs no word."""
    steps = sum(counts.values())
    if steps == 1:
        return ""
    return f"{steps} in parallel" if len(counts) == 1 else f"{steps} steps"


def _node(
    graph: nx.DiGraph, layout: GraphLayout, episode: Episode, k: int, reused: int | None, tried: bool
) -> StepNode:
    data = graph.nodes[k]
    run: StepRun = data["run"]
    x, y = layout.places[k]
    instruction, planned = describe_arguments(run, episode, SHORT)
    return StepNode(
        id=k,
        x=round(x),
        y=round(y),
        worker=run.step.worker or "?",
        kind=data["kind"],
        role=data["role"],
        icon=icon_of(data["kind"]),
        instruction=instruction,
        planned=planned,
        need=run.step.need[:SHORT],
        choice=describe_choice(run.step.choice),
        round=run.round,
        layer=data["layer"],
        access=list(run.step.access),
        used=[u for u in graph.predecessors(k) if graph.edges[u, k]["used"]],
        status=_status(run, tried),
        tried=tried,
        started_at=run.started_at,
        ended_at=run.ended_at,
        critical=data["critical"],
        reused=reused,
        **_call_figures(run.observation),
    )


class _CallFigures(TypedDict):
    latency_s: float | None
    tokens_in: int
    tokens_out: int
    cost: float
    code: str | None
    child: str | None
    cached: bool
    answered_by: str | None


def _call_figures(observation: Observation | None) -> _CallFigures:
    usage = observation.usage if observation else NO_USAGE
    return {
        "latency_s": observation.latency_s if observation else None,
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "cost": usage.cost,
        "code": observation.error.code if observation and observation.error else None,
        "child": observation.episode if observation else None,
        "cached": bool(observation and observation.cached),
        "answered_by": observation.answered_by if observation else None,
    }


def _status(run: StepRun, tried: bool) -> StepStatus:
    return "TRIED" if tried and run.failed else cast(StepStatus, run.state)


def _turn(played: Round) -> TurnView:
    turn = played.turn
    shown, recalled = (turn.shown, turn.recalled) if turn else (None, None)
    return TurnView(
        round=played.number,
        started_at=played.started_at,
        ended_at=played.turn_ended_at,
        status=_turn_status(turn),
        error=turn.error if turn else None,
        steps=[run.step.id for run in played.steps],
        answers=bool(turn and turn.has_answer),
        tokens_in=turn.usage.tokens_in if turn else 0,
        tokens_out=turn.usage.tokens_out if turn else 0,
        shown=CountOf(count=len(shown.workers), of=shown.of) if shown else None,
        recalled=CountOf(count=len(recalled.lessons), of=recalled.of) if recalled else None,
    )


def _turn_status(turn: Turn | None) -> TurnStatus:
    if turn is None:
        return "RUNNING"
    if turn.failed:
        return "EXEC_ERR"
    return "OK" if turn.error is None else "PARSE_ERR"


def build_step_detail(episode: Episode, step_id: int, pool: Pool | None) -> StepDetail | None:
    """Everything about one step: what it was allowed to see, what was sent, what came back. None when there is no such
    step."""
    run = episode.steps.get(step_id)
    if run is None:
        return None
    spec = pool.find_worker(run.step.worker) if pool else None
    tries = find_tries(episode)
    observation = run.observation
    return StepDetail(
        id=step_id,
        worker=run.step.worker,
        kind=spec.kind if spec else "",
        role=role_of(spec.kind) if spec else "tool",
        icon=icon_of(spec.kind) if spec else "",
        description=spec.description if spec else "",
        need=run.step.need,
        choice=describe_choice(run.step.choice),
        binding=_find_binding(episode, run),
        round=run.round,
        status=_status(run, step_id in tries),
        error=observation.error.message if observation and observation.error else None,
        arguments=dict(run.step.arguments),
        resolved=dict(run.arguments) if run.arguments is not None else None,
        visible=[_visible_step(episode, k, k in tries) for k in run.step.access if k in episode.steps and k < step_id],
        prompt=observation.prompt if observation else None,
        value=observation.value if observation else None,
        instead_of=observation.instead_of if observation else None,
        reused=_find_reused(episode, step_id),
        context=describe_use(observation.context, episode.steps) if observation and observation.context else None,
        notes=list(observation.notes) if observation else [],
        **_call_figures(observation),
    )


def _find_binding(episode: Episode, run: StepRun) -> StepBinding | None:
    """How a step came to its worker, where its turn asked for another."""
    turns = (played.turn for played in episode.rounds if played.number == run.round)
    bound = next((item for turn in turns if turn for item in turn.bindings if item.step == run.step.id), None)
    if bound is None:
        return None
    return StepBinding(
        learnt=bound.learnt,
        worker=bound.worker,
        likeness=bound.likeness,
        by=bound.by,
        parameters=dict(bound.parameters),
    )


def _find_reused(episode: Episode, step_id: int) -> ReusedStep | None:
    """Find the step of another run that a what-if took an observation from."""
    what_if = episode.started.what_if if episode.started else None
    old = _find_kept(episode).get(step_id)
    return ReusedStep(episode=what_if.episode, step=old) if what_if and old is not None else None


def _visible_step(episode: Episode, k: int, tried: bool) -> SeenStep:
    run = episode.steps[k]
    observation = run.observation
    failure = observation.error if observation else None
    return SeenStep(
        step=k,
        worker=run.step.worker,
        status=_status(run, tried),
        value=observation.value if observation else None,
        error=f"{failure.code}: {failure.message}" if failure else None,
    )


def build_turn_detail(episode: Episode, number: int) -> TurnDetail | None:
    """One turn of the orchestrator: the text it wrote and the prompt it was sent. None when there is no such turn."""
    played = next((played for played in episode.rounds if played.number == number), None)
    if played is None:
        return None
    turn = played.turn
    return TurnDetail(
        **_turn(played).model_dump(exclude={"shown", "recalled"}),
        text=turn.text if turn else "",
        prompt=turn.prompt if turn else None,
        shown=_rank_workers(turn.shown) if turn and turn.shown else None,
        recalled=turn.recalled if turn else None,
        vote=_describe_vote(turn.vote) if turn and turn.vote else None,
        confidence=_show_confidence(number, turn.confidence) if turn and turn.confidence else None,
        repairs=[label_repair(name) for name in turn.repairs if name not in OWN_TURNS] if turn else [],
        latency_s=(played.turn_ended_at - played.started_at) if played.turn_ended_at is not None else None,
        context=estimate_turn_context(turn, episode.query) if turn else None,
    )


def _show_confidence(number: int, confidence: AnswerConfidence) -> ConfidenceView:
    return ConfidenceView(
        round=number,
        sentence=describe_confidence(confidence),
        unsure=confidence.probability < SURE,
        answers=[AnswerChance(answer=text, chance=chance) for text, chance in confidence.answers.items()],
    )


def _describe_vote(vote: Vote) -> VoteDetail:
    return VoteDetail(
        plans=vote.sampled,
        agreed=vote.votes,
        answer=vote.chosen_answer,
        unreadable=vote.unreadable,
        failed=vote.failed,
        untried=vote.untried,
        incomplete=vote.incomplete,
        answers=_sort_answers(vote.answers),
        unvoted=_sort_answers(vote.unvoted),
        sentence=describe_agreement(vote),
        unsure=is_unsure(vote),
        chosen_tokens=vote.chosen_usage.tokens if vote.chosen_usage else None,
    )


def _sort_answers(counts: Mapping[str, int]) -> list[AnswerVotes]:
    """The answer of most plans first."""
    most_first = sorted(counts.items(), key=lambda pair: -pair[1])
    return [AnswerVotes(answer=answer, votes=votes) for answer, votes in most_first]


def _rank_workers(shown: ShownWorkers) -> ShownWorkersDetail:
    best_first = sorted(shown.workers.items(), key=lambda pair: -pair[1])
    workers = [ShownWorker(worker=name, score=score) for name, score in best_first]
    return ShownWorkersDetail(count=len(workers), of=shown.of, by=shown.by, workers=workers)
