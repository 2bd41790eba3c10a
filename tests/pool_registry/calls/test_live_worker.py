"""The optional guards of a worker: outputs, fallbacks, rates, records, and the breaker."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import pytest
import stamina
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pool_registry.actions import Action, Observation, Status, Usage
from pool_registry.calls.call_cache import CallCache
from pool_registry.calls.call_cache_table import DatabaseCacheStore, RecordedRow
from pool_registry.calls.circuit_breaker import FAILURES, OPEN_S, Admission, Breaker, breaker_of
from pool_registry.calls.layers import find_wait
from pool_registry.calls.limit_share import share_limits
from pool_registry.calls.live_pool import LivePool, live_pool, open_live_pool
from pool_registry.errors import BadCall, InvalidPool, WorkerFault
from pool_registry.kinds import KINDS, Kind
from pool_registry.pool import Pool, check_pool, export_pool, import_pool
from pool_registry.schemas.schema_check import SchemaCheck
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.upgrade import open_engine
from pool_registry.worker import Call, NoConfig, Reply, Visible, Worker, WorkerSpec, one_string

PRICE = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}
USED = Usage(10, 5, 0.25)


class Actor(Worker[NoConfig]):
    """Does what its text says: `=JSON` returns it, `!code` fails so, `?code` for good; else it echoes."""

    remote = True
    calls = 0

    @property
    def parameters(self) -> Mapping[str, Any]:
        return one_string("text", "anything")

    async def call(self, call: Call) -> Reply:
        Actor.calls += 1
        text = next(iter(call.arguments.values()))
        assert isinstance(text, str)
        if "hang" in text:
            await asyncio.sleep(3600)
        if "bad" in text:
            raise BadCall("write it otherwise")
        if text.startswith(("!", "?")):
            raise WorkerFault(text[1:], f"{self.spec.name} is out of order", retryable=text.startswith("!"))
        return Reply(json.loads(text[1:]) if text.startswith("=") else text, USED, prompt="you are an actor")


class Steady(Actor):
    """Always answers, and names its parameter otherwise."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        return one_string("question", "anything")

    async def call(self, call: Call) -> Reply:
        return Reply({"price": 3}, USED)


class Picky(Actor):
    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}


@pytest.fixture(autouse=True)
def kinds(monkeypatch):
    for cls in (Actor, Steady, Picky):
        name = cls.__name__.lower()
        monkeypatch.setitem(KINDS.built_in, name, Kind(name, f"{__name__}:{cls.__name__}"))
    monkeypatch.setattr(Actor, "calls", 0)
    with stamina.set_testing(True, attempts=10, cap=True):
        yield


def worker(name: str = "a", kind: str = "actor", **changes: Any) -> WorkerSpec:
    return WorkerSpec(**{"name": name, "kind": kind, "description": "for tests", "retries": 0, **changes})


def play(*texts: str, workers: tuple[WorkerSpec, ...], name: str = "a") -> list[Observation]:
    async def all_of_them() -> list[Observation]:
        async with live_pool(Pool(name="p", workers=workers)) as pool:
            return [await pool.call(Action(name, {"text": text})) for text in texts]

    return asyncio.run(all_of_them())


# Time-outs


def test_calls_that_run_at_a_time_run_out_each_at_its_own_limit():
    async def all_of_them() -> list[Observation]:
        async with live_pool(Pool(name="p", workers=(worker(timeout_s=0.2, max_concurrency=3),))) as pool:
            first = asyncio.create_task(pool.call(Action("a", {"text": "hang"})))
            await asyncio.sleep(0.1)
            calls = (pool.call(Action("a", {"text": text})) for text in ("hang", "fine"))
            return [*await asyncio.gather(*calls), await first]

    second, fine, first = asyncio.run(all_of_them())
    assert fine.ok and second.status is first.status is Status.TIMEOUT
    assert min(first.latency_s, second.latency_s) >= 0.2


def test_a_pool_that_outlives_its_loop_still_ends_what_hangs():
    pool = open_live_pool(Pool(name="p", workers=(worker(timeout_s=0.05),)))
    assert asyncio.run(pool.call(Action("a", {"text": "fine"}))).ok
    assert asyncio.run(pool.call(Action("a", {"text": "hang"}))).status is Status.TIMEOUT


class CountingLoop(asyncio.SelectorEventLoop):
    """Keeps every timer that is set on it."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[asyncio.TimerHandle] = []

    def call_at(self, *args: Any, **options: Any) -> asyncio.TimerHandle:
        self.timers.append(super().call_at(*args, **options))
        return self.timers[-1]


def test_many_calls_share_one_timer_which_a_closed_pool_gives_back():
    loop = CountingLoop()

    async def calls() -> None:
        async with live_pool(Pool(name="p", workers=(worker(max_concurrency=20),))) as pool:
            assert all([(await pool.call(Action("a", {"text": "fine"}))).ok for _ in range(20)])
            assert [timer.cancelled() for timer in loop.timers] == [False]

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(calls())
    assert [timer.cancelled() for timer in loop.timers] == [True]


# Outputs


@pytest.mark.parametrize(
    ("output", "returned", "value"),
    [
        ({"json_schema": PRICE}, '={"price": 3}', {"price": 3}),
        ({"json_schema": PRICE}, '{"price": 3}', {"price": 3}),
        ({"json_schema": PRICE}, 'Here it is:\n```json\n{"price": 3.5}\n```\nDone.', {"price": 3.5}),
        ({"json_schema": {"type": "array", "items": {"type": "integer"}}}, " [1, 2] ", [1, 2]),
        ({"json_schema": {"type": "string"}}, '{"price": 3}', '{"price": 3}'),  # text was asked for: text it stays
        ({"json_schema": {"enum": ["yes", "no"]}}, "yes", "yes"),
        ({"json_schema": {"type": "number"}}, "12", 12),
        ({"pattern": r"[A-Z]{3}-\d+"}, "ABC-12", "ABC-12"),
        ({"pattern": r"\d+"}, "=42", 42),
    ],
)
def test_what_is_handed_over_fits_what_was_asked_for(output, returned, value):
    (seen,) = play(returned, workers=(worker(output=output),))
    assert (seen.status, seen.value) == (Status.OK, value)


@pytest.mark.parametrize(
    ("output", "returned", "says"),
    [
        ({"json_schema": PRICE}, '{"price": "much"}', 'price: this must be a number, not "much"'),
        ({"json_schema": PRICE}, "I do not know", "this must be an object"),
        ({"json_schema": PRICE}, '{"price": NaN}', "this must be an object"),
        ({"json_schema": PRICE}, '```\n{"price": 1}\n```\n```\n{"price": 2}\n```', "must be an object"),  # which one?
        ({"json_schema": {"type": "array", "items": {"type": "integer"}}}, '["a","b","c","d"]', " ..."),
        ({"pattern": r"\d+"}, "42 apples", "does not match the pattern"),
        ({"pattern": r"(a|a|aa)+$"}, "a" * 60 + "b", "takes more than"),
    ],
)
def test_another_output_is_refused_with_the_reason_and_still_paid_for(output, returned, says):
    (seen,) = play(returned, workers=(worker(output=output),))
    assert (seen.status, seen.error.code, seen.value) == (Status.PARSE_ERR, "bad_output", None)
    assert says in seen.error.message and seen.usage == USED and seen.prompt
    assert len(seen.error.message) <= 1000


@pytest.mark.parametrize(
    "output",
    [
        {},
        {"json_schema": {}, "pattern": "a"},
        {"pattern": "("},
        {"pattern": "(a{1000}){1000}"},
        {"json_schema": {"type": "nonsense"}},
        {"json_schema": {"$ref": "#/nowhere"}},
        {"json_schema": {"$ref": "file:///etc/passwd"}},
        {"json_schema": {"$ref": "http://127.0.0.1:9/schema"}},
        {"json_schema": {"description": "x" * 200_000}},
        {"regex": "a"},
    ],
)
def test_an_output_that_cannot_be_checked_is_refused_when_saved(output):
    with pytest.raises(ValidationError):
        worker(output=output)


def test_argument_schemas_read_no_file_and_ask_no_server():
    with pytest.raises(ValueError, match=r"a \$ref points nowhere within it"):
        SchemaCheck({"$ref": "http://127.0.0.1:9/schema"})


@given(st.text(max_size=200))
def test_any_text_is_handed_over_or_refused(text):
    from pool_registry.schemas.output_check import BadOutput, Output, OutputChecker

    checker = OutputChecker(Output(json_schema={"type": ["object", "array", "number"]}))
    try:
        assert isinstance(checker.check(text), dict | list | int | float)
    except BadOutput as error:
        assert str(error)


# Fallbacks


def pair(**changes: Any) -> tuple[WorkerSpec, ...]:
    return worker(fallback="b", **changes), worker("b", "steady")


@pytest.mark.parametrize(
    ("text", "code"),
    [("!connection", "connection"), ("?auth", "auth"), ("hang", "timeout"), ("no price", "bad_output")],
)
def test_a_fallback_answers_for_a_worker_that_failed_and_both_are_paid(text, code):
    (seen,) = play(text, workers=pair(timeout_s=0.05, output={"json_schema": PRICE}))
    assert (seen.status, seen.value, seen.answered_by, seen.instead_of.code) == (Status.OK, {"price": 3}, "b", code)
    assert seen.usage.tokens_in == (20 if code == "bad_output" else 10)


def test_no_fallback_is_asked_when_all_is_well_or_the_call_is_malformed():
    fine, malformed = play("hello", "bad", workers=pair())
    assert (fine.value, fine.answered_by) == ("hello", None)
    assert (malformed.status, malformed.answered_by) == (Status.PARSE_ERR, None)


def test_when_all_fail_the_first_failure_stands_and_the_others_are_told():
    row = (worker(fallback="b"), worker("b", fallback="c"), worker("c"))
    (seen,) = play("?auth", workers=row)
    assert (seen.status, seen.error.code, Actor.calls) == (Status.EXEC_ERR, "auth", 3)
    assert "b in its place: auth" in seen.error.message and "c in its place" in seen.error.message


def test_a_fallback_that_takes_other_arguments_is_told():
    (seen,) = play("?auth", workers=(worker(fallback="b"), worker("b", "picky")))
    assert seen.error.code == "auth" and "b cannot take over" in seen.error.message and Actor.calls == 1


def test_a_step_starts_once_whoever_answers():
    async def once() -> int:
        started = []
        async with live_pool(Pool(name="p", workers=pair())) as pool:
            await pool.call(Action("a", {"text": "!connection"}), on_start=lambda: started.append(1))
        return len(started)

    assert asyncio.run(once()) == 1


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ((worker(fallback="nobody"),), "is not there"),
        ((worker(fallback="b"), worker("b", enabled=False)), "is switched off"),
        ((worker(fallback="a"),), "circle"),
        ((worker(fallback="b"), worker("b", fallback="a")), "a -> b -> a is a circle"),
        (
            (worker(fallback="b"), worker("b", fallback="c"), worker("c", fallback="d"), worker("d")),
            "at most 3 workers",
        ),
    ],
)
def test_fallbacks_that_lead_nowhere_are_refused_when_saved(row, says):
    with pytest.raises(InvalidPool, match=says) as caught:
        check_pool(Pool(name="p", workers=row))
    assert caught.value.problems[0][0] == "workers.0.fallback"


def test_a_worker_that_is_off_may_fall_back_on_anything():
    check_pool(Pool(name="p", workers=(worker(fallback="b", enabled=False), worker("b", enabled=False))))


# Rates


def test_waiting_for_the_rate_is_queueing_and_counts_against_no_time_out():
    started = time.monotonic()
    seen = play(*"abcd", workers=(worker(rate_limit=1200.0, timeout_s=0.02),))
    assert {each.status for each in seen} == {Status.OK} and time.monotonic() - started < 10


def test_no_more_calls_a_minute_start_than_allowed():
    async def many() -> int:
        started: list[float] = []
        async with live_pool(Pool(name="p", workers=(worker(rate_limit=5.0, max_concurrency=64),))) as pool:
            calls = [
                asyncio.create_task(pool.call(Action("a", {"text": "x"}), on_start=lambda: started.append(1)))
                for _ in range(20)
            ]
            await asyncio.sleep(0.2)
            for each in calls:
                each.cancel()
        return len(started)

    assert asyncio.run(many()) == 5  # the sixth would start after twelve seconds


@pytest.mark.parametrize(
    ("limits", "at_once"),
    [({"rate_limit": 10.0}, 5), ({"rate_limit": 1.0}, 1), ({"max_concurrency": 5}, 2), ({"max_concurrency": 1}, 1)],
)
def test_one_of_two_processes_has_half_of_what_limits_a_worker(limits, at_once):
    async def many() -> int:
        started: list[float] = []
        with share_limits(2):
            pool = open_live_pool(Pool(name="p", workers=(worker(**{"max_concurrency": 64} | limits),)))
        action = Action("a", {"text": "hang"})
        calls = [asyncio.create_task(pool.call(action, on_start=lambda: started.append(1))) for _ in range(20)]
        await asyncio.sleep(0.2)
        for each in calls:
            each.cancel()
        await pool.close()
        return len(started)

    assert asyncio.run(many()) == at_once


@pytest.mark.parametrize(
    ("wait_s", "result"), [(None, True), (0.5, 0.5), (59.0, False)]  # longer than the worker's own time-out
)  # fmt: skip
def test_a_retry_waits_as_asked_unless_that_cannot_help(wait_s, result):
    async def once() -> bool | float:
        pool = open_live_pool(Pool(name="p", workers=(worker(timeout_s=10.0),)))
        return find_wait(pool.workers["a"], WorkerFault("x", "y", retryable=True, retry_after_s=wait_s))

    assert asyncio.run(once()) == result


# Records


def test_a_recorded_observation_is_marked_and_free():
    first, second, third = play("x", "x", "y", workers=(worker(cache=True),))
    assert (first.cached, first.usage) == (False, USED)
    assert (second.value, second.cached, second.usage.cost, second.usage.tokens) == ("x", True, 0.0, 0)
    assert third.cached is False and Actor.calls == 2


def test_without_the_switch_every_call_is_made():
    assert not any(each.cached for each in play("x", "x", workers=(worker(),))) and Actor.calls == 2


def test_failures_and_other_workers_answers_are_not_recorded():
    play("!connection", "!connection", workers=pair(cache=True))
    assert Actor.calls == 2


def test_what_may_be_seen_belongs_to_the_key_down_to_the_reason_of_a_failure():
    def seen(message: str) -> tuple[Visible, ...]:
        return (Visible(1, "s", Observation.failure(Status.EXEC_ERR, "x", message)),)

    async def calls() -> list[bool]:
        async with live_pool(Pool(name="p", workers=(worker(cache=True),))) as pool:
            return [(await pool.call(Action("a", {"text": "x"}), seen(said))).cached for said in ("one", "two", "one")]

    assert asyncio.run(calls()) == [False, False, True]


def test_records_outlive_the_process_but_not_an_edit_or_a_week(tmp_path):
    engine = open_engine(find_home(tmp_path))

    def call(**changes: Any) -> bool:
        async def once() -> Observation:
            pool = Pool(name="p", workers=(worker(cache=True, **changes),))
            async with live_pool(pool, CallCache(DatabaseCacheStore(engine))) as live:
                return await live.call(Action("a", {"text": "x"}))

        return asyncio.run(once()).cached

    assert [call(), call(), call(description="in other words"), call(output={"pattern": "x"})] == [
        False,
        True,
        True,
        False,
    ]
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE recorded SET created_at = '2020-01-01 00:00:00.000000'")
    assert call() is False


def test_a_record_that_cannot_be_read_is_made_anew(tmp_path):
    engine = open_engine(find_home(tmp_path))
    shelf = DatabaseCacheStore(engine)
    shelf.put("k", Observation(Status.OK, 1))
    assert shelf.get("k") == Observation(Status.OK, 1) and shelf.get("other") is None
    with engine.begin() as connection:
        connection.execute(RecordedRow.__table__.update().values(body="{"))
    assert shelf.get("k") is None
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE recorded")
    shelf.put("k", Observation(Status.OK, 1))
    assert shelf.get("k") is None


# The hash of old pools


def test_pools_from_before_these_fields_keep_their_hash():
    pool = Pool(name="p", workers=(WorkerSpec(name="calc", kind="calculator", description="adds"),))
    assert pool.hash == "0c2d7f04629d5c365b717161c2a1cdb06b37ce3617c16f463ef11f19e7539bff"
    changes = ({"output": {"pattern": "a"}}, {"fallback": "x"}, {"rate_limit": 1.0}, {"cache": True})
    hashes = {Pool(name="p", workers=(worker(**change),)).hash for change in ({}, *changes)}
    assert len(hashes) == 5


def test_a_pool_with_every_guard_comes_back_equal():
    pool = Pool(name="p", workers=pair(output={"json_schema": PRICE}, rate_limit=5.0, cache=True))
    assert import_pool(export_pool(pool)) == pool


# The breaker


def test_a_worker_that_fails_again_and_again_is_left_alone_and_says_until_when():
    seen = play(*["!connection"] * 7, workers=(worker("a"),))
    assert [each.error.code for each in seen] == ["connection"] * 5 + ["circuit_open"] * 2
    assert Actor.calls == 5 and "is tried again in 30 s" in seen[-1].error.message


@pytest.mark.parametrize("text", ["bad", "?bad_request"])
def test_what_the_caller_did_wrong_opens_no_circuit(text):
    play(*[text] * 8, workers=(worker(),))
    assert Actor.calls == 8


def test_time_outs_open_the_circuit_for_every_open_pool_of_the_process():
    async def both() -> list[str]:
        spec = worker(timeout_s=0.01)
        one, other = (open_live_pool(Pool(name=name, workers=(spec,))) for name in ("p", "q"))
        for _ in range(FAILURES):
            await one.call(Action("a", {"text": "hang"}))
        edited = open_live_pool(Pool(name="p", workers=(worker(timeout_s=1.0),)))
        return [await _code(pool) for pool in (one, other, edited)]

    async def _code(pool: LivePool) -> str:
        seen = await pool.call(Action("a", {"text": "fine"}))
        return seen.error.code if seen.error else "OK"

    assert asyncio.run(both()) == ["circuit_open", "circuit_open", "OK"]


def test_after_the_pause_one_call_tries_and_closes_the_circuit():
    now = [0.0]

    async def trial() -> list[str]:
        pool = open_live_pool(Pool(name="p", workers=(worker(),)))
        breaker_of(pool.workers["a"].spec)._clock = lambda: now[0]
        for _ in range(FAILURES):
            await pool.call(Action("a", {"text": "!connection"}))
        now[0] = OPEN_S
        trying = asyncio.create_task(pool.call(Action("a", {"text": "hang"})))
        await asyncio.sleep(0)
        others = await pool.call(Action("a", {"text": "x"}))
        trying.cancel()  # the trial was stopped: it says nothing, and the next call tries
        await asyncio.wait([trying])
        fine = [await pool.call(Action("a", {"text": "x"})) for _ in range(2)]
        assert "right now" in others.error.message
        return [others.error.code, *(each.status for each in fine)]

    assert asyncio.run(trial()) == ["circuit_open", "OK", "OK"]


@given(st.lists(st.one_of(st.just("ok"), st.just("fail"), st.just("abandon"), st.floats(0.1, 40.0)), max_size=80))
def test_the_breaker_opens_exactly_after_a_row_of_failures_and_admits_one_trial(history):
    now, failures, open_until = 0.0, 0, None
    breaker = Breaker(lambda: now)
    for event in history:
        if isinstance(event, float):
            now += event
            continue
        admission = breaker.admit()
        if open_until is not None and now < open_until:
            assert admission is Admission.NO and breaker.circuit.state == "open"
            continue
        assert admission is (Admission.YES if open_until is None else Admission.TRIAL)
        if admission is Admission.TRIAL:
            assert breaker.circuit.state == "half-open" and breaker.admit() is Admission.NO
        if event == "abandon":
            breaker.abandon(admission)
            continue
        breaker.settle(admission, failed=event == "fail")
        failures = failures + 1 if event == "fail" else 0
        open_until = now + OPEN_S if failures >= FAILURES else None
        assert breaker.circuit.failures == failures


def test_failures_that_come_late_prolong_nothing():
    now = [0.0]
    breaker = Breaker(lambda: now[0])
    for _ in range(FAILURES):
        breaker.settle(Admission.YES, failed=True)
    now[0] = 29.0
    breaker.settle(Admission.YES, failed=True)
    assert breaker.circuit.seconds == pytest.approx(1.0)
    now[0] = 30.0
    assert breaker.admit() is Admission.TRIAL
    breaker.settle(Admission.YES, failed=True)
    assert breaker.admit() is Admission.NO
    breaker.settle(Admission.TRIAL, failed=True)
    assert breaker.circuit.seconds == pytest.approx(30.0)
