"""Forced recursive calls: which groups get one, what the model is shown, and what the two answers earn."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.trainer.support.rollouts import (
    Written,
    a_pool,
    a_task,
    an_engine,
    answer_of,
    call_of,
)
from trainer.methods.grpo.advantages import compute_advantages
from trainer.methods.grpo.curriculum import Curriculum
from trainer.methods.grpo.recursion import is_recursive
from trainer.methods.grpo.rewards import load_rewards
from trainer.methods.grpo.rollout_metrics import compute_rollout_metrics
from trainer.methods.grpo.rollouts import RolloutEngine
from trainer.methods.grpo.section import CurriculumSettings, RecursionSettings, RewardSettings
from trainer.tasks.task_pools import keep_task

pytestmark = pytest.mark.medium
CONDUCTOR = [RewardSettings(term="accuracy", weight=0.5), RewardSettings(term="readable", weight=0.5)]


def an_engine_for(chat, before: int = 0, share: float = 0.5, **changes) -> RolloutEngine:
    engine = an_engine(chat, a_pool(), max_rounds=1, **changes)
    engine.begin_step(before, load_rewards(CONDUCTOR), keep_task, RecursionSettings(share=share))
    return engine


def run_step(chat, turn, groups: int, before: int = 0, share: float = 0.5, mixed_only: bool = False):
    async def run():
        engine = an_engine_for(chat, before, share)
        curriculum = Curriculum([a_task()], CurriculumSettings(enabled=False), 0)
        generator = Written(chat, turn)
        return *await engine.run_step(curriculum, generator, groups, 4, 2, mixed_only), generator

    return asyncio.run(run())


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_of_any_batch_the_share_is_recursive(share):
    for before in range(0, 40, 4):
        assert sum(is_recursive(before + k, share) for k in range(4)) == 4 * share
    assert sum(is_recursive(k, share) for k in range(20)) == 20 * share, "batches of one group take turns"


def test_half_of_a_batch_is_asked_once_more(chat):
    kept, _, generator = run_step(chat, lambda *_: answer_of("right"), groups=4)
    assert [group.recursive for group in kept].count(True) == 2
    for group in kept:
        rounds = {len(rollout.sample.episode.rounds) for rollout in group.rollouts}
        assert rounds == ({2} if group.recursive else {1})
        assert all((rollout.first is not None) == group.recursive for rollout in group.rollouts)
    assert sorted(number for _, number in generator.asked) == [1] * 16 + [2] * 8


def test_a_redraw_keeps_the_halves(chat):
    """All groups are equal: each is drawn anew, by one of its kind, and the batch is filled up with as many of each."""
    kept, skipped, _ = run_step(chat, lambda *_: answer_of("right"), groups=4, mixed_only=True)
    assert [group.recursive for group in kept].count(True) == 2 and len(skipped) == 2


CASES = {  # (first turn, second turn): reward of the first answer, of the last, of the episode
    "right, kept": ((answer_of("right"), answer_of("right")), (1.0, 1.0, 1.0)),
    "wrong, improved": ((answer_of("wrong"), answer_of("right")), (0.5, 1.0, (0.25 * 0.5 + 1) / 1.25)),
    "right, spoilt": ((answer_of("right"), answer_of("wrong")), (1.0, 0.5, (0.25 * 1 + 0.5) / 1.25)),
    "wrong, wrong": ((answer_of("wrong"), answer_of("worse")), (0.5, 0.5, 0.5)),
    "unreadable, right": (("blah", answer_of("right")), (0.0, 1.0, 1 / 1.25)),
    "right, unreadable": ((answer_of("right"), "blah"), (1.0, 0.0, 0.25 / 1.25)),
    "unreadable twice": (("blah", "blah"), (0.0, 0.0, 0.0)),
}


def test_the_first_answer_counts_a_quarter(chat):
    """What each case earns, with the rewards of Conductor (0, 0.5, 1), and its advantage among the seven."""
    cases = list(CASES.values())

    async def run():
        engine = an_engine_for(chat, share=1.0)
        names = iter(range(len(cases)))

        async def play(number: int):
            generator = Written(chat, lambda _, round_number: cases[number][0][round_number - 1])
            return (await engine.run_group(a_task(), generator, 1, recursive=True)).rollouts[0]

        return [await play(number) for number in names]

    rollouts = asyncio.run(run())
    # Scored alone: neither term looks at the group.
    firsts = [rollout.first_reward for rollout in rollouts]
    assert firsts == [rewards[0] for _, rewards in cases]
    assert [sum(rollout.terms.values()) / 2 for rollout in rollouts] == [rewards[1] for _, rewards in cases]
    earned = [rollout.reward for rollout in rollouts]
    assert earned == pytest.approx([rewards[2] for _, rewards in cases])
    (advantages,) = compute_advantages([earned], "group", 0.5)
    order = sorted(CASES, key=dict(zip(CASES, advantages, strict=True)).__getitem__, reverse=True)
    assert order[:3] == ["right, kept", "wrong, improved", "unreadable, right"] and order[-1] == "unreadable twice"


def test_the_answer_of_a_plan_is_graded_with_the_values_it_quotes(chat):
    async def run():
        engine = an_engine_for(chat)
        turns = [call_of("right", answer="$1"), call_of("wrong", answer="$2")]
        generator = Written(chat, lambda _, number: turns[number - 1])
        return await engine.run_group(a_task(), generator, 2, recursive=True), generator

    group, _ = asyncio.run(run())
    for rollout in group.rollouts:
        assert rollout.first.correct and not rollout.sample.correct
        assert (rollout.first.totals.steps, rollout.sample.totals.steps) == (1, 2)
        assert rollout.first.episode.answer == "right" and rollout.sample.episode.answer == "wrong"
        text = chat.tokenizer.decode(rollout.transcript.completion)
        assert "Your answer so far: $1." in text and "last turn" in text
        marked = zip(rollout.transcript.completion, rollout.transcript.mask, strict=True)
        written = [token for token, own in marked if own]
        assert "so far" not in chat.tokenizer.decode(written), "what it is shown is no target"
    row = group.row(1, kept=True)
    assert row["recursive"] and row["episodes"][0]["first_reward"] == 1.0 and json.dumps(row)
    figures = compute_rollout_metrics([group], [], [])
    assert (figures["recursion/groups"], figures["recursion/first"], figures["recursion/last"]) == (1, 1, 0)


def test_without_recursion_nothing_of_it_is_measured(chat):
    kept, _, _ = run_step(chat, lambda *_: answer_of("right"), groups=2, share=0.0)
    assert not any(key.startswith("recursion/") for key in compute_rollout_metrics(kept, [], []))
    assert all("first_reward" not in episode for group in kept for episode in group.row(1, kept=True)["episodes"])
