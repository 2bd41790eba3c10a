"""Spans reach a collector while an episode runs, through OpenTelemetry's own SDK, and read by its own classes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from orchestrator.engine.events import (
    EpisodeEnded,
    EpisodeStarted,
    Graded,
    ParentStep,
    StepEnded,
    StepStarted,
    TaskRef,
    TurnStarted,
    TurnTaken,
)
from orchestrator.errors import TrackerRefused
from orchestrator.plan import Step, Turn
from orchestrator.tracking import live
from orchestrator.tracking.live import Tracking, read_places
from orchestrator.tracking.table import TRACKERS, TrackerRow, find_tracker
from pool_registry.actions import Observation, Status, Usage

pytestmark = pytest.mark.medium
STARTED_AT = "2026-11-21T10:00:00.000+00:00"


class Collector(BaseHTTPRequestHandler):
    """Keeps the spans that it is sent; answers 400 where `refuses`."""

    spans: list[Span] = []
    refuses = False

    def do_POST(self) -> None:
        assert self.path == "/v1/traces"
        request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
        if not Collector.refuses:
            Collector.spans += [
                span for part in request.resource_spans for scope in part.scope_spans for span in scope.spans
            ]
        self.send_response(400 if Collector.refuses else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def collector(monkeypatch) -> Iterator[str]:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    monkeypatch.delenv(live.VARIABLE, raising=False)
    Collector.spans, Collector.refuses = [], False
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"otlp:http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def no_pool(_name: str, _pool_hash: str) -> None:
    return None


def begin(parent: ParentStep | None = None, task: TaskRef | None = None) -> EpisodeStarted:
    return EpisodeStarted("6*7?", "p", "0" * 64, "model:m", {}, STARTED_AT, parent=parent, task=task)


def plan(*steps: Step) -> list:
    return [TurnStarted(1, 0.0), TurnTaken(1, Turn(steps, "$1", text="{}", usage=Usage(3, 4, 0.5)), 0.1)]


def values(span: Span) -> dict:
    return {row.key: getattr(row.value, row.value.WhichOneof("value")) for row in span.attributes}


def wait_for(count: int) -> list[Span]:
    until = time.monotonic() + 10
    while len(Collector.spans) < count and time.monotonic() < until:
        time.sleep(0.02)
    return list(Collector.spans)


def test_each_span_is_pushed_when_it_ends_and_the_episode_last(collector):
    tracking = Tracking([collector], no_pool)
    step = Step(1, "calc", {"expression": "6*7"}, ())
    for event in (begin(), *plan(step), StepStarted(1, 0.1, {"expression": "6*7"})):
        tracking.append("e1", event)
    (turn,) = wait_for(1)
    assert turn.name == "plan model:m" and values(turn)["gen_ai.usage.input_tokens"] == 3
    tracking.append("e1", StepEnded(1, Observation(Status.OK, 42, 0.5), 0.6))
    assert [span.name for span in wait_for(2)] == ["plan model:m", "execute_tool calc"], "before the episode is over"
    tracking.append("e1", EpisodeEnded("answered", 0.7, 42))
    root = wait_for(3)[2]
    tracking.close()
    assert root.name == "invoke_workflow p" and not root.parent_span_id
    assert {span.parent_span_id for span in Collector.spans[:2]} == {root.span_id}
    assert values(root)["podium.cost_usd"] == 0.5 and values(root)["gen_ai.workflow.name"] == "p"
    assert root.end_time_unix_nano - root.start_time_unix_nano == pytest.approx(0.7e9, rel=1e-3)


def test_a_task_s_episode_waits_for_its_verdict_and_one_cut_off_is_sent_at_the_end(collector):
    tracking = Tracking([collector], no_pool)
    for name in ("graded", "cut off"):
        tracking.append(name, begin(task=TaskRef("own", 0, "test", 1)))
        tracking.append(name, EpisodeEnded("answered", 0.7, 42))
    tracking.append("graded", Graded(True, "42", 0.7))
    tracking.close()
    assert [values(span).get("podium.correct") for span in Collector.spans] == [True, None]


def test_an_inner_episode_belongs_to_the_trace_of_the_outer_one(collector):
    tracking = Tracking([collector], no_pool)
    tracking.append("outer", begin())
    for event in plan(Step(1, "self", {"instruction": "x"}, ())):
        tracking.append("outer", event)
    tracking.append("inner", begin(ParentStep("outer", 1)))
    tracking.append("inner", EpisodeEnded("answered", 0.5, 1))
    tracking.append("outer", StepEnded(1, Observation(Status.OK, 1, 0.5), 0.6))
    tracking.append("outer", EpisodeEnded("answered", 0.7, 42))
    tracking.close()
    _, inner, step, _ = Collector.spans
    assert inner.parent_span_id == step.span_id
    assert len({span.trace_id for span in Collector.spans}) == 1


def test_a_collector_that_refuses_is_logged_once_and_ends_nothing(collector, caplog):
    Collector.refuses = True
    tracking = Tracking([collector], no_pool)
    for number in range(3):
        tracking.append(f"e{number}", begin())
        tracking.append(f"e{number}", EpisodeEnded("answered", 0.7, 42))
    tracking.close()
    told = [record.message for record in caplog.records if record.name == live.__name__]
    assert len(told) == 1 and "did not take 3 spans" in told[0]


class SlowTracker:
    """Holds up its thread until `free` is set."""

    def __init__(self) -> None:
        self.free, self.spans, self.closed = threading.Event(), 0, False

    def push(self, spans: list) -> None:
        self.free.wait(20)
        self.spans += len(spans)

    def log(self, *_: object) -> None:
        return

    def close(self) -> None:
        self.closed = True


def test_what_waits_is_bounded_by_its_size_and_the_end_is_not_left_out(monkeypatch, caplog):
    tracker = SlowTracker()
    row = TrackerRow("slow", "", "", lambda _: tracker, "json", "", live=True)
    monkeypatch.setattr(live, "find_tracker", lambda _: (row, ""))
    monkeypatch.setattr(live, "MAX_WAITING_CHARS", 50_000)
    tracking = Tracking(["slow:x"], no_pool)
    for number in range(20):
        tracking.append(f"e{number}", replace(begin(), query="x" * 10_000))
        tracking.append(f"e{number}", EpisodeEnded("answered", 0.7, 42))
    threading.Timer(0.2, tracker.free.set).start()
    tracking.close()
    assert tracker.closed and 0 < tracker.spans < 10
    assert "too much waits" in caplog.text


def test_a_row_of_another_package_says_what_installs_its_own(monkeypatch):
    row = TrackerRow("notebook", "", "FILE", lambda _: SlowTracker(), "no_such_notebook.client", "acme-notebook")
    monkeypatch.setattr("orchestrator.tracking.table.TRACKERS", {"notebook": row})
    with pytest.raises(TrackerRefused, match="pip install acme-notebook"):
        find_tracker("notebook:x")


def test_places_come_from_the_variable_too_and_are_checked(monkeypatch):
    monkeypatch.setenv(live.VARIABLE, "otlp:http://127.0.0.1:4318")
    assert read_places(["otlp:http://127.0.0.1:4318"]) == ["otlp:http://127.0.0.1:4318"]
    with pytest.raises(TrackerRefused, match=r"otlp:http.*trackio:PROJECT.*mlflow:URI"):
        read_places(["wandb:x"])


@pytest.mark.parametrize("name", list(TRACKERS))
def test_a_missing_package_is_said_with_its_command(name, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.packages.find_spec", lambda _: None)
    with pytest.raises(TrackerRefused, match=r"pip install 'podium-studio\[\w+\]'"):
        find_tracker(f"{name}:x")


def test_an_address_that_is_none_is_refused():
    row, target = find_tracker("otlp:nowhere")
    with pytest.raises(TrackerRefused, match="http://HOST:4318"):
        row.open(target)
