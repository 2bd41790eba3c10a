"""A finished job made by hand: figures, groups of real episodes and checkpoints, as a job's process writes them."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from orchestrator.checkpoints import Checkpoint
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.process_identity import this_process
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.storage.database import writing
from trainer.evaluation.trials import grade_episode
from trainer.jobs.job_folder import JobFolder
from trainer.jobs.queue import JobRow, JobStore
from trainer.recipe import Recipe
from trainer.tasks import find_task
from trainer.tasks.task import Task

WORKERS = ("sql", "calculator", "units", "atlas_search", "reader")
NAME = "by-hand"


def recipe(sft: int = 60, grpo: int = 40, phases: Sequence[tuple[str, int]] = ()) -> Recipe:
    """`grpo` counts the steps of the main run and of the phases: (name, steps)."""
    main = grpo - sum(steps for _, steps in phases)
    return Recipe.model_validate(
        {
            "name": NAME,
            "title": "Made by a test",
            "sft": {"steps": sft, "saving": {"every": 20}},
            "grpo": {
                "steps": main,
                "rollouts": {"prompts": 2, "group": 4},
                "micro_batch": 8,
                "phases": [{"name": name, "steps": steps} for name, steps in phases],
            },
            "evaluate": {"count": 8},
        }
    )


class Scripted(Orchestrator):
    """Writes turns that were made before."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.name = NAME
        self._turns = list(turns)

    async def turn(self, episode: Episode) -> Turn:
        return self._turns.pop(0) if self._turns else Turn(error="no turn", failed=False)


def write_job(
    store: Store,
    *,
    sft: int = 60,
    grpo: int = 40,
    shown: int = 3,
    state: str = "done",
    phases: Sequence[tuple[str, int]] = (),
) -> str:
    """The job's id. `shown` of its steps have groups with recorded episodes; `state` is what its row says."""
    jobs = JobStore(store.engine, store.home)
    row = jobs.submit(recipe(sft, grpo, phases))
    job_folder = jobs.folder(row.id)
    _figures(job_folder, sft, grpo)
    with ThreadPoolExecutor(1) as aside:  # Playwright has an event loop in the tests' own thread
        groups = aside.submit(asyncio.run, _groups(store, sft + grpo - shown + 1, shown)).result()
    for group in groups:
        job_folder.append_group(group)
    for step in (sft // 2, sft, sft + grpo // 2, sft + grpo):
        phase = phases[-1][0] if phases and step == sft + grpo else ""
        _checkpoint(job_folder, step, "sft" if step <= sft else "grpo", 0.2 + 0.5 * step / (sft + grpo), phase)
    job_folder.log.write_text(
        "2026-11-21 10:00:00 stage sft\n2026-11-21 10:20:00 <b>not markup</b>\n", encoding="utf-8"
    )
    for step in (sft, sft + grpo):
        job_folder.append_evaluation(_evaluation(f"{row.id}@{step}", 0.3 + 0.3 * (step > sft)))
    store.traces.flush()
    _ended(store, row.id, state, sft + grpo)
    return row.id


def note_step(store: Store, job: str, step: int, figures: dict[str, float]) -> None:
    """One more step of GRPO, as the job's process would append it."""
    _note(JobStore(store.engine, store.home).folder(job), "grpo", step, time.time(), figures)


def set_state(store: Store, job: str, state: str) -> None:
    """Say in the job's row how it is. One that runs belongs to this process: it lives, so nobody takes the job for
    lost."""
    with writing(store.engine) as session:
        row = session.get(JobRow, job)
        assert row is not None
        row.state = state
        row.owner = this_process() if state == "running" else ""
        session.add(row)


def set_place(store: Store, job: str, where: str, gpus: str = "", processes: int = 1) -> None:
    """Say in the job's row where it runs; `gpus` are numbers with commas between them."""
    with writing(store.engine) as session:
        row = session.get(JobRow, job)
        assert row is not None
        row.where, row.gpus, row.processes = where, gpus, processes
        session.add(row)


def _ended(store: Store, job: str, state: str, step: int) -> None:
    now = datetime.now(UTC)
    with writing(store.engine) as session:
        row = session.get(JobRow, job)
        assert row is not None
        row.state, row.stage, row.step = state, "grpo", step
        row.started_at, row.ended_at = now - timedelta(minutes=18), now
        row.owner = this_process() if state == "running" else row.owner
        session.add(row)


def _figures(job_folder: JobFolder, sft: int, grpo: int) -> None:
    noise = random.Random(7)
    begun = time.time() - 1080
    pace = 1000 / (sft + grpo)
    for step in range(1, sft + 1):
        figures = {"loss": 4 * math.exp(-6 * step / sft) + 0.05 + noise.random() * 0.05, "learning_rate": 1e-3}
        _note(job_folder, "sft", step, begun + step * pace, {**figures, "mean_token_accuracy": 1 - 0.6 / step})
    for k in range(1, grpo + 1):
        rise = k / grpo
        right = 0.35 + 0.4 * rise + noise.uniform(-0.1, 0.1)
        shares = {name: 0.2 + noise.uniform(-0.05, 0.05) for name in WORKERS}
        failed = max(0.0, 0.12 - 0.1 * rise + noise.uniform(-0.02, 0.02))
        rollouts = {
            "rollout/correct": right,
            "rollout/turns": 1.4 - 0.3 * rise + noise.uniform(-0.1, 0.1),
            "rollout/steps": 4.2 + noise.uniform(-0.5, 0.5),
            "rollout/width": 2.6 + noise.uniform(-0.3, 0.3),
            "rollout/length": 150 + 20 * math.sin(k / 9) + noise.uniform(-8, 8),
            "rollout/valid_turns": 0.9 + 0.08 * rise,
            "groups/skipped": noise.choice([0, 1, 1, 2]),
            "groups/equal": noise.choice([0, 0, 1]),
            "status/OK": 1 - failed,
            "status/PARSE_ERR": failed * 0.5,
            "status/EXEC_ERR": failed * 0.35,
            "status/TIMEOUT": failed * 0.15,
            **{f"worker/{name}": share / sum(shares.values()) for name, share in shares.items()},
            "term/accuracy": right,
            "term/accuracy/spread": 0.4,
            "term/format": 0.9 + 0.08 * rise,
            "term/efficiency": 0.6 + 0.1 * rise,
            "time/rollouts_s": 3 + noise.random(),
            "time/generation_s": 2 + noise.random(),
            "time/tokens_per_s": 900 + noise.uniform(-80, 80),
            "level/atlas-1": 0.6 + 0.3 * rise,
            "level/ledger-2": 0.3 + 0.4 * rise,
        }
        learnt = {
            "loss": noise.uniform(-0.02, 0.02),
            "reward": right + 0.2,
            "reward_std": 0.4,
            "entropy": 0.6 - 0.2 * rise,
            "kl": 0.01 * rise,
            "learning_rate": 1e-5,
            "step_time": 6.0,
            "completions/clipped_ratio": 0.02,
        }
        at = begun + (sft + k) * pace
        _note(job_folder, "grpo", sft + k, at, rollouts)
        _note(job_folder, "grpo", sft + k, at + 0.5, learnt)


def _note(job_folder: JobFolder, stage: str, step: int, at: float, figures: dict[str, float]) -> None:
    job_folder._append(job_folder.metrics, {"stage": stage, "step": step, "at": at, **figures})


async def _groups(store: Store, first: int, count: int) -> list[dict[str, Any]]:
    from pool_registry.starter import seed_starter

    seed_starter(store.pools)
    pool = open_live_pool(store.pools.latest("starter").pool)
    try:
        return [
            await _group(store, pool, find_task(family, level, "train", step), step, kind)
            for step in range(first, first + count)
            for family, level, kind in (("ledger", 2, "mixed"), ("ledger", 3, "mixed"), ("ledger", 1, "equal"))
        ]
    finally:
        await pool.close()


async def _group(store: Store, pool: LivePool, task: Task, step: int, kind: str) -> dict[str, Any]:
    plan = task.oracle_turn
    assert plan is not None
    short = Turn(plan.steps[:-1], f"${plan.steps[0].id}", text=plan.text) if len(plan.steps) > 1 else plan
    babble = Turn(error="this is no JSON object", text="I would look it up first.")
    scripts = [[plan], [short], [babble, plan], [babble]] if kind == "mixed" else [[plan]] * 4
    episodes: list[dict[str, Any]] = []
    for turns in scripts:
        limits = pool.pool.limits.model_copy(update={"max_rounds": 2})
        spec = EpisodeSpec(task.query, task=task.ref)
        episode = await run_episode(spec, Scripted(turns), pool, limits=limits, sink=store.traces)
        right = bool(await grade_episode(episode, task, store.traces, pool))
        form = 1.0 if len(turns) == 1 and turns[0].error is None else 0.5 * (len(turns) > 1)
        terms = {"accuracy": float(right), "format": form, "efficiency": 0.9 if right else 0.0}
        reward = terms["accuracy"] + 0.2 * form + 0.1 * terms["efficiency"]
        episodes.append({"id": episode.id, "correct": right, "terms": terms, "reward": reward, "tokens": 120})
    mean = sum(each["reward"] for each in episodes) / len(episodes)
    spread = math.sqrt(sum((each["reward"] - mean) ** 2 for each in episodes) / 3) + 1e-4
    for each in episodes:
        each["advantage"] = (each["reward"] - mean) / spread
    ref = task.ref
    equal = kind == "equal"
    return {
        "step": step, "query": task.query, "family": ref.family, "level": ref.level, "index": ref.index,
        "equal": equal, "kept": not equal, "episodes": episodes,
    }  # fmt: skip


def _checkpoint(
    job_folder: JobFolder, step: int, stage: Literal["sft", "grpo"], correct: float, phase: str = ""
) -> None:
    draft = job_folder.draft / str(step)
    draft.mkdir(parents=True)
    (draft / "model.safetensors").write_bytes(b"x" * 1000)
    metrics = {"check/correct": correct, "check/valid_turns": 0.95}
    job_folder.append_metrics(stage, step, metrics)
    about = Checkpoint(name="t", kind="full", base="starter:tiny", stage=stage, step=step, metrics=metrics, phase=phase)
    job_folder.save_checkpoint(draft, about)


def _evaluation(name: str, mean: float) -> dict[str, Any]:
    cells = [
        {"family": "atlas", "level": 3, "tasks": 4, "mean": mean},
        {"family": "ledger", "level": 2, "tasks": 4, "mean": mean},
    ]
    return {
        "orchestrator": name, "family": "all", "level": 0, "split": "test", "tasks": 8, "mean": mean,
        "interval": [mean - 0.2, mean + 0.2], "turn_errors": 1, "p50_s": 0.4, "speedup": 1.6, "cost": 0.0,
        "cells": cells, "episodes": [],
    }  # fmt: skip
