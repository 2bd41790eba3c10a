"""The layout of a long graph for a page: its columns stand in bands below each other, as the lines of a text do.

A run of 25 steps has a dozen columns. Side by side on one screen nobody could read them. So where a graph would have to
shrink below READABLE, it is laid out in as many bands as leave it largest, with lower nodes and narrower gaps. An edge
from one band to another runs through the gaps between columns and bands, and so never cuts a node.
Units are pixels, as in layered_layout.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import networkx as nx

from orchestrator.graphs.layered_layout import (
    NODE_WIDTH,
    ROOMY,
    TOP,
    Band,
    GraphLayout,
    Node,
    Point,
    Spacing,
    compute_layout,
)

FRAME_WIDTH, FRAME_HEIGHT = 760, 540  # of the graph beside its inspector on a screen of 1440 x 900
READABLE = 0.55  # scale below which the name on a node cannot be read
GAIN = 1.1  # how much larger one more band has to make the graph
MAX_BANDS = 40
BAND_GAP = 36
DENSE = Spacing(node_height=64, column_gap=48, row_gap=12, is_packed=True)


def compute_folded_layout(graph: nx.DiGraph) -> GraphLayout:
    """The layout of a DAG whose nodes carry `layer`, in bands where that makes it easier to read."""
    rows = _count_rows(graph)
    if _find_scale(rows, 1, ROOMY) >= READABLE:
        return compute_layout(graph)
    best = 1
    for count in range(2, min(len(rows), MAX_BANDS) + 1):
        if _find_scale(rows, count, DENSE) > GAIN * _find_scale(rows, best, DENSE):
            best = count
    return _stack_bands(graph, _cut_columns(len(rows), best))


def _count_rows(graph: nx.DiGraph) -> list[int]:
    """How many nodes stand in each column."""
    layers = [layer for _, layer in graph.nodes(data="layer")]
    return [layers.count(column) for column in range(max(layers, default=-1) + 1)]


def _cut_columns(columns: int, bands: int) -> list[tuple[int, int]]:
    """Bands of nearly the same number of columns, as (first, end)."""
    sizes = (columns // bands + (place < columns % bands) for place in range(bands))
    return list(pairwise(accumulate(sizes, initial=0)))


def _find_scale(rows: Sequence[int], bands: int, spacing: Spacing) -> float:
    """About how large the graph is in the frame: 1 is its own size."""
    spans = _cut_columns(len(rows), bands)
    width = max((spacing.left_of(end - first) for first, end in spans), default=0.0)
    row = spacing.node_height + spacing.row_gap
    height = sum(TOP + BAND_GAP + row * max(rows[first:end], default=0) for first, end in spans)
    return min(FRAME_WIDTH / max(width, 1), FRAME_HEIGHT / max(height, 1))


def _stack_bands(graph: nx.DiGraph, spans: Sequence[tuple[int, int]]) -> GraphLayout:
    layers: dict[Node, int] = dict(graph.nodes(data="layer"))
    places: dict[Node, Point] = {}
    routes: dict[tuple[Node, Node], list[Point]] = {}
    bands: list[Band] = []
    top = 0.0
    for first, end in spans:
        part = graph.subgraph([v for v in graph if first <= layers[v] < end]).copy()
        for v in part:
            part.nodes[v]["layer"] -= first
        layout = compute_layout(part, DENSE)
        places |= {v: (x, y + top) for v, (x, y) in layout.places.items()}
        routes |= {edge: [(x, y + top) for x, y in route] for edge, route in layout.routes.items()}
        bands.append(Band(first, end, top, top + layout.height))
        top += layout.height + BAND_GAP
    for source, target in graph.edges:
        if (source, target) not in routes:
            band = next(band for band in bands if layers[target] < band.end)
            routes[source, target] = _route_between(places[source], places[target], band.top - BAND_GAP / 2)
    width = max((x + NODE_WIDTH for x, _ in places.values()), default=0.0)
    in_order = {edge: routes[edge] for edge in graph.edges}
    return GraphLayout(places, in_order, width, bands[-1].bottom, tuple(bands), DENSE)


def _route_between(source: Point, target: Point, level: float) -> list[Point]:
    """The points of an edge to a lower band: down beside its source, along `level` above the band of its target, and
    down beside that."""
    half = DENSE.node_height / 2
    start, end = (source[0] + NODE_WIDTH, source[1] + half), (target[0], target[1] + half)
    gap = end[0] - start[0]
    if gap <= 0:  # back to the left: turn by half on both sides
        return [start, (start[0], level), (end[0], level), end]
    if gap <= DENSE.column_gap:  # the gap between the two columns leads there
        return [start, end]
    return [start, (start[0] + DENSE.column_gap, level), (end[0] - DENSE.column_gap, level), end]
