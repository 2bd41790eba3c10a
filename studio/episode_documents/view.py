"""An episode as the Run page draws it: one JSON document, and the details of a step or a turn.

The keys are the contract with assets/web/run/run_view.js; times are seconds since the episode began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import networkx as nx

from orchestrator.engine.episode import Episode, Round, StepRun
from orchestrator.graphs.alignment import AlignedGraph
from orchestrator.graphs.episode_graph import ANSWER, episode_graph
from orchestrator.graphs.layered_layout import (
    COLUMN_GAP,
    NODE_HEIGHT,
    NODE_WIDTH,
    GraphLayout,
    compute_layout,
    svg_path,
)
from orchestrator.plan import ShownWorkers
from orchestrator.traces.episode_totals import compute_totals
from pool_registry.actions import Observation, as_text
from pool_registry.kinds import icon_of, role_of
from pool_registry.pool import Pool

if TYPE_CHECKING:
    from orchestrator.traces.store import EpisodeRow  # a published Space draws episodes, too, and has no database

SHORT = 160  # characters of an instruction on a card
LANE_PADDING = 14


def episode_view(
    episode: Episode, row: EpisodeRow, pool: Pool | None, version: int | None, aligned: AlignedGraph | None = None
) -> dict[str, Any]:
    """The whole view of an episode so far; `aligned` places its steps beside those of other episodes."""
    graph = aligned.graph if aligned else episode_graph(episode, pool)
    return {
        "clock_s": episode.last_at,
        "episode": _head(episode, row, version),
        "graph": _graph(graph, aligned.layout if aligned else compute_layout(graph), _kept(episode)),
        "turns": [_turn(done) for done in episode.rounds],
        "totals": asdict(compute_totals(episode)),
    }


def view_patch(episode: Episode, row: EpisodeRow, pool: Pool | None, version: int | None) -> dict[str, Any]:
    """What may change without the graph changing its shape: states, times, totals."""
    view = episode_view(episode, row, pool, version)
    return {
        "clock_s": view["clock_s"],
        "episode": view["episode"],
        "turns": view["turns"],
        "totals": view["totals"],
        "nodes": view["graph"]["nodes"],
    }


def _head(episode: Episode, row: EpisodeRow, version: int | None) -> dict[str, Any]:
    started, ended, graded = episode.started, episode.ended, episode.graded
    state = "ended" if ended else ("interrupted" if row.state == "interrupted" else "running")
    return {
        "id": episode.id,
        "query": row.query,
        "pool": row.pool,
        "pool_version": version,
        "orchestrator": row.orchestrator,
        "state": state,
        "outcome": ended.outcome if ended else None,
        "reason": ended.reason if ended else None,
        "answer": None if episode.answer is None else as_text(episode.answer),
        "started_at": row.started_at,
        "depth": row.depth,
        "parent": asdict(started.parent) if started and started.parent else None,
        "what_if_of": started.what_if.episode if started and started.what_if else None,
        "task": asdict(started.task) if started and started.task else None,
        "verdict": {"correct": graded.correct, "expected": graded.expected} if graded else None,
    }


def _kept(episode: Episode) -> Mapping[int, int]:
    """Of a what-if: its steps whose observation was taken over, and the step of the varied run that made it."""
    what_if = episode.started.what_if if episode.started else None
    return what_if.kept if what_if else {}


def _graph(graph: nx.DiGraph, layout: GraphLayout, kept: Mapping[int, int]) -> dict[str, Any]:
    answer = None
    if ANSWER in graph:
        x, y = layout.places[ANSWER]
        edges = [edge for edge in layout.routes if edge[1] == ANSWER]
        answer = {
            "x": x,
            "y": y,
            "width": NODE_WIDTH,
            "height": NODE_HEIGHT,
            "from": [edge[0] for edge in edges],
            "paths": [svg_path(layout.routes[edge]) for edge in edges],
        }
    return {
        "width": layout.width,
        "height": layout.height,
        "node_width": NODE_WIDTH,
        "node_height": NODE_HEIGHT,
        "lanes": _lanes(graph),
        "nodes": [{**_node(graph, layout, k), "reused": kept.get(k)} for k in graph if k != ANSWER],
        "edges": [
            {"from": u, "to": v, "used": graph.edges[u, v]["used"], "path": svg_path(route)}
            for (u, v), route in layout.routes.items()
            if v != ANSWER
        ],
        "answer": answer,
    }


def _lanes(graph: nx.DiGraph) -> list[dict[str, Any]]:
    """One lane a column: its round, and how many steps stand in it."""
    columns: dict[int, list[int]] = {}
    for k, layer in graph.nodes(data="layer"):
        if k != ANSWER:
            columns.setdefault(layer, []).append(graph.nodes[k]["lane"])
    lanes = []
    for layer, rounds in sorted(columns.items()):
        first = layer == 0 or rounds[0] not in columns.get(layer - 1, [])
        lanes.append(
            {
                "x": layer * (NODE_WIDTH + COLUMN_GAP) - LANE_PADDING,
                "width": NODE_WIDTH + 2 * LANE_PADDING,
                "round": rounds[0],
                "label": f"Round {rounds[0]}" if first else "then",
                "note": f"{len(rounds)} in parallel" if len(rounds) > 1 else "",
            }
        )
    return lanes


def _node(graph: nx.DiGraph, layout: GraphLayout, k: int) -> dict[str, Any]:
    data = graph.nodes[k]
    run: StepRun = data["run"]
    observation = run.observation
    x, y = layout.places[k]
    return {
        "id": k,
        "x": round(x),
        "y": round(y),
        "worker": run.step.worker or "?",
        "kind": data["kind"],
        "role": data["role"],
        "icon": icon_of(data["kind"]),
        "instruction": instruction(run.step.arguments)[:SHORT],
        "round": run.round,
        "layer": data["layer"],
        "access": list(run.step.access),
        "used": [u for u in graph.predecessors(k) if graph.edges[u, k]["used"]],
        "status": run.state,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "critical": data["critical"],
        **_measured(observation),
    }


def _measured(observation: Observation | None) -> dict[str, Any]:
    usage = observation.usage if observation else None
    return {
        "latency_s": observation.latency_s if observation else None,
        "tokens_in": usage.tokens_in if usage else 0,
        "tokens_out": usage.tokens_out if usage else 0,
        "cost": usage.cost if usage else 0.0,
        "code": observation.error.code if observation and observation.error else None,
        "child": observation.episode if observation else None,
        "cached": bool(observation and observation.cached),
        "answered_by": observation.answered_by if observation else None,
    }


def _turn(done: Round) -> dict[str, Any]:
    turn = done.turn
    status = "RUNNING" if turn is None else "OK" if turn.error is None else "PARSE_ERR"
    return {
        "round": done.number,
        "started_at": done.started_at,
        "ended_at": done.turn_ended_at,
        "status": "EXEC_ERR" if turn and turn.failed else status,
        "error": turn.error if turn else None,
        "steps": [run.step.id for run in done.steps],
        "answers": bool(turn and turn.has_answer),
        "tokens_in": turn.usage.tokens_in if turn else 0,
        "tokens_out": turn.usage.tokens_out if turn else 0,
        "shown": {"count": len(turn.shown.workers), "of": turn.shown.of} if turn and turn.shown else None,
        "recalled": {"count": len(turn.recalled.lessons), "of": turn.recalled.of} if turn and turn.recalled else None,
    }


def step_detail(episode: Episode, step_id: int, pool: Pool | None) -> dict[str, Any] | None:
    """Everything about one step: what it was allowed to see, what was sent, what came back."""
    run = episode.steps.get(step_id)
    if run is None:
        return None
    spec = pool.find_worker(run.step.worker) if pool else None
    observation = run.observation
    return {
        "id": step_id,
        "worker": run.step.worker,
        "kind": spec.kind if spec else "",
        "role": role_of(spec.kind) if spec else "tool",
        "icon": icon_of(spec.kind) if spec else "",
        "description": spec.description if spec else "",
        "round": run.round,
        "status": run.state,
        "error": observation.error.message if observation and observation.error else None,
        "arguments": dict(run.step.arguments),
        "resolved": dict(run.arguments) if run.arguments is not None else None,
        "visible": [_seen(episode, k) for k in run.step.access if k in episode.steps and k < step_id],
        "prompt": observation.prompt if observation else None,
        "value": observation.value if observation else None,
        "instead_of": asdict(observation.instead_of) if observation and observation.instead_of else None,
        "reused": _reused(episode, step_id),
        **_measured(observation),
    }


def _reused(episode: Episode, step_id: int) -> dict[str, Any] | None:
    """Where the observation of a step of a what-if was taken from, if it was."""
    what_if = episode.started.what_if if episode.started else None
    old = _kept(episode).get(step_id)
    return {"episode": what_if.episode, "step": old} if what_if and old is not None else None


def _seen(episode: Episode, k: int) -> dict[str, Any]:
    run = episode.steps[k]
    observation = run.observation
    failure = observation.error if observation else None
    return {
        "step": k,
        "worker": run.step.worker,
        "status": run.state,
        "value": observation.value if observation else None,
        "error": f"{failure.code}: {failure.message}" if failure else None,
    }


def turn_detail(episode: Episode, number: int) -> dict[str, Any] | None:
    """One turn of the orchestrator: the text it wrote and the prompt it was sent."""
    done = next((done for done in episode.rounds if done.number == number), None)
    if done is None:
        return None
    turn = done.turn
    return {
        **_turn(done),
        "text": turn.text if turn else "",
        "prompt": turn.prompt if turn else None,
        "shown": _shown(turn.shown) if turn and turn.shown else None,
        "recalled": asdict(turn.recalled) if turn and turn.recalled else None,
        "latency_s": (done.turn_ended_at - done.started_at) if done.turn_ended_at is not None else None,
    }


def _shown(shown: ShownWorkers) -> dict[str, Any]:
    """The workers that the orchestrator saw, best first."""
    best_first = sorted(shown.workers.items(), key=lambda pair: -pair[1])
    workers = [{"worker": name, "score": score} for name, score in best_first]
    return {"count": len(workers), "of": shown.of, "by": shown.by, "workers": workers}


def instruction(arguments: Mapping[str, Any]) -> str:
    """The arguments in one line: a lone string as it is, several as `name: value`."""
    if len(arguments) == 1:
        return as_text(next(iter(arguments.values())))
    return ", ".join(f"{name}: {as_text(value)}" for name, value in arguments.items())
