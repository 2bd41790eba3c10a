"""What we rely on in TRL 1.16."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.trainer.support.rollouts import Written, a_pool, a_task, an_engine, answer_of, call_of
from trainer.methods.grpo.advantages import compute_advantages
from trainer.methods.grpo.rewards import load_rewards
from trainer.methods.grpo.rollouts import (
    set_advantages,
)
from trainer.methods.grpo.section import RewardSettings
from trainer.recipe_sections import ModelSettings, OptimizerSettings

pytestmark = pytest.mark.medium


def take_trl_step(tiny_base, rollout, rewards: Sequence[Any], scale: str = "group", steps: int = 1, **changes: Any):
    """A GRPOTrainer with 2 prompts x 4 generations after `steps` steps. `rewards` are numbers or reward functions."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback
    from trl import GRPOConfig, GRPOTrainer

    from trainer.learner.load_and_save import build_trainer_arguments, configure_libraries

    configure_libraries(1)

    class Watched(GRPOTrainer):
        batches: list[dict[str, Any]] = []

        def _generate_and_score_completions(self, inputs):
            self.batches.append(super()._generate_and_score_completions(inputs))
            return self.batches[-1]

    optimizer = OptimizerSettings(schedule="constant", seed=3)
    shared = build_trainer_arguments(ModelSettings(), optimizer, steps, tiny_base.parent / "w")
    arguments = {
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 8,
        "scale_rewards": scale,
        "beta": 0.0,
        **changes,
    }
    Watched.batches = []
    watched = Watched(
        model=AutoModelForCausalLM.from_pretrained(tiny_base, dtype=torch.float32),
        args=GRPOConfig(**shared, **arguments),
        reward_funcs=list(rewards) if callable(rewards[0]) else [lambda **_: list(rewards)],
        train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": str(n)}]} for n in range(2)]),
        processing_class=AutoTokenizer.from_pretrained(tiny_base, padding_side="left"),
        rollout_func=rollout,
    )
    watched.remove_callback(PrinterCallback)
    if steps:
        watched.train()
    return watched


def make_rows(mask: list[int] | None, tail: int = 0) -> Callable[..., dict[str, Any]]:
    """A rollout_func of 8 rows of 4 tokens; `tail` changes the last two of each."""

    def rollout(prompts, trainer):
        rows = [[20 + row, 40 + row, 60 + row + tail, 80 + row + tail] for row in range(len(prompts))]
        found = {"prompt_ids": [[5, 6, 7]] * len(rows), "completion_ids": rows, "logprobs": None}
        return found | ({"env_mask": [mask] * len(rows)} if mask is not None else {})

    return rollout


REWARDS = [1.0, 0.0, 0.0, 1.0, 0.5, 0.25, 0.0, 1.0]


def test_trl_asks_for_every_prompt_as_often_as_a_group_is_large_and_keeps_groups_together(tiny_base):
    asked: list[str] = []

    def rollout(prompts, trainer):
        asked.extend(prompt[0]["content"] for prompt in prompts)
        return make_rows([1, 1, 0, 0])(prompts, trainer)

    take_trl_step(tiny_base, rollout, REWARDS)
    assert len(asked) == 8 and len(set(asked[:4])) == 1 == len(set(asked[4:])) and asked[0] != asked[4]


def test_trl_does_not_learn_what_the_mask_leaves_out(tiny_base):
    def gradient(mask, tail=0):
        trained = take_trl_step(tiny_base, make_rows(mask, tail), REWARDS)
        logged = next(row for row in trained.state.log_history if "grad_norm" in row)
        return logged["grad_norm"], trained.batches[0]

    masked, batch = gradient([1, 1, 0, 0])
    other_tail, _ = gradient([1, 1, 0, 0], tail=100)
    everything, _ = gradient([1, 1, 1, 1])
    assert batch["tool_mask"].tolist() == [[1, 1, 0, 0]] * 8
    assert masked > 0 and other_tail == pytest.approx(masked, rel=1e-4)
    assert everything != pytest.approx(masked, rel=1e-2)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_our_advantages_are_trls_where_outcomes_differ(tiny_base, scale):
    rewards = [1.0, 0.0, 0.0, 1.0, 1.2, 0.2, 0.2, 0.0]
    trained = take_trl_step(tiny_base, make_rows([1, 1, 1, 1]), rewards, scale)
    first, second = compute_advantages([rewards[:4], rewards[4:]], scale, 1.0)
    assert list(trained._logs["advantages"]) == pytest.approx([*first, *second], abs=1e-5)


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_the_advantages_that_are_shown_are_those_that_train(chat, tiny_base, scale):
    """One mixed group, and an all-wrong one that fills up the batch and trains nothing, whatever its format."""
    from trainer.methods.grpo.stage import make_columns, make_reward_arguments, make_reward_functions

    answers = {
        "mixed": iter([call_of("x", answer="right"), "no turn", answer_of("right"), answer_of("wrong")]),
        "wrong": iter([answer_of("wrong"), "no turn", "no turn", answer_of("wrong")]),
    }
    weights = {"accuracy": 1.0, "format": 0.2, "efficiency": 0.1}

    async def run():
        generator = Written(chat, lambda query, _: next(answers[query.strip()]))
        engine = an_engine(chat, a_pool(), max_rounds=1)
        engine.terms = load_rewards([RewardSettings(term=term, weight=weight) for term, weight in weights.items()])
        groups = [await engine.run_group(a_task(query), generator, 4) for query in answers]
        set_advantages(groups, scale, 1.0, mixed_only=True)
        return groups

    groups = asyncio.run(run())
    columns = {**make_columns(groups, list(weights)), "logprobs": None}
    functions = make_reward_functions(list(weights))
    trained = take_trl_step(tiny_base, lambda *_: columns, functions, **make_reward_arguments(len(weights)))
    shown = [episode["advantage"] for group in groups for episode in group.row(1, kept=True)["episodes"]]
    assert list(trained._logs["advantages"]) == pytest.approx(shown, abs=1e-4)
    assert shown[2] > shown[0] > 0 > shown[3] > shown[1] and shown[4:] == [0, 0, 0, 0]
    logged = next(row for row in trained.state.log_history if "reward" in row)
    rewards = [rollout.reward for group in groups for rollout in group.rollouts]
    assert logged["reward"] == pytest.approx(sum(rewards) / 8, abs=1e-4), "the curve still shows rewards"


def test_the_one_private_call_of_trl_keeps_its_contract(tiny_base):
    trained = take_trl_step(tiny_base, make_rows(None), REWARDS, steps=0)
    ids, logprobs = trained._generate_single_turn([[5, 6, 7], [8, 9]], None, {}, 1)
    assert len(ids) == 2 and all(1 <= len(row) <= 8 and all(isinstance(t, int) for t in row) for row in ids)
    assert logprobs is None or [len(row) for row in logprobs] == [len(row) for row in ids]
