"""Advice comes in order: does it live, does it learn at all, and only then tuning."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.pages.train.advice import advise, next_action
from trainer.jobs.queue import JobRow
from trainer.recipe import Recipe

NOW = 1_800_000_000.0
RECIPE = Recipe.model_validate({"sft": {}, "grpo": {}})


def job(state: str = "running", silent_s: float = 1.0, **more) -> JobRow:
    at = datetime.fromtimestamp(NOW - silent_s, UTC)
    return JobRow(id="j", kind="sft+grpo", name="j", state=state, heartbeat=at, created_at=at, **more)


def steps(count: int = 30, **figures) -> list[dict]:
    """Rows of as many steps, the last of them now; a figure may be a function of the step's share."""
    return [
        {
            "stage": "grpo",
            "step": k,
            "at": NOW - (count - k),
            **{
                key.replace("__", "/"): (value(k / count) if callable(value) else value)
                for key, value in figures.items()
            },
        }
        for k in range(1, count + 1)
    ]


def groups(count: int, equal: int, correct: bool = False) -> list[dict]:
    return [{"equal": k < equal, "episodes": [{"correct": correct}] * 4} for k in range(count)]


HEALTHY = {"reward": lambda t: 0.3 + 0.5 * t, "loss": 0.1, "rollout__valid_turns": 0.9, "entropy": 0.5}


def told(rows, row=None, given_groups=(), recipe=RECIPE):
    return advise(rows, list(given_groups), row or job(), recipe, NOW)


def test_a_healthy_job_is_alive_and_nothing_else():
    found = told(steps(**HEALTHY), given_groups=groups(10, 2))
    assert [each.level for each in found] == ["alive"] and not found[0].alarming


def test_silence_and_broken_numbers_come_first_and_alone():
    rows = steps(reward=0.0, rollout__valid_turns=0.0)
    silent = told(rows, job(silent_s=400))
    assert [each.level for each in silent] == ["alive"] and silent[0].alarming and "7 min" in silent[0].sentence
    broken = told(steps(loss=math.nan, reward=0.0))
    assert len(broken) == 1 and "loss" in broken[0].sentence and "learning_rate" in broken[0].action


@pytest.mark.parametrize(
    ("rows", "given_groups", "sentence", "action"),
    [
        (steps(reward=0.0, rollout__valid_turns=0.0), (), "does not write plans", "Run SFT first"),
        (steps(reward=0.0, rollout__valid_turns=0.9), (), "no answer is right", "tasks.levels"),
        (steps(**HEALTHY), groups(10, 9), "one outcome", "too hard"),
        (steps(**HEALTHY), groups(10, 9, correct=True), "one outcome", "too easy"),
        (steps(**HEALTHY, completions__clipped_ratio=0.6), (), "cut off", "model.turn_tokens (now 512)"),
        (steps(**HEALTHY, worker__sql=0.95, worker__python=0.05), (), "95% of the steps go to sql", "diversity"),
        (steps(**{**HEALTHY, "entropy": lambda t: max(0.01, 0.9 - 1.4 * t)}), (), "Entropy fell", "temperature"),
        (steps(**HEALTHY, kl=2.5), (), "drifted", "beta"),
    ],
)
def test_what_is_degenerate_is_named_with_the_key_to_change(rows, given_groups, sentence, action):
    found = told(rows, given_groups=given_groups)
    assert [each.level for each in found] == ["alive", "degenerate"]
    assert sentence in found[1].sentence and action in found[1].action


def test_a_worker_that_is_used_once_does_not_look_like_the_only_one():
    rows = steps(**HEALTHY, worker__sql=0.5, worker__units=0.5)
    rows[-1] |= {"worker/python": 1.0}
    assert len(told(rows)) == 1


def test_tuning_is_told_only_when_nothing_is_degenerate():
    flat = {**HEALTHY, "reward": 0.5}
    assert [each.level for each in told(steps(60, **flat))] == ["alive", "tuning"]
    assert [each.level for each in told(steps(60, **flat), given_groups=groups(10, 10))] == ["alive", "degenerate"]


def test_a_failed_job_says_why_and_what_next():
    row = job("failed", message="not enough memory. Change one of these: sft.batch: 8", code="out_of_memory")
    found = told([], row)
    assert found[0].alarming and "sft.batch: 8" in found[0].sentence and "edits" in found[0].action
    assert next_action("no such code")


def test_a_job_that_loads_stops_or_is_done_is_told_calmly():
    assert "Loading" in told([])[0].sentence
    assert "checkpoint" in told(steps(**HEALTHY), job("stopping"))[0].sentence
    assert told(steps(**HEALTHY), job("done")) == []
    assert told([], job("queued")) == []


FIGURE = st.floats() | st.integers(-5, 5) | st.none() | st.booleans() | st.text(max_size=3)
ROW = st.dictionaries(
    st.sampled_from(["reward", "loss", "kl", "entropy", "at", "step", "stage", "worker/sql", "rollout/valid_turns"]),
    FIGURE,
)
GROUP = st.dictionaries(
    st.sampled_from(["equal", "episodes"]), st.none() | st.booleans() | st.lists(st.none(), max_size=2)
)
STATE = st.sampled_from(["queued", "running", "stopping", "stopped", "failed", "done"])


@given(st.lists(ROW, max_size=50), st.lists(GROUP, max_size=8), STATE, st.floats(0, 1e6))
def test_advice_never_fails_whatever_the_files_hold(rows, given_groups, state, silent_s):
    found = advise(rows, given_groups, job(state, silent_s), None, NOW)
    json.dumps([asdict(advice) for advice in found], allow_nan=False)
