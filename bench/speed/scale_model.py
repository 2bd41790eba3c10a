"""What happens at 1,000 workers, 10 million stored episodes, 100 evaluation nodes and 64 GPUs: which part is the bound.

    python bench/speed/scale_model.py                                 # the table, from the figures saved last
    python bench/speed/scale_model.py --measure [--episodes 1000000]  # measure anew; PostgreSQL's programs must be here

What is measured: a step of the engine and a running episode's memory (bench/results/executor.json), a pool of 1,000
workers, and PostgreSQL with a million stored episodes of 4 events each (without fsync). What is modelled: everything
grows linearly with its count, except what an index serves. Each line of the table says from which figure it follows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

RESULTS = ROOT / "bench" / "results"
FILTERS: dict[str, dict[str, Any]] = {
    "newest": {},
    "page 100": {"offset": 5000},
    "one pool": {"pool": "pool7"},
    "one pool, nothing matches": {"pool": "pool7", "source": "served", "state": "wrong"},
    "a text that no run has": {"text": "zzqq"},
    "sorted by cost": {"sort": "cost"},
}
# Every tenth is an inner episode; 40 pools, 4 orchestrators, 3 users, 4 sources.
ADD_EPISODES = """
INSERT INTO episode (id, query, pool, pool_hash, orchestrator, started_at, depth, family, state, owner, answer, correct,
                     wall_s, steps, failed_steps, tries, tokens, cost, user_name, source)
SELECT 'e' || i, 'What is the population of city ' || i || ' in the year ' || (1900 + i %% 120) || '?',
       'pool' || i %% 40, md5((i %% 40)::text), (ARRAY['oracle', 'fan_out', 'reader', 'model:a'])[1 + i %% 4],
       to_char(timestamp '2026-01-01' + i * interval '3 second', 'YYYY-MM-DD"T"HH24:MI:SS.000+00:00'),
       (i %% 10 = 0)::int, 'atlas', 'answered', '', 'The answer is ' || md5(i::text), i %% 3 = 0,
       (i %% 700) / 10.0, i %% 12, i %% 2, 0, i %% 5000, (i %% 97) / 1000.0, (ARRAY['', 'ann', 'bob'])[1 + i %% 3],
       (ARRAY['mine', 'served', 'evaluation', 'training'])[1 + i %% 4]
FROM generate_series(1, %s) i"""
ADD_EVENTS = """
INSERT INTO event (episode, type, worker, status, latency_s, body)
SELECT 'e' || i, 'step_ended', 'w' || (i + j) %% 60, 'OK', 0.05,
       '{"step":1,"observation":{"status":"OK","value":"' || md5(i::text) || '","latency_s":0.05,"usage":{"tokens_in":'
       '0,"tokens_out":0,"cost":0.0},"error":null,"prompt":null},"at":1.5,"type":"step_ended"}'
FROM generate_series(1, %s) i, generate_series(1, 4) j"""


def measure_pool(workers: int = 1000) -> dict[str, float]:
    """Seconds to open a pool, to hash it, and to choose the workers that a model is shown, by words."""
    from orchestrator.retrieval.choose_workers import describe_worker, score_words
    from pool_registry.calls.live_pool import open_live_pool
    from pool_registry.pool import Pool
    from pool_registry.worker import WorkerSpec

    specs = tuple(
        WorkerSpec(name=f"calc_{k}", kind="calculator", description=f"Calculates kind {k} of sums.")
        for k in range(workers)
    )
    pool = Pool(name="many", workers=specs)
    opened = open_live_pool(pool)
    cards = [describe_worker(worker) for worker in opened.workers.values()]
    return {
        "workers": workers,
        "open_s": time_best(lambda: open_live_pool(pool)),
        "hash_s": time_best(lambda: pool.hash),
        "choose_s": time_best(lambda: score_words("kind 7 of sums", cards)),
    }


def measure_store(episodes: int) -> dict[str, Any]:
    """The queries of the Traces page, writing and deleting, in a PostgreSQL of our own with this many episodes."""
    import psycopg

    from orchestrator.traces.store import TraceFilter, open_store
    from pool_registry.storage.data_folder import find_home
    from tests.postgres import postgres

    with postgres() as url, tempfile.TemporaryDirectory() as home:
        os.environ["PODIUM_DATABASE_URL"] = url.replace("postgresql://", "postgresql+psycopg://")
        store = open_store(find_home(home))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(ADD_EPISODES, (episodes,))
            connection.execute(ADD_EVENTS, (episodes,))
            connection.execute("VACUUM ANALYZE")
            sizes = "SELECT pg_total_relation_size('episode'), pg_total_relation_size('event')"
            episode_bytes, event_bytes = connection.execute(sizes).fetchone() or (0, 0)
            traces = store.traces
            queries = {
                name: time_best(lambda chosen=chosen: traces.search(TraceFilter(limit=51, **chosen)))
                for name, chosen in FILTERS.items()
            }
            queries["what filters can be set to"] = time_best(
                lambda: [traces.list_pools(), *map(traces.distinct, ("orchestrator", "user_name", "source"))]
            )
            queries["one episode's events"] = time_best(lambda: traces.events_after(f"e{episodes // 2}"))
            oldest = "SELECT id FROM episode ORDER BY started_at LIMIT %s"
            started = time.perf_counter()
            deleted = connection.execute(f"DELETE FROM episode WHERE id IN ({oldest})", (episodes // 100,)).rowcount
            delete_s = (time.perf_counter() - started) / deleted
        written_s = time_writing(store.traces)
        store.close()
    return {
        "episodes": episodes,
        "bytes_per_episode": episode_bytes / episodes,
        "bytes_per_event": event_bytes / episodes / 4,
        "seconds": {name: round(seconds, 4) for name, seconds in queries.items()},
        "delete_s_per_episode": delete_s,
        "write_s_per_event": written_s,
    }


def time_writing(traces: Any, episodes: int = 1000) -> float:
    """Seconds per event from the first `append` until everything is on disk; an episode has 16 events."""
    from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, StepEnded, StepStarted, TurnStarted, TurnTaken
    from orchestrator.plan import Step, Turn
    from pool_registry.actions import Observation, Status

    turn = Turn(tuple(Step(k, f"w{k}", {"text": "do it"}) for k in range(1, 7)), "$6")
    events: list[Any] = [EpisodeStarted("q", "p", "h", "o", {}, "2027"), TurnStarted(1, 0.0), TurnTaken(1, turn, 0.1)]
    for k in range(1, 7):
        observation = Observation(Status.OK, "a result of some forty characters or so", 0.05)
        events += [StepStarted(k, 0.2, {"text": "do it"}), StepEnded(k, observation, 0.3)]
    events.append(EpisodeEnded("answered", 0.4, "done"))
    started = time.perf_counter()
    for number in range(episodes):
        for event in events:
            traces.append(f"written-{number}", event)
    traces.flush()
    return (time.perf_counter() - started) / episodes / len(events)


def time_best(call: Callable[[], object], repeats: int = 3) -> float:
    """The least of the seconds that a call takes."""
    took = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        took.append(time.perf_counter() - started)
    return min(took)


def print_model(measured: dict[str, Any], executor: dict[str, Any]) -> None:
    """Print one line for each size: the figure, what it is compared with, and which part is the bound."""
    store, pool = measured["store"], measured["pool"]
    step_us = executor["noop_us_per_step"]["podium_on_disk"]
    episode_mb = executor["concurrent_mb"]["podium"] / executor["concurrent_runs"]
    per_core, write_s = 1e6 / step_us, store["write_s_per_event"]
    calls_s = 1000 * 8 / 1.0  # 8 calls at a time of each worker, a second each
    node_events_s = 32 / (3 * 0.7) * 10  # 32 episodes at a time, 3 calls of 0.7 s each, 10 events
    grown = 10_000_000 / store["episodes"]
    stored_gb = 10_000_000 * (store["bytes_per_episode"] + 16 * store["bytes_per_event"]) / 1e9
    seconds = store["seconds"]
    lines = [
        (
            "1,000 workers",
            f"the pool opens in {pool['open_s']:.2f} s; {1e3 * pool['choose_s']:.0f} ms to choose for a query",
        ),
        (
            "  all busy, 8 calls of 1 s each",
            f"{calls_s:,.0f} calls/s; one engine process does {per_core:,.0f} on a core",
        ),
        ("  their episodes", f"{calls_s / 3:,.0f} at a time hold {calls_s / 3 * episode_mb:.0f} MB"),
        ("10 million episodes of 16 events", f"{stored_gb:.0f} GB in PostgreSQL"),
        (
            "  newest, a page, one pool",
            f"{1e3 * max(seconds[n] for n in ('newest', 'page 100', 'one pool')):.0f} ms, by index",
        ),
        (
            "  a text that no run has",
            f"{grown * seconds['a text that no run has']:.0f} s: reads every episode (without pg_trgm)",
        ),
        ("  sorted by cost", f"{grown * seconds['sorted by cost']:.0f} s: reads every episode"),
        ("  deleting a million", f"{1e6 * store['delete_s_per_episode'] / 60:.0f} min with 4 events each"),
        (
            "100 nodes, 32 episodes at a time",
            f"{100 * node_events_s:,.0f} events/s; one writer does {1 / write_s:,.0f}",
        ),
        ("  so one writer serves", f"{1 / write_s / node_events_s:.0f} nodes"),
    ]
    for share in (0.5, 0.7):
        faster = {gpus: 1 / (share + (1 - share) / gpus) for gpus in (8, 64)}
        sentence = ", ".join(f"{times:.1f} times on {gpus}" for gpus, times in faster.items())
        lines.append((f"one GRPO job, {share:.0%} sampling", f"{sentence}: the first process samples alone"))
    for what, figure in lines:
        print(f"{what:36}{figure}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="measure the pool and PostgreSQL again")
    parser.add_argument("--episodes", type=int, default=1_000_000)
    options = parser.parse_args()
    saved = RESULTS / "scale_model.json"
    if options.measure:
        measured = {"pool": measure_pool(), "store": measure_store(options.episodes), "load_1min": os.getloadavg()[0]}
        saved.write_text(json.dumps(measured, indent=1) + "\n")
    print_model(json.loads(saved.read_text()), json.loads((RESULTS / "executor.json").read_text()))


if __name__ == "__main__":
    main()
