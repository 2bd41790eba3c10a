"""What GRPO pays five kinds of episode, and the advantages that it trains them with, now and before tie-breakers were
gated.

    python bench/rewards.py [--out FILE]

The episodes really run: one calculator, one task (6 * 7 + 8), reward terms and weights of the preset single-gpu-80gb.
The right plan multiplies, then adds; another one has a step more that nobody needs; an honest slip is a valid plan with
one wrong number; "instant" answers 0 without a call. Each group of four is scaled by its own deviation.

`before` is recorded, not computed: the same cases under the rules until November 2026, which paid efficiency and
diversity to wrong answers too and divided every group by its own deviation, however small.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from orchestrator.engine.episode_loop import EpisodeSpec, NoSink, run_episode
from orchestrator.engine.events import TaskRef
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Limits, Pool
from pool_registry.worker import WorkerSpec
from trainer.evaluation.trials import grade_episode
from trainer.learner.token_transcript import Transcript
from trainer.methods.grpo.rewards import (
    Sample,
    compute_outcome_weight,
    load_rewards,
    make_sample,
    score_group,
    sum_weighted,
)
from trainer.methods.grpo.rollouts import Rollout, RolloutGroup, set_advantages
from trainer.recipe import load_recipe
from trainer.tasks.task import Task
from trainer.tasks.verifier import ExactText

OUT = Path(__file__).parent / "results" / "rewards.json"
PRESET = "single-gpu-80gb"
POOL = Pool(name="sums", workers=(WorkerSpec(name="calculator", kind="calculator", description="Computes."),))


def compute(number: int, expression: str, *access: int) -> Step:
    return Step(number, "calculator", {"expression": expression}, access=access)


RIGHT = Turn((compute(1, "6 * 7"), compute(2, "$1 + 8", 1)), "$2")
CASES = {
    "right plan": RIGHT,
    "right plan, one step more": Turn((*RIGHT.steps, compute(3, "$2 + 0", 2)), "$3"),
    "honest slip": Turn((compute(1, "6 * 7"), compute(2, "$1 + 9", 1)), "$2"),
    'instant wrong "0"': Turn((), "0"),
}
TASK = Task(TaskRef("bench", 1, 0, "train"), "What is 6 * 7 + 8?", ExactText("50"), oracle_turn=RIGHT)
GROUPS = {
    "one of each": list(CASES),
    "all wrong": ["honest slip"] * 3 + ['instant wrong "0"'],
    "all right": ["right plan"] * 3 + ["right plan, one step more"],
}
BEFORE = {  # (group, case): (reward, advantage); None where it was not recorded
    ("one of each", "right plan"): (1.30, 0.87),
    ("one of each", "right plan, one step more"): (1.30, 0.86),
    ("one of each", "honest slip"): (0.30, -0.89),
    ("one of each", 'instant wrong "0"'): (0.33, -0.85),
    ("all wrong", 'instant wrong "0"'): (None, 1.49),
    ("all right", "right plan, one step more"): (None, -1.42),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    rows = asyncio.run(measure_cases())
    options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(write_table(rows))


async def measure_cases() -> list[dict[str, Any]]:
    """A row for each kind of episode in each group."""
    rows = []
    async with live_pool(POOL) as pool:
        for group, names in GROUPS.items():
            samples = [await play(CASES[name], pool) for name in names]
            rewards, advantages = train(samples)
            for name in dict.fromkeys(names):
                place = names.index(name)
                reward, advantage = BEFORE.get((group, name), (None, None))
                rows.append(
                    {
                        "group": group,
                        "case": name,
                        "reward": round(rewards[place], 3),
                        "advantage": round(advantages[place], 3),
                        "before": {"reward": reward, "advantage": advantage},
                    }
                )
    return rows


async def play(plan: Turn, pool: Any) -> Sample:
    """The graded episode of a plan."""
    limits = Limits(max_rounds=1)
    episode = await run_episode(EpisodeSpec(TASK.query, task=TASK.ref), OraclePolicy(plan), pool, limits=limits)
    await grade_episode(episode, TASK, NoSink(), pool)
    return make_sample(TASK, episode, limits)


def train(samples: Sequence[Sample]) -> tuple[list[float], list[float]]:
    """The rewards and the advantages of one group."""
    grpo = load_recipe(PRESET).grpo
    assert grpo is not None
    terms = load_rewards(grpo.rewards)
    rewards = [sum_weighted(values, terms) for values in score_group(samples, terms)]
    rollouts = [Rollout(one, Transcript([]), None, reward=reward) for one, reward in zip(samples, rewards, strict=True)]
    set_advantages([RolloutGroup(TASK, rollouts)], "group", compute_outcome_weight(terms), mixed_only=True)
    return rewards, [rollout.advantage for rollout in rollouts]


def write_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a table in Markdown."""
    lines = [
        "| group of four | episode | reward, before | now | advantage, before | now |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        reward, advantage = (row["before"][key] for key in ("reward", "advantage"))
        lines.append(
            f"| {row['group']} | {row['case']} | {'-' if reward is None else f'{reward:.2f}'} | {row['reward']:.2f} | "
            f"{'-' if advantage is None else f'{advantage:+.2f}'} | {row['advantage']:+.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
