"""Advice on a job, in the order of importance: is it alive, does it learn at all, and only then tuning.

A pure function of metric rows, groups of episodes and the job's row. Each piece of advice says what is seen
and what to do about it, by the recipe's key where there is one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pool_registry.actions import JsonValue
from studio.pages.train.curves import Row, number
from trainer.jobs.queue import STALE_S, JobRow
from trainer.recipe import Recipe
from trainer.results.statistics import mean

Level = Literal["alive", "degenerate", "tuning"]
WINDOW = 10  # points that a statement about "now" is made from
START_S = 120.0  # loading a model takes its time before the first figure


@dataclass(frozen=True, slots=True)
class Advice:
    """`sentence` says what is seen, `action` what to do; `alarming` is what needs a person now."""

    level: Level
    sentence: str
    action: str = ""
    alarming: bool = False


def advise(rows: Sequence[Row], groups: Sequence[Row], row: JobRow, recipe: Recipe | None, now: float) -> list[Advice]:
    """Give advice on a job, the most pressing first; tuning only when nothing else is wrong."""
    alive = _advise_on_life(rows, row, now)
    if any(advice.alarming for advice in alive) or not rows:
        return alive
    degenerate = _advise_on_learning(rows, groups, recipe)
    return [*alive, *(degenerate or _advise_on_tuning(rows, row, recipe))]


# Is it alive?


def _advise_on_life(rows: Sequence[Row], row: JobRow, now: float) -> list[Advice]:
    if row.state == "failed":
        return [Advice("alive", _sentence(row.message) or "The job failed.", next_action(row.code), True)]
    broken = [key for key in ("loss", "grad_norm", "reward") if _is_broken(_last(rows, key))]
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
        "vllm": "Choose another grpo.rollouts.backend, or install it with `make vllm`.",
        "pool": "Add the workers on the Pool page, or choose other tasks.",
    }
    return actions.get(code, "The log below has the details. Resume tries again from the last checkpoint.")


# Does it learn at all?


def _advise_on_learning(rows: Sequence[Row], groups: Sequence[Row], recipe: Recipe | None) -> list[Advice]:
    advices: list[Advice] = []
    rewards, turns = _recent(rows, "reward"), _recent(rows, "rollout/valid_turns")
    flat = len(rewards) >= 3 and max(rewards) < 0.02
    if flat and turns and mean(turns) < 0.05:
        advices.append(
            Advice(
                "degenerate",
                f"The reward stays at 0 and {mean(turns):.0%} of the turns are valid: the model does not write plans.",
                "Run SFT first: add an sft section, or set model.start to a checkpoint that was fine-tuned.",
                True,
            )
        )
    elif flat:
        advices.append(
            Advice(
                "degenerate",
                "The model writes turns, but no answer is right: the reward stays at 0.",
                "Choose easier tasks (tasks.levels), more SFT steps, or "
                "a format term with grpo.rollouts.mixed_only: false.",
                True,
            )
        )
    signs = (_equal_rewards(groups), _length_limit(rows, recipe), _one_worker(rows), _entropy(rows))
    advices += [advice for advice in signs if advice]
    kl = _recent(rows, "kl")
    if kl and mean(kl[-3:]) > 1.0:
        action = "Raise grpo.loss.beta or lower grpo.optimizer.learning_rate; go back to an earlier checkpoint."
        advices.append(Advice("degenerate", f"It has drifted far from where it began: KL {mean(kl[-3:]):.2f}.", action))
    return advices


def _equal_rewards(groups: Sequence[Row]) -> Advice | None:
    if len(groups) < 5:
        return None
    share = sum(bool(group.get("equal")) for group in groups) / len(groups)
    if share <= 0.8:
        return None
    right = [bool(episode.get("correct")) for group in groups for episode in _episodes(group)]
    solved = sum(right) / len(right) if right else 0.0
    action = (
        "The tasks are too easy: add higher tasks.levels."
        if solved > 0.5
        else "The tasks are too hard or sampling is too narrow: lower tasks.levels, or raise the "
        "group or temperature in grpo.rollouts."
    )
    sentence = f"{share:.0%} of the newest groups have one outcome, all right or all wrong: they teach little."
    return Advice("degenerate", sentence, action)


def _length_limit(rows: Sequence[Row], recipe: Recipe | None) -> Advice | None:
    clipped = _recent(rows, "completions/clipped_ratio")
    if not clipped or mean(clipped) <= 0.3:
        return None
    limit = f" (now {recipe.model.turn_tokens})" if recipe else ""
    return Advice(
        "degenerate",
        f"{mean(clipped):.0%} of the episodes are cut off at their length limit.",
        f"Raise model.turn_tokens{limit} and grpo.rollouts.max_length, or fine-tune first: "
        "an untrained model never stops.",
    )


def _one_worker(rows: Sequence[Row]) -> Advice | None:
    measured = [row for row in rows if any(key.startswith("worker/") for key in row)][-WINDOW:]
    shares = {key: mean([number(row.get(key)) for row in measured]) for key in _keys(measured, "worker/")}
    if len(shares) < 2:
        return None
    key = max(shares, key=lambda name: shares[name])
    if shares[key] <= 0.9:
        return None
    return Advice(
        "degenerate",
        f"{shares[key]:.0%} of the steps go to {key.removeprefix('worker/')}.",
        "Add a diversity term to grpo.rewards, or tasks that need other workers.",
    )


def _entropy(rows: Sequence[Row]) -> Advice | None:
    values = _all([row for row in rows if row.get("stage") == "grpo"], "entropy")  # imitating may lower it
    if len(values) < 2 * WINDOW:
        return None
    before, now = mean(values[:WINDOW]), mean(values[-WINDOW:])
    if before < 0.05 or now > 0.15 * before:
        return None
    return Advice(
        "degenerate",
        f"Entropy fell from {before:.2f} to {now:.2f}: it hardly tries anything new.",
        "Raise grpo.rollouts.temperature or grpo.loss.epsilon_high, or lower the learning rate.",
    )


# Only then: tuning


def _advise_on_tuning(rows: Sequence[Row], row: JobRow, recipe: Recipe | None) -> list[Advice]:
    advices: list[Advice] = []
    rewards = _all(rows, "reward")
    if len(rewards) >= 4 * WINDOW and mean(rewards[-WINDOW:]) <= mean(rewards[-3 * WINDOW : -2 * WINDOW]) + 0.005:
        action = "Raise grpo.optimizer.learning_rate a little, or the group, or move tasks.levels up."
        advices.append(Advice("tuning", "The reward has not risen for a while.", action))
    rollouts, steps = _recent(rows, "time/rollouts_s"), _recent(rows, "step_time")
    generation = _recent(rows, "time/generation_s")
    if rollouts and generation and mean(rollouts) > 2 * mean(generation) and mean(rollouts) > 2:
        action = "Raise grpo.rollouts.concurrency, or the workers' own limits (Pool page)."
        advices.append(Advice("tuning", "Rollouts wait for workers longer than for the model.", action))
    elif rollouts and steps and recipe and recipe.grpo and mean(rollouts) > 0.8 * mean(steps) > 2:
        faster = recipe.grpo.rollouts.backend == "transformers" and row.active
        if faster:
            action = "On a GPU, grpo.rollouts.backend: vllm-colocate is several times faster."
            advices.append(Advice("tuning", "Most of a step is spent on writing turns.", action))
    skipped, equal = _recent(rows, "groups/skipped"), _recent(rows, "groups/equal")
    if skipped and recipe and recipe.grpo and mean(skipped) > 0.5 * recipe.grpo.rollouts.prompts and not mean(equal):
        action = "Fewer are skipped with a larger grpo.rollouts.group or other tasks.levels."
        advices.append(Advice("tuning", f"{mean(skipped):.1f} groups a step are drawn again.", action))
    checks = _all(rows, "check/correct")
    if len(checks) >= 3 and checks[-1] < max(checks) - 0.1:
        action = "Use the checkpoint marked “best” rather than the last one."
        advices.append(Advice("tuning", f"The check fell from {max(checks):.0%} to {checks[-1]:.0%}.", action))
    return advices


# Reading rows


def _all(rows: Sequence[Row], key: str) -> list[float]:
    values = [row[key] for row in rows if key in row]
    return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]


def _recent(rows: Sequence[Row], key: str) -> list[float]:
    return _all(rows, key)[-WINDOW:]


def _last(rows: Sequence[Row], key: str) -> JsonValue:
    return next((row[key] for row in reversed(rows) if key in row), None)


def _keys(rows: Sequence[Row], prefix: str) -> list[str]:
    return sorted({key for row in rows for key in row if key.startswith(prefix)})


def _episodes(group: Row) -> list[Mapping[str, Any]]:
    episodes = group.get("episodes")
    return [episode for episode in episodes if isinstance(episode, dict)] if isinstance(episodes, list) else []


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
