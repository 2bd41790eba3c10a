"""Sessions for the Hub's trace viewer hold what its format asks for: a header, and messages with calls and results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, StepEnded, StepStarted, TurnStarted, TurnTaken
from orchestrator.plan import Step, Turn
from pool_registry.actions import Failure, Observation, Status
from studio.cli.export import commands
from studio.export.session_traces import export_session
from tests.studio.support.recorded import record_run


def read_session(store, episode: str) -> tuple[dict, list[dict]]:
    header, *lines = map(json.loads, export_session(store, episode).splitlines())
    assert all(line["type"] == "message" for line in lines)
    return header, [line["message"] for line in lines]


def test_an_episode_is_a_session_whose_calls_have_their_results(runtime):
    episode = record_run(runtime.store, "starter-grpo")
    trace = runtime.store.traces.episode(episode)
    header, messages = read_session(runtime.store, episode)
    assert header["type"] == "session" and header["harness"] == "podium" and header["id"] == episode
    assert messages[0]["role"] == "user" and messages[0]["content"] == trace.query
    calls = {call["id"]: call["function"] for message in messages for call in message.get("toolCalls", [])}
    results = {message["toolCallId"]: message["content"] for message in messages if message["role"] == "tool"}
    assert calls.keys() == results.keys() == {str(number) for number in trace.steps}
    for number, run in trace.steps.items():
        arguments = json.loads(calls[str(number)]["arguments"])
        assert arguments.pop("access") == list(run.step.access) and arguments == dict(run.arguments)
        assert calls[str(number)]["name"] == run.step.worker
    assert messages[-1]["role"] == "assistant" and messages[-1]["content"] == str(trace.answer)
    times = [message["timestamp"] for message in messages]
    assert times[0] == min(times) and times[-1] == max(times) and all(isinstance(at, int) for at in times)


def test_what_failed_is_said_in_the_result_of_its_call(runtime):
    failure = Observation(Status.EXEC_ERR, error=Failure("timeout", "no reply after 5 s"))
    events = (
        EpisodeStarted("q", "starter", "0" * 64, "oracle", {}, "2026-11-29T12:00:00+00:00"),
        TurnStarted(1, 0.1),
        TurnTaken(1, Turn((Step(1, "calculator", {"expression": "1"}),)), 0.2),
        StepStarted(1, 0.3, {"expression": "1"}),
        StepEnded(1, failure, 0.4),
        EpisodeEnded("gave_up", 0.5, reason="nothing came of it"),
    )
    for event in events:
        runtime.store.traces.append("failed", event)
    runtime.store.traces.flush()
    _, messages = read_session(runtime.store, "failed")
    assert [message["content"] for message in messages[-2:]] == ["EXEC_ERR: no reply after 5 s", "nothing came of it"]


@pytest.mark.medium
def test_the_command_writes_a_file_for_each_session(runtime, tmp_path: Path):
    episode = record_run(runtime.store, "starter-grpo")
    home = ["--home", str(runtime.store.home.root)]
    refused = CliRunner().invoke(commands, ["traces", "--episode", episode, "--as", "sts", *home])
    assert refused.exit_code != 0 and "--out FOLDER" in str(refused.exception)
    done = CliRunner().invoke(
        commands, ["traces", "--episode", episode, "--as", "sts", "--out", str(tmp_path / "s"), *home]
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "s" / f"{episode}.jsonl").read_text() == export_session(runtime.store, episode)
