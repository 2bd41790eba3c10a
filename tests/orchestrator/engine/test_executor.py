"""One observation per step, nothing unlisted reaches a worker, no step waits for what it does not need."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import StepEnded, TurnTaken
from orchestrator.plan import Step, Turn
from pool_registry.actions import Status
from tests.orchestrator.support.engine import (
    STAGE,
    Events,
    Scripted,
    a_pool,
    canary,
    codes,
    engine_kinds,
    order,
    play_turns,
    step,
    worker,
)

__all__ = ["engine_kinds"]

MODES = ["ok", "ok", "ok", "number", "raise", "fault", "bad", "hang", "not_json", "cancels_itself"]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Step], dict[int, tuple[str, float]]]:
    """Steps with random access lists, quotes (some of them unlisted), workers and fates."""
    steps, parts = [], {}
    for k in range(1, draw(st.integers(1, 25)) + 1):
        earlier = st.integers(1, k - 1) if k > 1 else st.nothing()
        access = draw(st.lists(earlier, unique=True, max_size=4)) if k > 1 else []
        quoted = draw(st.lists(st.sampled_from(access), unique=True)) if access else []
        if draw(st.integers(0, 15)) == 0:
            quoted = [*quoted, draw(st.integers(1, 26))]
        name = draw(st.sampled_from(["actor", "agent"]))
        steps.append(step(k, " ".join(f"${j}" for j in quoted), name, access))
        parts[k] = (draw(st.sampled_from(MODES)), draw(st.sampled_from([0.0, 0.0, 0.001, 0.003])))
    return steps, parts


def check_everything(steps: list[Step], sink: Events) -> None:
    """What holds for every round, however it went."""
    events = sink.all()
    taken = next(event for event in events if isinstance(event, TurnTaken))
    happened = order(events)
    assert sorted(k for what, k in happened if what == "end") == [s.id for s in steps], "one observation per step"
    position = {event: index for index, event in enumerate(happened)}
    assert len(position) == len(happened), "nothing starts twice"
    for checked in taken.turn.steps:
        shown = STAGE.shown.get(checked.id, "")
        for k in (s.id for s in steps):
            assert canary(k) not in shown or k in checked.access, f"step {checked.id} saw {k}"
        if ("start", checked.id) in position:
            assert checked.problem is None
            assert position["start", checked.id] < position["end", checked.id]
            for k in checked.access:
                assert position["end", k] < position["start", checked.id]
        else:
            assert checked.id not in STAGE.shown


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    graph=graphs(),
    most=st.integers(1, 4),
    cut=st.sampled_from(["", "", "stop", "deadline", "steps", "tiny"]),
)
def test_access_order_and_completeness_hold_for_any_graph(graph, most, cut):
    steps, parts = graph
    sink = Events()
    workers = [worker(name, max_concurrency=most, timeout_s=0.02) for name in ("actor", "agent")]
    limits: dict[str, float] = {"max_rounds": 1}
    limits |= {"deadline": {"deadline_s": 0.01}, "steps": {"max_steps": 3}, "tiny": {"deadline_s": 1e-6}}.get(cut, {})
    episode = play_turns(
        Turn(tuple(steps)),
        parts=parts,
        workers=workers,
        sink=sink,
        stop_after=0.008 if cut == "stop" else None,
        **limits,
    )
    if episode.steps:
        check_everything(steps, sink)
    assert all(running <= most for running in STAGE.most.values())
    if not cut:
        for k, run in episode.steps.items():
            expected = {"ok": "OK", "number": "OK", "hang": "timeout", "fault": "broken", "bad": "bad_arguments"}
            code = codes(episode)[k]
            if run.started_at is not None:
                fate = {"raise": "worker_raised", "cancels_itself": "worker_raised", "not_json": "invalid_response"}
                assert code in {(expected | fate)[parts[k][0]], "timeout"}  # a busy machine may time out anything
            elif run.step.problem is None:
                assert code == "dependency_failed"
                assert any(not episode.steps[j].observation.ok for j in run.step.references)


def test_an_agent_sees_that_a_step_failed_and_may_recover():
    steps = (step(1), step(2, "", "agent", [1]), step(3, "use $1", "agent", [1]))
    episode = play_turns(Turn(steps), parts={1: ("fault", 0.0)}, max_rounds=1)
    assert codes(episode) == {1: "broken", 2: "OK", 3: "dependency_failed"}
    assert 'status="EXEC_ERR"' in episode.steps[2].observation.prompt
    assert "out of order" in episode.steps[2].observation.prompt
    assert "$1 (EXEC_ERR)" in episode.steps[3].observation.error.message


@pytest.mark.parametrize(
    ("mode", "status", "code"),
    [
        ("raise", Status.EXEC_ERR, "worker_raised"),
        ("fault", Status.EXEC_ERR, "broken"),
        ("bad", Status.PARSE_ERR, "bad_arguments"),
        ("hang", Status.TIMEOUT, "timeout"),
        ("huge", Status.EXEC_ERR, "output_too_large"),
        ("not_json", Status.EXEC_ERR, "invalid_response"),
        ("deep", Status.EXEC_ERR, "invalid_response"),
        ("dirty", Status.EXEC_ERR, "worker_raised"),
        ("cancels_itself", Status.EXEC_ERR, "worker_raised"),
        ("exits", Status.EXEC_ERR, "worker_raised"),
        ("own_time_out", Status.EXEC_ERR, "worker_raised"),
    ],
)
def test_whatever_a_worker_does_the_step_ends_and_the_others_run(mode, status, code):
    started = time.perf_counter()
    workers = [worker("actor", timeout_s=0.05)]
    episode = play_turns(Turn((step(1), step(2)), "$2"), parts={1: (mode, 0.0)}, workers=workers, deadline_s=20)
    assert (episode.steps[1].observation.status, codes(episode)[1]) == (status, code)
    assert episode.answer == canary(2)
    assert time.perf_counter() - started < 5, "nothing waited for the deadline"
    message = episode.steps[1].observation.error.message
    assert message.encode() and "\x00" not in message


def test_the_time_out_counts_from_the_workers_start_and_not_from_queueing():
    steps = tuple(step(k) for k in range(1, 15))
    workers = [worker("actor", timeout_s=1, max_concurrency=1)]
    episode = play_turns(Turn(steps), parts=dict.fromkeys(range(1, 15), ("ok", 0.1)), workers=workers, max_rounds=1)
    assert set(codes(episode).values()) == {"OK"}
    assert episode.steps[14].started_at > 1.2, "it queued for longer than its time-out"


@pytest.mark.parametrize("cause", ["failed", "over_budget", "malformed"])
def test_a_long_chain_that_cannot_run_ends_at_once(cause):
    count = 1000
    unlisted = "$99999" if cause == "malformed" else ""
    steps = tuple(
        step(k, f"${k - 1} {unlisted}" if k > 1 else "", "actor", [k - 1] if k > 1 else []) for k in range(1, count + 1)
    )
    parts = {1: ("fault", 0.0)} if cause == "failed" else {}
    limit = 2 if cause == "over_budget" else 1000
    started = time.perf_counter()
    episode = play_turns(Turn(steps), parts=parts, max_rounds=1, max_steps=limit, deadline_s=60)
    assert time.perf_counter() - started < 10
    assert len(episode.observations()) == count
    assert (
        codes(episode)[1000]
        == {"failed": "dependency_failed", "over_budget": "max_steps", "malformed": "malformed_step"}[cause]
    )


def test_a_deadline_times_out_what_runs_and_skips_what_waits():
    steps = (step(1), step(2, "$1", "actor", [1]), step(3))
    episode = play_turns(Turn(steps), parts={1: ("hang", 0.0)}, deadline_s=0.05)
    seen = episode.observations()
    assert (seen[1].status, seen[2].status, seen[3].status) == (Status.TIMEOUT, Status.EXEC_ERR, Status.OK)
    assert codes(episode) == {1: "deadline", 2: "deadline", 3: "OK"}
    assert 0.02 < seen[1].latency_s < 1 and seen[2].latency_s == 0, "only the first one has run"
    assert episode.ended.outcome == "deadline"


def test_the_stop_button_ends_everything_at_once():
    started = time.perf_counter()
    steps = (step(1), step(2, "", "agent", [1]))
    episode = play_turns(Turn(steps), parts={1: ("hang", 0.0)}, stop_after=0.03)
    assert time.perf_counter() - started < 2
    assert episode.ended.outcome == "stopped" and codes(episode) == {1: "stopped", 2: "stopped"}


def test_a_cancelled_episode_is_recorded_to_its_end():
    sink = Events()
    STAGE.clear()
    STAGE.parts[1] = ("hang", 0.0)

    async def cancelled() -> None:
        turns = Scripted(Turn((step(1), step(2, "", "agent", [1]))))
        running = asyncio.create_task(run_episode(EpisodeSpec("q"), turns, a_pool(), sink=sink))
        await asyncio.sleep(0.03)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    events = sink.all()
    assert [event.step for event in events if isinstance(event, StepEnded)] == [1, 2]
    assert events[-1].type == "episode_ended" and events[-1].outcome == "stopped"


def test_a_sink_that_breaks_is_told_at_once_and_not_after_the_deadline():
    class Broken(Events):
        def append(self, episode_id, event):
            if isinstance(event, StepEnded):
                raise OSError("no space left")

    started = time.perf_counter()
    with pytest.raises(OSError, match="no space left"):
        play_turns(Turn((step(1), step(2)), "$1"), sink=Broken(), deadline_s=20)
    assert time.perf_counter() - started < 5


def test_quotes_cannot_ask_for_gigabytes():
    parts = {1: ("ok", 0.0)}
    bomb = " ".join(["$1"] * 200_000)
    episode = play_turns(Turn((step(1), step(2, bomb, "actor", [1]), step(3)), bomb), parts=parts, max_rounds=1)
    assert codes(episode) == {1: "OK", 2: "arguments_too_long", 3: "OK"}
    assert episode.ended.outcome == "max_rounds"


def test_wall_time_is_that_of_the_critical_path():
    """150 ms of sleeping on the longest chain, 280 ms layer by layer, beside bare asyncio tasks."""
    seconds = {1: 0.01, 2: 0.07, 3: 0.07, 4: 0.01, 5: 0.07, 6: 0.0}
    access = {1: [], 2: [], 3: [1], 4: [2], 5: [3], 6: [4, 5]}

    async def bare() -> None:
        tasks: dict[int, asyncio.Task[None]] = {}

        async def run(k: int) -> None:
            for before in access[k]:
                await tasks[before]
            await asyncio.sleep(seconds[k])

        for k in access:
            tasks[k] = asyncio.create_task(run(k))
        await asyncio.gather(*tasks.values())

    async def best() -> tuple[float, float]:
        steps = tuple(step(k, "", "actor", waits) for k, waits in access.items())
        pool = a_pool([worker("actor", max_concurrency=16)])
        times = []
        for _ in range(3):
            started = time.perf_counter()
            await bare()
            middle = time.perf_counter()
            await run_episode(EpisodeSpec("q"), Scripted(Turn(steps, "$6")), pool)
            times.append((middle - started, time.perf_counter() - middle))
        return min(bare for bare, _ in times), min(ours for _, ours in times)

    STAGE.clear()
    STAGE.parts.update({k: ("ok", s) for k, s in seconds.items()})
    limit, ours = asyncio.run(best())
    assert ours / limit <= 1.4  # layer by layer it would be 1.75


def test_what_a_step_was_sent_is_not_shown_to_those_who_may_see_its_output():
    """An agent's prompt holds what it saw: passed on, it would widen its reader's access list."""
    steps = (step(1), step(2, "", "agent", [1]), step(3, "", "agent", [2]))
    episode = play_turns(Turn(steps), max_rounds=1)
    assert canary(1) in episode.steps[2].observation.prompt
    assert canary(2) in STAGE.shown[3] and canary(1) not in STAGE.shown[3]
