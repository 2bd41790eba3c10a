"""Advice on a job, in the order of importance: is it alive, does it learn at all, and only then tuning.

A pure function of metric rows, groups of episodes and the job's row. Each piece of advice says what is seen
and what to do about it, by the recipe's key where there is one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from datetime import UTC, datetime

from pool_registry.actions import JsonValue
from trainer.jobs.queue import STALE_S, JobRow
from trainer.methods.advice import Advice, MetricRows, Row, number
from trainer.recipe import Recipe

START_S = 120.0  # loading a model takes its time before the first figure


def advise(rows: Sequence[Row], groups: Sequence[Row], row: JobRow, recipe: Recipe | None, now: float) -> list[Advice]:
    """Give advice on a job, the most pressing first; tuning only when nothing else is wrong."""
    metrics = MetricRows(rows, groups, row.active)
    alive = _advise_on_life(metrics, row, now)
    if any(advice.alarming for advice in alive) or not rows:
        return alive
    learning = _advise_on_learning(metrics, recipe) if recipe else []
    degenerate = [advice for advice in learning if advice.level == "degenerate"]
    return [*alive, *(degenerate or [*learning, *_advise_on_checks(metrics)])]


def _advise_on_learning(metrics: MetricRows, recipe: Recipe) -> list[Advice]:
    stages = recipe.training_stages
    return [advice for stage in stages for advice in stage.method.advise(stage.settings, metrics, recipe)]


# Is it alive?


def _advise_on_life(metrics: MetricRows, row: JobRow, now: float) -> list[Advice]:
    rows = metrics.rows
    if row.state == "failed":
        return [Advice("alive", _sentence(row.message) or "The job failed.", next_action(row.code), True)]
    broken = [key for key in ("loss", "grad_norm", "reward") if _is_broken(metrics.last(key))]
    if broken:
        action = "Stop it. Halve optimizer.learning_rate, keep max_grad_norm at 1 or below, and start again."
        return [Advice("alive", f"The {broken[0].replace('_', ' ')} is no longer a number.", action, True)]
    if not row.active:
        return []
    silent = _age(row.heartbeat, now)
    if silent is not None and silent > STALE_S:
        action = "Look at the end of the log. If the machine sleeps or is out of memory, stop the job and resume it."
        return [Advice("alive", f"No sign of life for {_span(silent)}.", action, True)]
    if row.state == "stopping":
        return [Advice("alive", "Stopping: the step in progress ends and a checkpoint is written first.")]
    if not rows:
        return [Advice("alive", "Loading: no figures yet.", "The first ones come when the model is in memory.")]
    quiet = now - number(rows[-1].get("at"))
    usual = _usual_gap(rows)
    if usual is not None and quiet > max(START_S, 10 * usual):
        action = "Its process lives. Slow workers show in time/rollouts_s; a check at a checkpoint also takes time."
        return [Advice("alive", f"No new figure for {_span(quiet)}; usual is one every {_span(usual)}.", action)]
    return [Advice("alive", "It is alive: heartbeat and figures are fresh.")]


def next_action(code: str) -> str:
    """What to do about a failure, by its machine-readable word. The message itself names the edits."""
    actions = {
        "out_of_memory": "Make one of the edits named above, or press “Edit as new recipe” and start again.",
        "disk_full": "Free that much, or move the data folder, then press Resume.",
        "killed": "Press Resume. If it happens again and memory ran out, lower the batch.",
        "rank_killed": "Press Resume. If it happens again, the machine ran out of memory: lower the batch.",
        "gpus": "Press “Edit as new recipe”, set processes to the GPUs that there are, and start again.",
        "model_missing": "Install or choose another model.base, then start again.",
        "recipe": "Mend the recipe and start again.",
        "vllm": "Choose another rollouts.backend, or install it with `make vllm`.",
        "pool": "Add the workers on the Pool page, or choose other tasks.",
    }
    return actions.get(code, "The log below has the details. Resume tries again from the last checkpoint.")


# Only then: tuning


def _advise_on_checks(metrics: MetricRows) -> list[Advice]:
    checks = metrics.all("check/correct")
    if len(checks) < 3 or checks[-1] >= max(checks) - 0.1:
        return []
    action = "Use the checkpoint marked “best” rather than the last one."
    return [Advice("tuning", f"The check fell from {max(checks):.0%} to {checks[-1]:.0%}.", action)]


# Reading rows


def _is_broken(value: JsonValue) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _usual_gap(rows: Sequence[Row]) -> float | None:
    times = [number(row.get("at")) for row in rows[-20:]]
    gaps = sorted(b - a for a, b in itertools.pairwise(times))
    return gaps[len(gaps) // 2] if len(gaps) >= 3 else None


def _age(value: datetime | None, now: float) -> float | None:
    if value is None:
        return None
    return now - (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _sentence(text: str) -> str:
    if not text:
        return ""
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
