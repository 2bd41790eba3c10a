"""A worker's light: from its probe, its recorded calls and its breaker, cheap however long the history is."""

from __future__ import annotations

import time
from dataclasses import asdict

import pytest

from orchestrator.traces.store import RecordedCall, open_store
from pool_registry.calls.circuit_breaker import FAILURES, Admission, Circuit, breaker_of
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import WorkerSpec
from studio.runtime import Runtime
from studio.worker_health import Probe, assess_worker

SPEC = WorkerSpec(name="calc", kind="calculator", description="adds", timeout_s=10)
OK = RecordedCall("OK", 0.5, None)
DOWN = RecordedCall("EXEC_ERR", 0.1, "connection")
ASKED_WRONGLY = RecordedCall("EXEC_ERR", 0.1, "bad_query")
OLD = RecordedCall("TIMEOUT", 9.0, None)  # recorded before codes were
SLOW = RecordedCall("OK", 8.0, None)
GOOD, BAD = Probe(True, "ready"), Probe(False, "no key")
OPEN, HALF = Circuit("open", 5, 12.4), Circuit("half-open", 5)


@pytest.mark.parametrize(
    ("probe", "calls", "circuit", "light", "says"),
    [
        (None, [], Circuit(), "unknown", "not tested"),
        (GOOD, [], Circuit(), "ok", "not called yet; ready"),  # a probe is no proof that it works
        (None, [OK], Circuit(), "ok", "answers"),
        (BAD, [OK] * 50, Circuit(), "failing", "no key"),
        (GOOD, [DOWN] * 2, Circuit(), "ok", "ready"),  # two calls are no rate
        (GOOD, [DOWN] * 5 + [OK] * 5, Circuit(), "failing", "50% of its recent calls failed, last with connection"),
        (GOOD, [DOWN] * 5 + [OK] * 45, Circuit(), "degraded", "10%"),
        (GOOD, [DOWN] * 4 + [OK] * 46, Circuit(), "ok", "ready"),
        (GOOD, [ASKED_WRONGLY] * 50, Circuit(), "ok", "ready"),
        (GOOD, [OLD] * 50, Circuit(), "failing", "last with TIMEOUT"),
        (GOOD, [SLOW] * 3, Circuit(), "degraded", "slow: 8 s"),
        (GOOD, [OK] * 50, OPEN, "failing", "5 times in a row; tried again in 12 s"),
        (GOOD, [OK] * 50, HALF, "degraded", "the next call tries it"),
    ],
)
def test_the_light_says_what_is_wrong_first(probe, calls, circuit, light, says):
    health = assess_worker(SPEC, probe, calls, circuit)
    assert health.light == light and says in health.sentence


def test_figures_come_with_the_light():
    health = assess_worker(SPEC, GOOD, [DOWN, OK, SLOW, ASKED_WRONGLY], HALF)
    document = asdict(health)
    assert (document["calls"], document["errors"], document["error_rate"]) == (4, 1, 0.25)
    assert document["median_latency_s"] == 0.3 and document["last_error"] == "connection"
    assert document["probe"]["at"].endswith("+00:00") and document["circuit"]["state"] == "half-open"


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """A studio with 10,000 episodes; only the oldest ones on pool `rare` called `calc`."""
    store = open_store(find_home(tmp_path_factory.mktemp("home")))
    count = "WITH RECURSIVE n(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM n WHERE k < 9999) "
    with store.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO episode (id, query, pool, pool_hash, orchestrator, started_at, depth, state, owner, wall_s,"
            f" steps, failed_steps, tokens, cost) {count} SELECT 'e' || k, 'q', CASE WHEN k < 3 THEN 'rare' ELSE 'main'"
            " END, 'h', 'o', printf('%05d', k), 0, 'answered', '', 0, 3, 0, 0, 0 FROM n"
        )
        for worker in ("calc", "sql", "python"):
            connection.exec_driver_sql(
                f"INSERT INTO event (episode, type, worker, status, code, latency_s, body) {count} SELECT 'e' || k,"
                " 'step_ended', ?, CASE WHEN k < 9990 THEN 'OK' ELSE 'EXEC_ERR' END,"
                " CASE WHEN k < 9990 THEN NULL ELSE 'server_error' END, 0.001 * (k % 100), '{}' FROM n",
                (worker,),
            )
    runtime = Runtime(store)
    yield runtime
    runtime.close()


def test_health_reads_an_index_and_a_bounded_number_of_rows(runtime):
    health = runtime.worker_health(SPEC, "main")
    assert (health.light, health.calls, health.errors, health.last_error) == ("degraded", 50, 10, "server_error")
    assert runtime.worker_health(SPEC, "rare").calls == 0  # its calls are further back than is looked
    assert runtime.worker_health(SPEC).calls == 50
    with runtime.store.engine.connect() as connection:
        plan = connection.exec_driver_sql(
            "EXPLAIN QUERY PLAN SELECT status FROM event WHERE worker = 'calc' ORDER BY id DESC LIMIT 50"
        ).fetchall()
    assert "ix_event_worker" in str(plan) and "TEMP B-TREE" not in str(plan)
    started = time.perf_counter()
    for _ in range(20):
        runtime.worker_health(SPEC, "main")
    assert (time.perf_counter() - started) / 20 < 0.5  # measured: 3 ms; a scan of all events would grow with them


def test_an_open_breaker_and_a_probe_show_in_the_light(runtime):
    runtime.check_workers([SPEC])
    assert runtime.worker_health(SPEC, "rare").probe.ok
    breaker = breaker_of(SPEC)
    for _ in range(FAILURES):
        breaker.settle(Admission.YES, failed=True)
    assert runtime.worker_health(SPEC, "rare").circuit.state == "open"
    changed = SPEC.model_copy(update={"timeout_s": 20.0})
    assert runtime.worker_health(changed, "rare").circuit.state == "closed"  # an edited worker starts afresh
