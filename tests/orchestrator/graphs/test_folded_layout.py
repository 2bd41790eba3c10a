"""A long graph is folded into bands: larger on a screen, no two nodes overlap, and no edge cuts a node."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.graphs.folded_layout import DENSE, FRAME_HEIGHT, FRAME_WIDTH, compute_folded_layout
from orchestrator.graphs.layered_layout import NODE_HEIGHT, NODE_WIDTH, GraphLayout, compute_layout, svg_path
from tests.orchestrator.graphs.test_layered_layout import dags, layered


def find_scale(layout: GraphLayout) -> float:
    return min(FRAME_WIDTH / layout.width, FRAME_HEIGHT / layout.height)


@settings(max_examples=80, deadline=None)
@given(dags())
def test_nodes_of_a_folded_graph_never_overlap(graph: nx.DiGraph):
    layout = compute_folded_layout(graph)
    assert set(layout.places) == set(graph) and set(layout.routes) == set(graph.edges)
    tall = layout.spacing.node_height
    boxes = sorted(layout.places.values())
    for place, (x, y) in enumerate(boxes):
        assert x >= 0 and y >= 0 and x + NODE_WIDTH <= layout.width and y + tall <= layout.height + 1e-6
        for x2, y2 in boxes[place + 1 :]:
            assert x2 >= x + NODE_WIDTH or abs(y2 - y) >= tall - 1e-6


@settings(max_examples=80, deadline=None)
@given(dags())
def test_edges_join_their_nodes_and_cut_no_other(graph: nx.DiGraph):
    layout = compute_folded_layout(graph)
    for (source, target), route in layout.routes.items():
        assert route[0][0] == layout.places[source][0] + NODE_WIDTH and route[-1][0] == layout.places[target][0]
        assert svg_path(route).startswith("M")
        for (x, y), (x2, y2) in pairwise(route):
            if abs(y - y2) < 1e-6:
                assert not any(is_cut(place, min(x, x2), max(x, x2), y, layout) for place in layout.places.values())


def is_cut(place: tuple[float, float], left: float, right: float, level: float, layout: GraphLayout) -> bool:
    """Whether a level piece of an edge runs through a node."""
    x, y = place
    return x < right - 1e-6 and x + NODE_WIDTH > left + 1e-6 and y < level < y + layout.spacing.node_height


@given(st.integers(12, 60))
def test_a_chain_is_folded_and_thereby_larger(count: int):
    graph = layered([(k, k + 1) for k in range(count - 1)], count)
    folded = compute_folded_layout(graph)
    assert len(folded.bands) > 1 and folded.spacing is DENSE
    assert folded.bands[0].first == 0 and folded.bands[-1].end == count
    assert find_scale(folded) > 1.5 * find_scale(compute_layout(graph))


def test_a_graph_that_can_be_read_stays_as_it_is():
    graph = layered([(0, 2), (1, 2), (2, 3)], 4)
    assert compute_folded_layout(graph) == compute_layout(graph)
    assert compute_folded_layout(graph).spacing.node_height == NODE_HEIGHT
    assert compute_folded_layout(nx.DiGraph()).bands == compute_layout(nx.DiGraph()).bands
