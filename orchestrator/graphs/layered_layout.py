"""The layout of a layered DAG: columns by the node attribute `layer`, few crossings, straight long edges.

The method of Sugiyama, Tagawa and Toda (1981), in four stages:
1. every edge that crosses columns is cut into a chain of dummy nodes, one in each column that it crosses;
2. barycentre sweeps, left to right and back, order the nodes of each column so that few edges cross;
3. heights are pulled towards the mean of each node's neighbours, as far as order and gaps allow;
4. edges run through their dummy nodes.
Units are pixels; x grows to the right, y downwards.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from statistics import fmean

import networkx as nx

NODE_WIDTH, NODE_HEIGHT, DUMMY_HEIGHT = 200, 86, 12
TOP = 48  # room for the lane's heading
TURN = 40  # how far the handles of a turn reach; the turn itself reaches three quarters of it
ORDER_SWEEPS, HEIGHT_SWEEPS = 8, 12
MAX_DUMMIES = 600  # 50 steps that all see each other would have 18,000 and take seconds

Node = Hashable
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Spacing:
    """How tall nodes are, how far apart columns and rows, and whether the graph is only as tall as its fullest column,
    at the cost of less level edges."""

    node_height: int = NODE_HEIGHT
    column_gap: int = 64
    row_gap: int = 20
    is_packed: bool = False

    def left_of(self, column: int) -> float:
        """The left side of a column."""
        return float(column * (NODE_WIDTH + self.column_gap))


ROOMY = Spacing()


@dataclass(frozen=True, slots=True)
class Band:
    """Columns that stand side by side: from layer `first` to before layer `end`, in the heights `top` to `bottom`."""

    first: int
    end: int
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """`places` are the nodes' upper left corners, `routes` the points that an edge runs through, from the right side
    of its source to the left side of its target. `bands` stand below each other; most graphs have one."""

    places: dict[Node, Point]
    routes: dict[tuple[Node, Node], list[Point]]
    width: float
    height: float
    bands: tuple[Band, ...] = ()
    spacing: Spacing = ROOMY


@dataclass(frozen=True, slots=True)
class _Dummy:
    """A dummy node: where the edge (source, target) crosses column `layer`."""

    source: Node
    target: Node
    layer: int


def compute_layout(graph: nx.DiGraph, spacing: Spacing = ROOMY) -> GraphLayout:
    """The layout of a DAG whose nodes carry `layer`; every edge leads to a higher layer."""
    proper, chains = _insert_dummies(graph)
    columns = _order_columns(proper)
    middle = _compute_heights(proper, columns, spacing)
    # Heights are relative so far, around 0: move everything down so that the highest node begins at TOP.
    top = min((middle[v] - _height(v, spacing) / 2 for v in middle), default=0.0)
    middle = {v: y - top + TOP for v, y in middle.items()}
    places = {v: (spacing.left_of(graph.nodes[v]["layer"]), middle[v] - spacing.node_height / 2) for v in graph}
    routes = {edge: _route(edge, chain, places, middle, spacing) for edge, chain in chains.items()}
    width = max((x + NODE_WIDTH for x, _ in places.values()), default=0.0)
    height = max((y + _height(v, spacing) / 2 for v, y in middle.items()), default=0.0)
    return GraphLayout(places, routes, width, height, (Band(0, len(columns), 0.0, height),), spacing)


def svg_path(points: Iterable[Point]) -> str:
    """Write points as an SVG path: level pieces are lines, upright ones turns by half (to the right where the path
    begins, to the left where it ends), the others S-curves that leave and arrive level."""
    iterator = iter(points)
    x0, y0 = next(iterator)
    pieces = [f"M{x0:.0f},{y0:.0f}"]
    for x, y in iterator:
        if abs(y - y0) < 1:
            pieces.append(f"L{x:.0f},{y:.0f}")
        elif x == x0:
            side = x + (TURN if len(pieces) == 1 else -TURN)
            pieces.append(f"C{side:.0f},{y0:.0f} {side:.0f},{y:.0f} {x:.0f},{y:.0f}")
        else:
            half = (x0 + x) / 2
            pieces.append(f"C{half:.0f},{y0:.0f} {half:.0f},{y:.0f} {x:.0f},{y:.0f}")
        x0, y0 = x, y
    return "".join(pieces)


def _insert_dummies(graph: nx.DiGraph) -> tuple[nx.DiGraph, dict[tuple[Node, Node], list[_Dummy]]]:
    """The graph with a chain of dummy nodes in place of each edge that crosses columns, and the chain of each edge
    (empty for neighbouring columns). Edges beyond MAX_DUMMIES stay whole."""
    proper = nx.DiGraph()
    chains: dict[tuple[Node, Node], list[_Dummy]] = {}
    for v, layer in graph.nodes(data="layer"):
        proper.add_node(v, layer=layer)
    layers = dict(graph.nodes(data="layer"))
    budget = MAX_DUMMIES
    # Short edges first: once the budget is spent, the longest edges of a crowded graph run straight, through cards.
    for source, target in sorted(graph.edges, key=lambda edge: layers[edge[1]] - layers[edge[0]]):
        crossed = range(layers[source] + 1, layers[target])
        budget -= len(crossed)
        chain = [_Dummy(source, target, layer) for layer in crossed] if budget >= 0 else []
        for dummy in chain:
            proper.add_node(dummy, layer=dummy.layer)
        nx.add_path(proper, [source, *chain, target])
        chains[source, target] = chain
    return proper, chains


def _order_columns(graph: nx.DiGraph) -> list[list[Node]]:
    """Order the nodes of each column so that few edges cross (barycentre sweeps)."""
    count = max((layer for _, layer in graph.nodes(data="layer")), default=-1) + 1
    columns: list[list[Node]] = [[] for _ in range(count)]
    for v, layer in graph.nodes(data="layer"):
        columns[layer].append(v)
    before = {v: list(graph.predecessors(v)) for v in graph}
    after = {v: list(graph.successors(v)) for v in graph}
    position = {v: index for column in columns for index, v in enumerate(column)}
    for sweep in range(ORDER_SWEEPS):
        # A forward sweep orders each column by the one to its left, a backward sweep by the one to its right.
        forward = sweep % 2 == 0
        neighbours = before if forward else after
        for layer in range(count) if forward else range(count - 1, -1, -1):
            wish = {v: fmean([position[u] for u in neighbours[v]] or [position[v]]) for v in columns[layer]}
            columns[layer].sort(key=wish.__getitem__)  # stable: equal wishes keep their order, so sweeps settle
            position.update({v: index for index, v in enumerate(columns[layer])})
    return columns


def _compute_heights(graph: nx.DiGraph, columns: list[list[Node]], spacing: Spacing) -> dict[Node, float]:
    """The y of each node's middle: pulled towards its neighbours' mean; order and gaps are kept."""
    middle: dict[Node, float] = {}
    neighbours = {v: list(nx.all_neighbors(graph, v)) for v in graph}
    for column in columns:  # to begin with, every column is packed tightly and centred on 0
        y = -sum(_height(v, spacing) + spacing.row_gap for v in column) / 2
        for v in column:
            middle[v] = y + _height(v, spacing) / 2
            y += _height(v, spacing) + spacing.row_gap
    for sweep in range(HEIGHT_SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wish = {v: fmean([middle[u] for u in neighbours[v]] or [middle[v]]) for v in column}
            middle.update(_spread_column(column, wish, spacing))
    return _pack_columns(columns, middle, spacing) if spacing.is_packed else middle


def _pack_columns(columns: list[list[Node]], middle: dict[Node, float], spacing: Spacing) -> dict[Node, float]:
    """Move nodes towards the middle of the fullest column as far as it takes to stand beside it; order and gaps are
    kept."""
    fullest = max(columns, key=lambda column: sum(_height(v, spacing) + spacing.row_gap for v in column), default=[])
    if not fullest:
        return middle
    centre = fmean(middle[v] for v in fullest)
    half = (sum(_height(v, spacing) + spacing.row_gap for v in fullest) - spacing.row_gap) / 2
    packed = dict(middle)
    for column in columns:
        for order, sign in ((column, 1), (column[::-1], -1)):
            bound = centre - sign * half  # the edge from which the column may begin
            for v in order:
                nearest = bound + sign * _height(v, spacing) / 2
                packed[v] = max(packed[v], nearest) if sign > 0 else min(packed[v], nearest)
                bound = packed[v] + sign * (_height(v, spacing) / 2 + spacing.row_gap)
    return packed


def _spread_column(column: list[Node], wish: dict[Node, float], spacing: Spacing) -> dict[Node, float]:
    """Place nodes near their wishes without overlap: the mean of packing downwards and packing upwards.

    Packing downwards pushes a node below its wish where the one above is in the way, upwards above it; both keep every
    gap, and so does their mean, because a gap is a linear bound.
    """
    down: dict[Node, float] = {}
    up: dict[Node, float] = {}
    for order, packed, sign in ((column, down, 1), (column[::-1], up, -1)):
        last: Node | None = None
        for v in order:
            limit = wish[v] if last is None else packed[last] + sign * _distance(last, v, spacing)  # nearest free
            packed[v] = max(wish[v], limit) if sign > 0 else min(wish[v], limit)
            last = v
    return {v: (down[v] + up[v]) / 2 for v in column}


def _route(
    edge: tuple[Node, Node],
    chain: list[_Dummy],
    places: dict[Node, Point],
    middle: dict[Node, float],
    spacing: Spacing,
) -> list[Point]:
    """The points of an edge: level across every column that it crosses, so that it never cuts a card there."""
    source, target = edge
    points = [(places[source][0] + NODE_WIDTH, middle[source])]
    for dummy in chain:
        x, y = spacing.left_of(dummy.layer), middle[dummy]
        points += [(x, y), (x + NODE_WIDTH, y)]
    return [*points, (places[target][0], middle[target])]


def _height(v: Node, spacing: Spacing) -> float:
    return DUMMY_HEIGHT if isinstance(v, _Dummy) else spacing.node_height


def _distance(above: Node, below: Node, spacing: Spacing) -> float:
    """The least distance between the middles of two neighbours in a column."""
    return (_height(above, spacing) + _height(below, spacing)) / 2 + spacing.row_gap
