"""An episode's graph as SVG, drawn from our own layout, or as GraphML, written by networkx."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as Xml

import networkx as nx

from orchestrator.engine.episode import Episode
from orchestrator.graphs.episode_graph import ANSWER, episode_graph
from orchestrator.graphs.layered_layout import compute_layout
from orchestrator.traces.step_counts import StepCounts, describe_steps
from pool_registry.actions import as_text
from pool_registry.pool import Pool
from pool_registry.text import one_line, shorten
from studio.episode_documents.arguments import format_arguments
from studio.episode_documents.view import build_episode_view

MARGIN = 24
HEADING = 64  # room for the query above the graph
INK, MUTE, LINE, CARD, LANE = "#0f172a", "#5b6780", "#ccd3e2", "#ffffff", "#f1f3f9"
ROLES = {"agent": "#4f46e5", "tool": "#0e7490", "recursion": "#a21caf"}
STATES = {"OK": "#12703a", "PARSE_ERR": "#b42318", "EXEC_ERR": "#b42318", "TIMEOUT": "#b45309"}
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that XML cannot hold


def draw_svg(episode: Episode, headline: Any, pool: Pool | None = None) -> str:
    """Draw the graph as a stand-alone SVG. Every text in it is data, never markup."""
    view = build_episode_view(episode, headline, pool, None).to_json()
    graph = view["graph"]
    width = max(graph["width"], 420) + 2 * MARGIN
    height = graph["height"] + HEADING + 2 * MARGIN
    root = Xml.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width:.0f} {height:.0f}",
            "width": f"{width:.0f}",
            "height": f"{height:.0f}",
            "font-family": "Inter, ui-sans-serif, system-ui, sans-serif",
        },
    )
    Xml.SubElement(root, "title").text = _xml_text(f"{view['episode']['orchestrator']}: {headline.query}")
    _draw_box(root, 0, 0, width, height, "#f6f7fb", "none", 0)
    _draw_text(root, MARGIN, MARGIN + 16, shorten(one_line(headline.query), int(width / 8.2), "…"), 15, INK, "600")
    _draw_text(root, MARGIN, MARGIN + 38, _facts(view), 12, MUTE)
    body = Xml.SubElement(root, "g", {"transform": f"translate({MARGIN},{HEADING + MARGIN})"})
    for lane in graph["lanes"]:
        _draw_box(body, lane["x"], lane["y"], lane["width"], lane["height"], LANE, "none", 12)
        _draw_text(body, lane["x"] + 14, lane["y"] + 24, f"{lane['label']}  {lane['note']}".strip(), 12, MUTE, "600")
    for edge in graph["edges"]:
        _draw_path(body, edge["path"], MUTE if edge["used"] else LINE, "" if edge["used"] else "3 5")
    for path in graph["answer"]["paths"] if graph["answer"] else []:
        _draw_path(body, path, STATES["OK"], "")
    for node in graph["nodes"]:
        _draw_card(body, node, graph["node_width"], graph["node_height"])
    if graph["answer"]:
        _draw_answer(body, graph["answer"], view["episode"])
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode")


def write_graphml(episode: Episode, pool: Pool | None = None) -> str:
    """Write the graph as GraphML: nodes with worker, status, times and place, edges with `used`."""
    drawn = episode_graph(episode, pool)
    layout = compute_layout(drawn)
    plain = nx.DiGraph(query=_xml_text(episode.query), episode=episode.id)
    for node, data in drawn.nodes(data=True):
        x, y = layout.places[node]
        plain.add_node(str(node), x=float(x), y=float(y), layer=int(data["layer"]), **_attributes(node, data, episode))
    for source, target, data in drawn.edges(data=True):
        plain.add_edge(str(source), str(target), used=bool(data["used"]))
    out = io.BytesIO()
    nx.write_graphml(plain, out, prettyprint=True)
    return out.getvalue().decode()


def _attributes(node: object, data: Mapping[str, Any], episode: Episode) -> dict[str, Any]:
    if node == ANSWER:
        answer = "" if episode.final_answer is None else as_text(episode.final_answer)
        writer = episode.final.writer if episode.final is not None and episode.final.is_written else ""
        label = f"final answer written by {writer}" if writer else "answer"
        return {"label": _xml_text(label), "value": _xml_text(answer)}
    run = data["run"]
    seen = run.observation
    return {
        "label": _xml_text(f"{node} · {run.step.worker}"),
        "worker": _xml_text(str(run.step.worker)),
        "kind": data["kind"],
        "role": data["role"],
        "round": int(run.round),
        "status": run.state,
        "instruction": _xml_text(format_arguments(run.step.arguments)),
        "latency_s": float(seen.latency_s) if seen else 0.0,
        "tokens_in": int(seen.usage.tokens_in) if seen else 0,
        "tokens_out": int(seen.usage.tokens_out) if seen else 0,
        "cost": float(seen.usage.cost) if seen else 0.0,
        "critical": bool(data["critical"]),
    }


def _draw_card(parent: Xml.Element, node: Mapping[str, Any], width: float, height: float) -> None:
    group = Xml.SubElement(parent, "g", {"transform": f"translate({node['x']},{node['y']})"})
    state = STATES.get(node["status"], MUTE)
    border = LINE if node["status"] in ("OK", "PENDING", "RUNNING") else state
    _draw_box(group, 0, 0, width, height, CARD, border, 11)
    _draw_box(group, 0, 8, 4, height - 16, ROLES.get(node["role"], MUTE), "none", 2)
    _draw_text(group, 15, 25, shorten(one_line(f"{node['id']} · {node['worker']}"), 19, "…"), 13, INK, "600")
    _draw_text(group, width - 12, 25, node["status"], 11, state, "600", anchor="end")
    _draw_text(group, 15, 47, shorten(one_line(node["instruction"]), 30, "…"), 11.5, MUTE)
    latency = "" if node["latency_s"] is None else f"{node['latency_s']:.2f} s"
    _draw_text(group, 15, height - 13, latency, 11, MUTE)


def _draw_answer(parent: Xml.Element, place: Mapping[str, Any], episode: Mapping[str, Any]) -> None:
    verdict = episode["verdict"]
    colour = STATES["EXEC_ERR"] if verdict and not verdict["correct"] else STATES["OK"]
    box = Xml.SubElement(parent, "g", {"transform": f"translate({place['x']:.0f},{place['y']:.0f})"})
    _draw_box(box, 0, 0, place["width"], place["height"], CARD, colour, 43)
    final = episode["final"]
    head = f"Final answer by {final['worker']}" if final and final["state"] == "OK" else "Answer"
    _draw_text(box, 24, 34, shorten(head, 26, "…"), 11.5, colour, "600")
    _draw_text(box, 24, 56, shorten(one_line(episode["answer"] or "not yet"), 22, "…"), 14, INK, "600")


def _facts(view: Mapping[str, Any]) -> str:
    episode, totals = view["episode"], view["totals"]
    facts = [
        f"{episode['orchestrator']} on {episode['pool']}",
        describe_steps(StepCounts(**totals["counts"])),
        f"{totals['wall_s']:.2f} s",
    ]
    return " · ".join(facts)


def _draw_box(
    parent: Xml.Element, x: float, y: float, width: float, height: float, fill: str, stroke: str, radius: float
) -> None:
    values = {"x": x, "y": y, "width": width, "height": height, "rx": radius}
    Xml.SubElement(
        parent, "rect", {**{key: f"{value:.0f}" for key, value in values.items()}, "fill": fill, "stroke": stroke}
    )


def _draw_path(parent: Xml.Element, d: str, stroke: str, dash: str) -> None:
    style = {"d": d, "fill": "none", "stroke": stroke, "stroke-width": "1.8"}
    Xml.SubElement(parent, "path", {**style, "stroke-dasharray": dash} if dash else style)


def _draw_text(
    parent: Xml.Element,
    x: float,
    y: float,
    text: str,
    size: float,
    fill: str,
    weight: str = "400",
    anchor: str = "start",
) -> None:
    style = {
        "x": f"{x:.0f}",
        "y": f"{y:.0f}",
        "font-size": str(size),
        "fill": fill,
        "font-weight": weight,
        "text-anchor": anchor,
    }
    Xml.SubElement(parent, "text", style).text = _xml_text(text)


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
