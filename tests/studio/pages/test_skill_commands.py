"""The Skills drawer of the Pool page: skills are found, shown with their record, and added by a person."""

from __future__ import annotations

import pytest

from studio.pages.pool.commands import PoolCommands
from studio.runtime import Runtime
from tests.trainer.skills.test_find import record_two, store  # noqa: F401  a fixture

pytestmark = pytest.mark.medium


@pytest.fixture
def commands(store):  # noqa: F811
    runtime = Runtime(store)
    yield PoolCommands(runtime)
    runtime.close()


def send(commands, action, **fields):
    return commands.run(action, {"pool": "mine", **fields})


def test_a_skill_is_found_and_added_and_shown_with_its_record(commands, store):  # noqa: F811
    assert send(commands, "skills")["skills"] == {"skills": [], "candidates": []}
    assert "No plan skill more" in send(commands, "find_skills")["message"]
    record_two(store)
    (line,) = send(commands, "find_skills")["skills"]["candidates"]
    assert line["name"] == "calc_units" and line["parameters"] == ["number", "from_unit"] and not line["problem"]
    assert line["steps"] == ["calc", "units"] and "Right on 2 of 2" in line["record"] and len(line["questions"]) == 2
    reply = send(commands, "add_skill", name="calc_units")
    assert [row["name"] for row in reply["skills"]["skills"]] == ["calc_units"]
    assert "calc_units" in [card["name"] for card in reply["state"]["pool"]["workers"]]

    reply = send(commands, "remove_skill", name="calc_units")
    assert reply["skills"]["skills"] == [] and len(reply["state"]["pool"]["workers"]) == 2


def test_what_cannot_be_added_is_refused_with_a_sentence(commands):
    assert "no skill 'x' was found" in str(send(commands, "add_skill", name="x")["problems"])
    assert "has no skill 'calc'" in str(send(commands, "remove_skill", name="calc")["problems"])
    assert "list of names" in str(send(commands, "find_skills", allowed="units")["problems"])
    assert "no worker 'nobody'" in str(send(commands, "find_skills", allowed=["nobody"])["problems"])
