"""What DPO says before a start and while it runs."""

from __future__ import annotations

import pytest

from trainer.methods.advice import MetricRows
from trainer.methods.dpo.method import DPO
from trainer.methods.dpo.section import DpoSettings
from trainer.recipe import parse_recipe


def gaps(store, text="pool: shop\ndpo: {}"):
    recipe = parse_recipe(text)
    return list(DPO.find_gaps(DPO.require(recipe), recipe, None, store))


def test_without_pairs_a_start_is_refused_with_what_makes_some(store, record):
    record("q", "1 + 1", correct=True)
    (gap,) = gaps(store)
    assert gap.blocks and gap.key == "dpo.pairs.source" and "--split train --samples 8" in gap.sentence


def test_few_pairs_are_named_and_do_not_prevent_a_start(store, record):
    record("q", "1 + 1", correct=True)
    record("q", "1 + 2", correct=False)
    (gap,) = gaps(store)
    assert not gap.blocks and "at most 1 pairs" in gap.sentence


def test_a_recipe_without_it_is_written_as_before():
    assert "dpo" not in parse_recipe("sft: {}").model_dump(mode="json")
    assert parse_recipe("dpo: {beta: 0.3}").model_dump(mode="json")["dpo"]["beta"] == 0.3


def test_it_runs_after_imitation_and_before_reinforcement():
    stages = parse_recipe("grpo: {}\ndpo: {steps: 7}\nsft: {steps: 5}\nevaluate: {}").training_stages
    assert [(stage.name, stage.before) for stage in stages] == [("sft", 0), ("dpo", 5), ("grpo", 12)]


def test_several_processes_are_refused():
    with pytest.raises(Exception, match="DPO trains in one process: leave processes out"):
        parse_recipe("processes: 2\ndpo: {}")


def row(step, **figures):
    return {"stage": "dpo", "step": step, **{key.replace("_", "/", 1): value for key, value in figures.items()}}


def test_pairs_that_it_cannot_tell_apart_are_advised_on():
    rows = [row(k, rewards_accuracies=0.5) for k in range(40)]
    (advice,) = DPO.advise(DpoSettings(), MetricRows(rows), parse_recipe("dpo: {}"))
    assert advice.level == "degenerate" and "50%" in advice.sentence and "dpo.beta" in advice.action


def test_both_sides_unlearnt_is_advised_on():
    rows = [row(k, rewards_chosen=-1.0, rewards_rejected=-3.0, rewards_accuracies=1.0) for k in range(12)]
    (advice,) = DPO.advise(DpoSettings(), MetricRows(rows), parse_recipe("dpo: {}"))
    assert advice.level == "tuning" and "Raise dpo.beta" in advice.action
