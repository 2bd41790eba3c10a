"""Trace -> networkx: steps as nodes, access-list entries as edges.

The graph is the model behind the page's drawing, its exports and its statistics; layered_layout.py places it.
"""

from __future__ import annotations

import networkx as nx

from orchestrator.engine.episode import Episode
from orchestrator.layers import is_used, step_layers
from orchestrator.quotes import references
from orchestrator.traces.episode_totals import critical_path
from pool_registry.kinds import role_of
from pool_registry.pool import Pool

ANSWER = "answer"


def episode_graph(episode: Episode, pool: Pool | None = None) -> nx.DiGraph:
    """The episode so far as a DAG.

    A node is a step id with attributes run (StepRun), kind, role, layer (column), lane (round number) and
    critical; an edge (k, step) says that the step may see k, `used` whether it did. Once the orchestrator
    has named its answer there is a node ANSWER, with an edge from each step that the answer quotes.
    """
    graph = nx.DiGraph()
    kinds = {spec.name: spec.kind for spec in pool.workers} if pool else {}
    on_path = set(critical_path(episode))
    for run in episode.steps.values():
        kind = kinds.get(run.step.worker, "")
        graph.add_node(
            run.step.id, run=run, kind=kind, role=role_of(kind), lane=run.round, critical=run.step.id in on_path
        )
    for run in episode.steps.values():
        for k in run.step.access:
            if k in episode.steps and k < run.step.id:
                role = graph.nodes[run.step.id]["role"]
                graph.add_edge(k, run.step.id, used=is_used(run.step, k, role))
    _add_answer(graph, episode)
    _assign_layers(graph, episode)
    return graph


def _add_answer(graph: nx.DiGraph, episode: Episode) -> None:
    turn = episode.rounds[-1].turn if episode.rounds else None  # an earlier answer quoted a failed step
    if turn is None or turn.error is not None or not turn.has_answer:
        return
    graph.add_node(ANSWER, lane=0)
    for k in references(turn.answer):
        graph.add_edge(k, ANSWER, used=True)


def _assign_layers(graph: nx.DiGraph, episode: Episode) -> None:
    """Assign columns: dataflow layers within a round, every round to the right of the one before."""
    base = 0
    for done in episode.rounds:
        layers = step_layers(run.step for run in done.steps)
        nx.set_node_attributes(graph, {k: base + layer for k, layer in layers.items()}, "layer")
        base += max(layers.values(), default=-1) + 1
    if ANSWER in graph:
        graph.nodes[ANSWER]["layer"] = base
