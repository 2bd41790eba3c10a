"""Rounds of expert iteration: how steps are shared out, and what is learnt from in each round."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from trainer.memory_fit.episode_cost import count_episodes
from trainer.methods.sft.section import SftSettings
from trainer.recipe import Recipe


@pytest.mark.parametrize(("steps", "rounds", "ends"), [(10, 1, (10,)), (10, 3, (3, 7, 10)), (2, 2, (1, 2))])
def test_the_steps_are_shared_out_among_the_rounds(steps, rounds, ends):
    settings = SftSettings.model_validate({"steps": steps, "demonstrations": {"rounds": rounds}})
    assert settings.list_round_ends() == ends


def test_every_round_needs_a_step():
    with pytest.raises(ValidationError, match="3 rounds need"):
        SftSettings.model_validate({"steps": 2, "demonstrations": {"rounds": 3}})


@pytest.mark.parametrize("more", [{"rounds": 2}, {"file": "rows.jsonl"}, {"variants": 1}])
def test_lessons_that_are_there_stand_alone(more):
    with pytest.raises(ValidationError, match="lessons stand alone"):
        SftSettings.model_validate({"demonstrations": {"lessons": "lessons", **more}})


def test_every_round_samples_again():
    demonstrations = {"rounds": 3, "samples": 4}
    recipe = Recipe.model_validate({"tasks": {"count": 10}, "sft": {"demonstrations": demonstrations}})
    assert count_episodes(recipe)["demonstrations"] == 120
