"""Where a job runs: how it is written, and that recipes for this machine stay as they were."""

from __future__ import annotations

import pytest

from trainer.errors import InvalidRecipe
from trainer.job_place import HERE, parse_place
from trainer.recipe import dump_recipe, load_recipe, parse_recipe


@pytest.mark.parametrize(
    "text", ["here", "hf:l4x1", "hf:a10g-large", "ray://10.0.0.5:10001", "ray://head.lan:1", "ray://[fd00::5]:10001"]
)
def test_a_place_is_written_as_it_was_read(text):
    assert str(parse_place(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "there",
        "hf:",
        "hf:L4",
        "hf:l4 x1",
        "here:l4x1",
        "ray://host",
        "ray://host:0",
        "ray://host:70000",
        "ray://host:10001/x",
        "ray:host:10001",
    ],
)
def test_a_text_that_is_no_place_is_refused_with_how_one_is_written(text):
    with pytest.raises(InvalidRecipe, match="write here, or hf: and a flavor"):
        load_recipe("cpu-first-steps").with_place(text)


def test_a_recipe_for_this_machine_is_written_without_a_place_and_one_for_another_keeps_it():
    recipe = load_recipe("cpu-first-steps")
    assert recipe.place == HERE and "where" not in dump_recipe(recipe)
    rented = recipe.with_place("hf:l4x1")
    assert parse_recipe(dump_recipe(rented)) == rented and rented.place.is_rented
