"""A job at its cap is stopped and can go on, and has cost no more than its cap, with eight episodes in flight and
however often it is resumed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.traces.store import Store
from pool_registry.actions import Usage
from pool_registry.kinds import KINDS, Kind
from pool_registry.pool import Pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec, one_string
from tests.trust.trials import choose_trials, count_trials
from trainer.job_process import run_job
from trainer.jobs.job_folder import JobFolder
from trainer.jobs.queue import JobStore
from trainer.recipe import parse_recipe
from trainer.results.rows import read_results
from trainer.spend_cap import sum_costs

pytestmark = pytest.mark.medium

TRIALS = choose_trials(3)
IN_FLIGHT, TASKS = 8, 24
TOKENS = 1000  # that a call may use; it uses any number up to that


class Bills(Worker[NoConfig]):
    """Takes a moment, so that calls of all episodes are open at once, and writes down what it charges."""

    charged: list[int] = []
    open_calls = most_open = 0

    @property
    def parameters(self) -> Mapping[str, Any]:
        return one_string("text", "anything")

    def estimate_usage(self, call: Call) -> Usage:
        return Usage(tokens_out=TOKENS)

    async def call(self, call: Call) -> Reply:
        Bills.open_calls += 1
        Bills.most_open = max(Bills.most_open, Bills.open_calls)
        tokens = Random(f"{call.text('text')} {len(Bills.charged)}").randint(1, TOKENS)
        Bills.charged.append(tokens)
        await asyncio.sleep(0.002)
        Bills.open_calls -= 1
        return Reply(call.text("text"), Usage(tokens_out=tokens))


def write_tasks(file: Path, random: Random) -> None:
    """Tasks of one to five steps, each of which uses the one before."""

    def line(number: int) -> str:
        steps = random.randint(1, 5)
        plan = {
            "steps": [
                {"worker": "bills", "arguments": {"text": f"${k}" if k else str(number)}, "access": [k] if k else []}
                for k in range(steps)
            ],
            "answer": f"${steps}",
        }
        return json.dumps({"query": f"Say {number}.", "answer": str(number), "plan": plan, "split": "test"})

    file.write_text("".join(f"{line(number)}\n" for number in range(TASKS)))


@pytest.mark.parametrize("seed", range(TRIALS))
def test_a_job_is_stopped_at_its_cap_and_never_costs_more(store: Store, jobs: JobStore, tmp_path, monkeypatch, seed):
    monkeypatch.setitem(KINDS.built_in, "bills", Kind("bills", f"{__name__}:Bills"))
    Bills.charged, Bills.open_calls, Bills.most_open = [], 0, 0
    random = Random(seed)
    write_tasks(tmp_path / "tasks.jsonl", random)
    price = random.uniform(0.1, 20)  # dollars for a million tokens
    spec = WorkerSpec(name="bills", kind="bills", description="Says it again.", price_out=price)
    store.pools.save(Pool(name="priced", workers=(spec,)))
    most = TOKENS * price / 1e6
    cap = random.uniform(3, 30) * most
    section = {"orchestrators": ["oracle"], "source": f"file:{tmp_path / 'tasks.jsonl'}", "count": TASKS,
               "concurrency": IN_FLIGHT}  # fmt: skip
    recipe = parse_recipe(json.dumps({"name": "capped", "pool": "priced", "evaluate": section, "max_cost": cap}))
    key = jobs.submit(recipe, here=True).id
    for _ in range(3):
        run_job(key, store, jobs)
        job = jobs.get(key)
        spent = sum(Bills.charged) * price / 1e6
        assert spent <= cap + most, f"${spent:.6f} of ${cap:.6f}, where a call may cost ${most:.6f}"
        assert (job.state, job.code) in (("stopped", "max_cost"), ("done", "")), job.message
        count_trials()
        if job.state == "done":
            break
        assert "--max-cost" in job.message
        jobs.resume(key)  # with the same cap
    if job.state != "done":
        run_job(key, store, jobs)
        jobs.resume(key, 1000.0)
        run_job(key, store, jobs)
    assert (jobs.get(key).state, len(read_results(jobs.folder(key).results))) == ("done", TASKS)


def test_what_a_step_that_did_not_end_has_cost_counts_after_a_resume(tmp_path):
    from trainer.methods.grpo.stage import _keep_cost

    job_folder = JobFolder(tmp_path).create()
    training: Any = SimpleNamespace(job_folder=job_folder)
    for step, cost in ((2, 1.0), (3, 1.25)):
        job_folder.append_metrics("grpo", step, {"cost/total": cost})
    engine: Any = SimpleNamespace(cost=1.5)
    _keep_cost(training, engine)
    job_folder.truncate_after(2)
    assert sum_costs(job_folder)["training"] == 1.5
