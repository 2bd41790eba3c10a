"""What leaves the studio for other programs is read by them: OpenTelemetry's own classes, networkx, an XML parser."""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as Xml

import networkx as nx
import pytest
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from orchestrator.engine.episode import replay
from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, StepEnded, StepStarted, TurnStarted, TurnTaken
from orchestrator.errors import UnknownOrchestrator
from orchestrator.plan import Step, Turn
from orchestrator.tracking.otlp import encode_json
from orchestrator.tracking.spans import TracedEpisode, list_spans
from pool_registry.actions import Observation, Usage
from pool_registry.actions import Status as CallStatus
from pool_registry.errors import InvalidPool
from pool_registry.pool import Pool, export_pool, import_pool
from pool_registry.pools.luggage import place_luggage
from pool_registry.worker import WorkerSpec
from studio.export.checkpoint import export_checkpoint
from studio.export.formats import export_jsonl, export_otlp
from studio.export.python_file import build_python_file, list_export_files, zip_files
from studio.export.svg_and_graphml import draw_svg, write_graphml
from tests.studio.support.recorded import record_run

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def episode(runtime) -> str:
    return record_run(runtime.store, "starter-grpo")


def spans_of(document: dict) -> list[Span]:
    """The spans as OpenTelemetry's own message reads them. Ids are hexadecimal in OTLP, base64 in protobuf's JSON."""
    told = json.loads(json.dumps(document))
    for span in (span for each in told["resourceSpans"] for scope in each["scopeSpans"] for span in scope["spans"]):
        for holder in (span, *span.get("links", [])):
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in holder:
                    holder[key] = base64.b64encode(bytes.fromhex(holder[key])).decode()
    request = ParseDict(told, ExportTraceServiceRequest())
    return [span for each in request.resource_spans for scope in each.scope_spans for span in scope.spans]


def attributes(span: Span) -> dict:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def test_an_episode_is_read_as_spans_whose_tree_times_and_links_are_those_of_the_trace(runtime, episode):
    told = runtime.store.traces.episode(episode)
    spans = spans_of(export_otlp(runtime.store, [episode]))
    root = next(span for span in spans if not span.parent_span_id)
    named = {attributes(span).get("podium.step"): span for span in spans if "podium.step" in attributes(span)}
    assert len(spans) == 1 + len(told.rounds) + len(told.steps)
    assert all(len(span.trace_id) == 16 and len(span.span_id) == 8 for span in spans)
    assert len({span.span_id for span in spans}) == len(spans)
    assert all(span.parent_span_id == root.span_id and span.trace_id == root.trace_id for span in spans if span != root)
    assert attributes(root)["gen_ai.operation.name"] == "invoke_workflow"
    assert json.loads(attributes(root)["gen_ai.input.messages"])[0]["parts"][0]["content"] == told.query
    for k, run in told.steps.items():
        links = {link.span_id for link in named[k].links}
        assert links == {named[j].span_id for j in run.step.access}
        seconds = (named[k].end_time_unix_nano - named[k].start_time_unix_nano) / 1e9
        assert seconds == pytest.approx(run.ended_at - run.started_at, abs=1e-3)
        assert attributes(named[k])["gen_ai.operation.name"] == "execute_tool"
        assert attributes(named[k])["gen_ai.tool.name"] == run.step.worker
        assert named[k].status.code == Status.STATUS_CODE_OK
        assert root.start_time_unix_nano <= named[k].start_time_unix_nano <= root.end_time_unix_nano


def made(query: str, worker: str, argument: str, status: CallStatus = CallStatus.OK, value: object = "x"):
    """An episode of one step with these texts, finished."""
    step = Step(1, worker, {"instruction": argument}, ())
    seen = (
        Observation(status, value, 0.5) if status is CallStatus.OK else Observation.failure(status, "broken", argument)
    )
    started = EpisodeStarted(query, "p", "0" * 64, "model:<x>", {}, "2026-11-21T10:00:00.000+00:00")
    return replay("e1", [
        started, TurnStarted(1, 0.0), TurnTaken(1, Turn((step,), "$1", text=argument, usage=Usage(3, 4, 0.5)), 0.1),
        StepStarted(1, 0.1, {"instruction": argument}), StepEnded(1, seen, 0.7), EpisodeEnded("answered", 0.8, value),
    ])  # fmt: skip


def headline(query: str) -> SimpleNamespace:
    return SimpleNamespace(query=query, pool="p", orchestrator="o", state="answered", started_at="x", depth=0)


def test_a_failed_step_is_an_error_span_that_says_why_and_an_agent_tells_its_tokens():
    pool = Pool(name="p", workers=(WorkerSpec(name="w", kind="chat", description="d", config={"model": "m"}),))
    spans = spans_of(encode_json(list_spans(TracedEpisode(made("q", "w", "why", CallStatus.TIMEOUT), pool))))
    step = next(span for span in spans if "podium.step" in attributes(span))
    assert step.status.code == Status.STATUS_CODE_ERROR and "TIMEOUT: why" in step.status.message
    assert attributes(step)["error.type"] == "broken" and attributes(step)["gen_ai.request.model"] == "m"
    turn = next(span for span in spans if attributes(span)["gen_ai.operation.name"] == "plan")
    assert attributes(turn)["gen_ai.usage.input_tokens"] == 3 and attributes(turn)["gen_ai.usage.output_tokens"] == 4


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60), st.text(min_size=1, max_size=60))
def test_any_text_of_an_episode_stays_text_in_every_format(query, argument):
    episode = made(query, "w<&\"'", argument)
    root = Xml.fromstring(draw_svg(episode, headline(query)))
    assert root.tag == f"{SVG}svg" and {child.tag for child in root.iter()} <= {
        f"{SVG}{name}" for name in ("svg", "g", "rect", "path", "text", "title")
    }
    graph = nx.read_graphml(io.BytesIO(write_graphml(episode).encode()))
    assert set(graph.nodes) == {"1", "answer"} and graph.has_edge("1", "answer")
    spans_of(encode_json(list_spans(TracedEpisode(episode))))


def test_graphml_and_svg_hold_every_step_and_edge_of_a_real_run(runtime, client, episode):
    told = runtime.store.traces.episode(episode)
    graph = nx.read_graphml(io.BytesIO(client.get(f"/api/episodes/{episode}/export/graph.graphml").content))
    edges = {(str(j), str(k)) for k, run in told.steps.items() for j in run.step.access}
    assert {edge for edge in graph.edges if "answer" not in edge} == edges
    assert {graph.nodes[str(k)]["worker"] for k in told.steps} == {run.step.worker for run in told.steps.values()}
    answer = client.get(f"/api/episodes/{episode}/export/graph.svg")
    texts = " ".join(node.text or "" for node in Xml.fromstring(answer.text).iter(f"{SVG}text"))
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert all(f"{k} · " in texts for k in told.steps)


def test_json_lines_hold_the_whole_trace_and_unknown_formats_and_episodes_are_told(runtime, client, episode):
    line = json.loads(export_jsonl(runtime.store, [episode]).splitlines()[0])
    assert line["id"] == episode and line["events"][0]["type"] == "episode_started"
    assert client.get(f"/api/episodes/{episode}/export/trace.jsonl").text == export_jsonl(runtime.store, [episode])
    assert client.get(f"/api/episodes/{episode}/export/nonsense").status_code == 404
    assert client.get("/api/episodes/none/export/graph.svg").status_code == 404


def run_alone(file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run an exported file where nothing of Podium can be imported but what the file itself brings."""
    alone = (
        "import runpy, sys; sys.argv = sys.argv[1:]; "
        "sys.path = [path for path in sys.path if 'packages' in path or 'lib' in path]; "
        "sys.modules['studio'] = sys.modules['trainer'] = None; "
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f)]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["XDG_CACHE_HOME"] = str(file.parent / "cache")
    return subprocess.run([sys.executable, "-c", alone, str(file), *words], capture_output=True, text=True,
                          cwd=file.parent, env=environment, timeout=600)  # fmt: skip


@pytest.mark.slow
def test_a_plain_python_file_brings_its_engine_and_answers_with_packages_alone(tmp_path):
    pool = Pool(name="sums", workers=(WorkerSpec(name="calc", kind="calculator", description="Calculates."),))
    file = tmp_path / "orchestrate.py"
    file.write_text(build_python_file(pool, "random_plan:3"))
    done = run_alone(file, "what is 6 * 7?")
    assert "Traceback" not in done.stderr, done.stderr
    assert (done.returncode == 0 and done.stdout.strip()) or "no answer" in done.stderr
    assert "calc: " in done.stderr and list((tmp_path / "cache" / "podium").glob("engine-*/orchestrator/plan.py"))
    listed = run_alone(file, "--requirements").stdout.split()
    assert listed and all("==" in line for line in listed) and not any("podium" in line for line in listed)


@pytest.mark.slow
def test_a_plain_python_file_answers_in_a_fresh_environment_from_its_own_requirements(tmp_path):
    file, python = tmp_path / "orchestrate.py", str(tmp_path / "venv" / "bin" / "python")
    pool = Pool(name="sums", workers=(WorkerSpec(name="calc", kind="calculator", description="Calculates."),))
    file.write_text(build_python_file(pool, "random_plan:3"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=900, check=False
        )

    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    (tmp_path / "requirements.txt").write_text(run(python, str(file), "--requirements").stdout)
    installed = run(python, "-m", "pip", "install", "--quiet", "-r", "requirements.txt")
    assert installed.returncode == 0, installed.stderr
    done = run(python, str(file), "what is 6 * 7?")
    assert "Traceback" not in done.stderr and "calc: " in done.stderr, done.stderr
    assert (done.returncode == 0 and done.stdout.strip()) or "no answer" in done.stderr


@pytest.mark.slow
def test_a_plain_python_file_finds_its_checkpoint_beside_it(runtime, tmp_path):
    from trainer.tasks import find_task

    task = find_task("forge", 1, "test", 0)
    file = tmp_path / "orchestrate.py"
    file.write_text(build_python_file(runtime.store.pools.latest("starter").pool, "starter-grpo"))
    export_checkpoint("starter-grpo", "merged", tmp_path / "checkpoint")
    done = run_alone(file, task.query)
    assert "Traceback" not in done.stderr, done.stderr
    assert (done.returncode == 0 and done.stdout.strip()) or "no answer" in done.stderr


def test_a_plain_python_file_names_no_path_of_this_machine_and_says_who_stays(tmp_path):
    tools = tmp_path / "tools.py"
    tools.write_text("def double(x: float) -> float:\n    return 2 * x\n")
    config = {"target": f"{tools}:double", "parameters": {"type": "object", "properties": {}}}
    own = WorkerSpec(name="double", kind="function", description="Doubles.", config=config)
    calc = WorkerSpec(name="calc", kind="calculator", description="Calculates.")
    text = build_python_file(Pool(name="p", workers=(own, calc)), "random_plan")
    assert str(tmp_path) not in text and "double (it runs a Python file of this machine)" in text
    with pytest.raises(InvalidPool, match="no worker of p can leave this machine"):
        build_python_file(Pool(name="p", workers=(own,)), "random_plan")


def test_a_plain_python_file_takes_the_files_of_chosen_workers_along(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "plums.txt").write_text("A kilo of plums is 3 dollars.")
    own = WorkerSpec(name="notes", kind="documents", description="Finds.", config={"path": str(notes)})
    pool = Pool(name="p", workers=(own, WorkerSpec(name="calc", kind="calculator", description="Calculates.")))
    assert list(list_export_files(pool, "random_plan")) == ["orchestrate.py"]
    files = list_export_files(pool, "random_plan", take=["notes"])
    program, *others = files
    assert [files[path] for path in others] == [b"A kilo of plums is 3 dollars."]
    assert str(tmp_path).encode() not in files[program] and b"Left out" not in files[program]
    with zipfile.ZipFile(io.BytesIO(zip_files(files))) as archive:
        archive.extractall(tmp_path / "there")
    document = re.search(r'POOL = r"""\n(.*?)"""', files[program].decode(), re.DOTALL)[1]
    placed = place_luggage(import_pool(document), tmp_path / "there")
    assert Path(placed.workers[0].config["path"]).is_dir(), "the file finds it beside itself"


@pytest.mark.parametrize("orchestrator", ["model:local", "direct", "react:local"])
def test_a_file_is_refused_where_the_model_that_orchestrates_stays(orchestrator):
    local = WorkerSpec(
        name="local", kind="chat", description="A model here.",
        config={"base_url": "http://127.0.0.1:1234/v1", "model": "m"},
    )  # fmt: skip
    calc = WorkerSpec(name="calc", kind="calculator", description="Calculates.")
    with pytest.raises(UnknownOrchestrator, match="local, stays here"):
        build_python_file(Pool(name="p", workers=(local, calc)), orchestrator)


@pytest.mark.medium
@given(st.text(max_size=200))
@settings(max_examples=80, deadline=None)
def test_a_plain_python_file_holds_the_pool_whatever_is_in_its_texts(description):
    spec = WorkerSpec(name="w", kind="calculator", description=f'"""\\ {description}')
    pool = Pool(name="p", workers=(spec,))
    tree = ast.parse(build_python_file(pool, "direct"))
    stated = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "POOL"
    ]
    assert import_pool(str(ast.literal_eval(stated[0]))) == import_pool(export_pool(pool))
