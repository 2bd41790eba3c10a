"""Places a layered DAG: columns by the node attribute `layer`, few crossings, straight long edges.

The steps of Sugiyama, Tagawa and Toda (1981): dummy nodes for edges that cross columns, barycentre
sweeps for the order in each column, then repeated averaging for the heights. Units are pixels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from statistics import fmean

import networkx as nx

NODE_WIDTH, NODE_HEIGHT = 200, 86
COLUMN_GAP, ROW_GAP, DUMMY_HEIGHT = 64, 20, 12
TOP = 48  # room for the lane's heading
ORDER_SWEEPS, HEIGHT_SWEEPS = 8, 12
MAX_VIAS = 600  # 50 steps that all see each other would have 18,000 and take seconds

Node = Hashable
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """`places` are the nodes' upper left corners, `routes` the points that an edge runs through."""

    places: dict[Node, Point]
    routes: dict[tuple[Node, Node], list[Point]]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class _Dummy:
    """A dummy node: where the edge (source, target) crosses column `layer`."""

    source: Node
    target: Node
    layer: int


def compute_layout(graph: nx.DiGraph) -> GraphLayout:
    """The layout of a DAG whose nodes carry `layer`; every edge leads to a higher layer."""
    proper, chains = _insert_dummies(graph)
    columns = _order_columns(proper)
    middle = _compute_heights(proper, columns)
    top = min((middle[v] - _height(v) / 2 for v in middle), default=0.0)
    middle = {v: y - top + TOP for v, y in middle.items()}
    places = {v: (_x(graph.nodes[v]["layer"]), middle[v] - NODE_HEIGHT / 2) for v in graph}
    routes = {edge: _route(edge, chain, places, middle) for edge, chain in chains.items()}
    width = max((x + NODE_WIDTH for x, _ in places.values()), default=0.0)
    height = max((y + _height(v) / 2 for v, y in middle.items()), default=0.0)
    return GraphLayout(places, routes, width, height)


def svg_path(points: Iterable[Point]) -> str:
    """Points as an SVG path: level pieces are lines, the others S-curves that leave and arrive level."""
    iterator = iter(points)
    x0, y0 = next(iterator)
    pieces = [f"M{x0:.0f},{y0:.0f}"]
    for x, y in iterator:
        if abs(y - y0) < 1:
            pieces.append(f"L{x:.0f},{y:.0f}")
        else:
            half = (x0 + x) / 2
            pieces.append(f"C{half:.0f},{y0:.0f} {half:.0f},{y:.0f} {x:.0f},{y:.0f}")
        x0, y0 = x, y
    return "".join(pieces)


def _insert_dummies(graph: nx.DiGraph) -> tuple[nx.DiGraph, dict[tuple[Node, Node], list[_Dummy]]]:
    proper = nx.DiGraph()
    chains: dict[tuple[Node, Node], list[_Dummy]] = {}
    for v, layer in graph.nodes(data="layer"):
        proper.add_node(v, layer=layer)
    layers = dict(graph.nodes(data="layer"))
    left = MAX_VIAS
    for source, target in sorted(graph.edges, key=lambda edge: layers[edge[1]] - layers[edge[0]]):
        between = range(layers[source] + 1, layers[target])
        left -= len(between)  # the longest edges of a crowded graph run straight
        chain = [_Dummy(source, target, layer) for layer in between] if left >= 0 else []
        for via in chain:
            proper.add_node(via, layer=via.layer)
        nx.add_path(proper, [source, *chain, target])
        chains[source, target] = chain
    return proper, chains


def _order_columns(graph: nx.DiGraph) -> list[list[Node]]:
    """Nodes by column, each column in an order with few crossings (barycentre sweeps)."""
    count = max((layer for _, layer in graph.nodes(data="layer")), default=-1) + 1
    columns: list[list[Node]] = [[] for _ in range(count)]
    for v, layer in graph.nodes(data="layer"):
        columns[layer].append(v)
    before = {v: list(graph.predecessors(v)) for v in graph}
    after = {v: list(graph.successors(v)) for v in graph}
    position = {v: index for column in columns for index, v in enumerate(column)}
    for sweep in range(ORDER_SWEEPS):
        forward = sweep % 2 == 0
        neighbours = before if forward else after
        for layer in range(count) if forward else range(count - 1, -1, -1):
            wish = {v: fmean([position[u] for u in neighbours[v]] or [position[v]]) for v in columns[layer]}
            columns[layer].sort(key=wish.__getitem__)
            position.update({v: index for index, v in enumerate(columns[layer])})
    return columns


def _compute_heights(graph: nx.DiGraph, columns: list[list[Node]]) -> dict[Node, float]:
    """The middle of each node: pulled to its neighbours' mean, order and distances kept."""
    middle: dict[Node, float] = {}
    neighbours = {v: list(nx.all_neighbors(graph, v)) for v in graph}
    for column in columns:
        y = -sum(_height(v) + ROW_GAP for v in column) / 2
        for v in column:
            middle[v] = y + _height(v) / 2
            y += _height(v) + ROW_GAP
    for sweep in range(HEIGHT_SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wish = {v: fmean([middle[u] for u in neighbours[v]] or [middle[v]]) for v in column}
            middle.update(_spread_column(column, wish))
    return middle


def _spread_column(column: list[Node], wish: dict[Node, float]) -> dict[Node, float]:
    """Heights near the wishes that do not overlap: the mean of packing downwards and packing upwards."""
    down: dict[Node, float] = {}
    up: dict[Node, float] = {}
    for order, packed, sign in ((column, down, 1), (column[::-1], up, -1)):
        last: Node | None = None
        for v in order:
            limit = wish[v] if last is None else packed[last] + sign * _distance(last, v)
            packed[v] = max(wish[v], limit) if sign > 0 else min(wish[v], limit)
            last = v
    return {v: (down[v] + up[v]) / 2 for v in column}


def _route(
    edge: tuple[Node, Node], chain: list[_Dummy], places: dict[Node, Point], middle: dict[Node, float]
) -> list[Point]:
    source, target = edge
    points = [(places[source][0] + NODE_WIDTH, middle[source])]
    for via in chain:
        points += [(_x(via.layer), middle[via]), (_x(via.layer) + NODE_WIDTH, middle[via])]
    return [*points, (places[target][0], middle[target])]


def _x(layer: int) -> float:
    return float(layer * (NODE_WIDTH + COLUMN_GAP))


def _height(v: Node) -> float:
    return DUMMY_HEIGHT if isinstance(v, _Dummy) else NODE_HEIGHT


def _distance(above: Node, below: Node) -> float:
    return (_height(above) + _height(below)) / 2 + ROW_GAP
