"""What the figures of reinforcement show: first whether it learns at all, only then what to tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.methods.advice import WINDOW, Advice, MetricRows, Row
from trainer.methods.grpo.section import GrpoSettings
from trainer.results.statistics import mean


def advise_on_learning(metrics: MetricRows, turn_tokens: int) -> list[Advice]:
    """Say what shows that it does not learn."""
    advices: list[Advice] = []
    rewards, turns = metrics.recent("reward"), metrics.recent("rollout/valid_turns")
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
    signs = (
        _equal_rewards(metrics.groups),
        _length_limit(metrics, turn_tokens),
        _one_worker(metrics),
        _entropy(metrics),
    )
    advices += [advice for advice in signs if advice]
    kl = metrics.recent("kl")
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


def _length_limit(metrics: MetricRows, turn_tokens: int) -> Advice | None:
    clipped = metrics.recent("completions/clipped_ratio")
    if not clipped or mean(clipped) <= 0.3:
        return None
    return Advice(
        "degenerate",
        f"{mean(clipped):.0%} of the episodes are cut off at their length limit.",
        f"Raise model.turn_tokens (now {turn_tokens}) and grpo.rollouts.max_length, or fine-tune first: "
        "an untrained model never stops.",
    )


def _one_worker(metrics: MetricRows) -> Advice | None:
    shares = metrics.recent_means("worker/")
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


def _entropy(metrics: MetricRows) -> Advice | None:
    values = metrics.of_stage("grpo").all("entropy")  # imitating may lower it
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


def advise_on_tuning(settings: GrpoSettings, metrics: MetricRows) -> list[Advice]:
    """Say what could make it learn more, or faster."""
    advices: list[Advice] = []
    rewards = metrics.all("reward")
    if len(rewards) >= 4 * WINDOW and mean(rewards[-WINDOW:]) <= mean(rewards[-3 * WINDOW : -2 * WINDOW]) + 0.005:
        action = "Raise grpo.optimizer.learning_rate a little, or the group, or move tasks.levels up."
        advices.append(Advice("tuning", "The reward has not risen for a while.", action))
    rollouts, steps = metrics.recent("time/rollouts_s"), metrics.recent("step_time")
    generation = metrics.recent("time/generation_s")
    if rollouts and generation and mean(rollouts) > 2 * mean(generation) and mean(rollouts) > 2:
        action = "Raise grpo.rollouts.concurrency, or the workers' own limits (Pool page)."
        advices.append(Advice("tuning", "Rollouts wait for workers longer than for the model.", action))
    elif rollouts and steps and mean(rollouts) > 0.8 * mean(steps) > 2:
        faster = settings.rollouts.backend == "transformers" and metrics.active
        if faster:
            action = "On a GPU, grpo.rollouts.backend: vllm-colocate is several times faster."
            advices.append(Advice("tuning", "Most of a step is spent on writing turns.", action))
    skipped, equal = metrics.recent("groups/skipped"), metrics.recent("groups/equal")
    if skipped and mean(skipped) > 0.5 * settings.rollouts.prompts and not mean(equal):
        action = "Fewer are skipped with a larger grpo.rollouts.group or other tasks.levels."
        advices.append(Advice("tuning", f"{mean(skipped):.1f} groups a step are drawn again.", action))
    return advices


def _episodes(group: Row) -> list[Mapping[str, Any]]:
    episodes = group.get("episodes")
    return [episode for episode in episodes if isinstance(episode, dict)] if isinstance(episodes, list) else []
