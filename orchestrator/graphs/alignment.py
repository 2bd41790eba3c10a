"""Aligns the graphs of several episodes of one query for comparison: the same step stands at the same place.

All graphs are laid out as one. Rounds begin at the same column everywhere; a step in another round or layer gets a
place of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import networkx as nx

from orchestrator.engine.episode import Episode
from orchestrator.graphs.diff import PlacedStep, pair_steps, place_steps
from orchestrator.graphs.episode_graph import ANSWER, episode_graph
from orchestrator.graphs.layered_layout import GraphLayout, Node, compute_layout
from pool_registry.pool import Pool


@dataclass(frozen=True, slots=True)
class AlignedGraph:
    """An episode's graph in the common columns, its layout, and `slots`: by step id the number that it shares with
    the same step of every other episode."""

    graph: nx.DiGraph
    layout: GraphLayout
    slots: Mapping[int, int]


def align(episodes: Sequence[Episode], pools: Sequence[Pool | None], reference: int = 0) -> list[AlignedGraph]:
    """Lay out the graphs of episodes in common coordinates; steps are paired with those of the reference."""
    steps = [place_steps(episode) for episode in episodes]
    slots = assign_slots(steps, reference)
    names = [_name_nodes(placed, numbers) for placed, numbers in zip(steps, slots, strict=True)]
    columns = _first_columns(steps)
    graphs = [episode_graph(episode, pool) for episode, pool in zip(episodes, pools, strict=True)]
    union = nx.DiGraph()
    for graph, placed, named in zip(graphs, steps, names, strict=True):
        layers: dict[int | str, int] = {step.id: columns[step.round] + step.depth for step in placed}
        layers[ANSWER] = max(columns.values())
        nx.set_node_attributes(graph, layers, "layer")
        union.add_nodes_from((named[v], {"layer": layer}) for v, layer in graph.nodes(data="layer"))
        union.add_edges_from((named[u], named[v]) for u, v in graph.edges)
    layout = compute_layout(union)
    parts = [_cut_layout(layout, graph, named) for graph, named in zip(graphs, names, strict=True)]
    return [AlignedGraph(*row) for row in zip(graphs, parts, slots, strict=True)]


def assign_slots(sides: Sequence[Sequence[PlacedStep]], reference: int = 0) -> list[dict[int, int]]:
    """Number the steps of all sides (step id -> slot), so that the same step has the same slot on every side.

    All sides are paired with the reference; steps that it lacks are paired among the other sides.
    """
    slots: list[dict[int, int]] = [{} for _ in sides]
    if not sides:
        return slots
    slots[reference] = {placed.id: slot for slot, placed in enumerate(sides[reference], start=1)}
    extra: list[PlacedStep] = []  # one for each slot that the reference lacks; its id is the slot
    for side, own_slots in zip(sides, slots, strict=True):
        if own_slots is slots[reference]:
            continue
        pairs = pair_steps(sides[reference], side)
        own_slots.update({theirs: slots[reference][ours] for ours, theirs in pairs.items()})
        added = [placed for placed in side if placed.id not in own_slots]
        own_slots.update({theirs: slot for slot, theirs in pair_steps(extra, added).items()})
        for placed in added:
            if placed.id not in own_slots:
                own_slots[placed.id] = len(slots[reference]) + len(extra) + 1
                extra.append(replace(placed, step=replace(placed.step, id=own_slots[placed.id])))
    return slots


def _first_columns(sides: Sequence[Sequence[PlacedStep]]) -> dict[int, int]:
    """The first column of each round, with room for the deepest side; the last entry is the column after all rounds."""
    depths: dict[int, int] = {}
    for placed in (step for side in sides for step in side):
        depths[placed.round] = max(depths.get(placed.round, 0), placed.depth + 1)
    columns, following = {}, 0
    for number in sorted(depths):
        columns[number] = following
        following += depths[number]
    return {**columns, max(depths, default=0) + 1: following}


def _name_nodes(steps: Sequence[PlacedStep], slots: Mapping[int, int]) -> dict[Node, Node]:
    """The node of the common graph for each node of an episode's graph."""
    return {ANSWER: ANSWER} | {placed.id: (slots[placed.id], placed.round, placed.depth) for placed in steps}


def _cut_layout(whole: GraphLayout, graph: nx.DiGraph, names: Mapping[Node, Node]) -> GraphLayout:
    """The part of the common layout that one episode's graph needs."""
    places = {v: whole.places[names[v]] for v in graph}
    routes = {(u, v): whole.routes[names[u], names[v]] for u, v in graph.edges}
    return GraphLayout(places, routes, whole.width, whole.height, whole.bands, whole.spacing)
