"""Places several episodes of one query so that they can be compared by eye: the same step stands at the same place.

All graphs are laid out as one. Rounds begin at the same column everywhere; a step that stands in another round, or
later in its round, gets another place, because it is one.
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
    """An episode's graph with the columns of all, its layout, and `slots`: the number that a step (by its id)
    shares with the same step of every other episode."""

    graph: nx.DiGraph
    layout: GraphLayout
    slots: Mapping[int, int]


def align(episodes: Sequence[Episode], pools: Sequence[Pool | None], reference: int = 0) -> list[AlignedGraph]:
    """The graphs of some episodes in one system of coordinates; steps are paired with those of the reference."""
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
    """For each side, step id -> slot; steps of different sides that are one step have one slot.

    All sides are paired with the reference; what they have beyond it is paired among them.
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
    """The column at which each round begins, wide enough for the deepest of all sides; and the one after the last."""
    depths: dict[int, int] = {}
    for placed in (step for side in sides for step in side):
        depths[placed.round] = max(depths.get(placed.round, 0), placed.depth + 1)
    columns, following = {}, 0
    for number in sorted(depths):
        columns[number] = following
        following += depths[number]
    return {**columns, max(depths, default=0) + 1: following}


def _name_nodes(steps: Sequence[PlacedStep], slots: Mapping[int, int]) -> dict[Node, Node]:
    """What a node of an episode's graph is called in the graph of all."""
    return {ANSWER: ANSWER} | {placed.id: (slots[placed.id], placed.round, placed.depth) for placed in steps}


def _cut_layout(whole: GraphLayout, graph: nx.DiGraph, names: Mapping[Node, Node]) -> GraphLayout:
    """The places of all, as far as one episode's graph needs them."""
    places = {v: whole.places[names[v]] for v in graph}
    routes = {(u, v): whole.routes[names[u], names[v]] for u, v in graph.edges}
    return GraphLayout(places, routes, whole.width, whole.height)
