"""Several people edit one pool at once: nothing that was answered with "Saved" is lost, and who is late is told."""

from __future__ import annotations

import threading
import uuid

import pytest

from studio.pages.pool.commands import PoolCommands
from studio.prepare import prepare_store
from studio.runtime import Runtime
from tests.trust.trials import count_trials

AT_ONCE = 12


def calculator(name: str, description: str = "Counts.") -> dict:
    return {"name": name, "kind": "calculator", "description": description, "config": {}}


@pytest.fixture
def commands(runtime) -> PoolCommands:
    return PoolCommands(runtime)


@pytest.fixture
def pool(commands) -> str:
    name = f"p{uuid.uuid4().hex[:8]}"
    assert commands.run("create", {"name": name})["ok"]
    for worker in ("one", "two"):
        assert commands.run("save_worker", {"pool": name, "worker": calculator(worker)})["ok"]
    return name


@pytest.fixture
def seen(commands, pool) -> str:
    """What a tab that is open now sends along."""
    return commands.run("show", {"pool": pool})["state"]["pool"]["based_on"]


def read_descriptions(commands: PoolCommands, pool: str) -> dict[str, str]:
    workers = commands.run("show", {"pool": pool})["state"]["pool"]["workers"]
    return {worker["name"]: worker["description"] for worker in workers}


def save(commands: PoolCommands, pool: str, worker: dict, **fields) -> dict:
    return commands.run("save_worker", {"pool": pool, "worker": worker, "replacing": worker["name"], **fields})


def test_edits_at_once_through_two_studios_are_all_in_the_pool(commands, pool, runtime):
    other = Runtime(prepare_store(str(runtime.store.home.root)))
    studios = [commands, PoolCommands(other)]
    replies: dict[str, dict] = {}

    def add(number: int) -> None:
        fields = {"pool": pool, "worker": calculator(f"w{number}")}
        replies[f"w{number}"] = studios[number % 2].run("save_worker", fields)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert all(reply["ok"] for reply in replies.values())
    lost = set(replies) - set(read_descriptions(commands, pool))
    count_trials(AT_ONCE, len(lost))
    assert not lost


def test_a_stale_tab_that_edits_another_worker_keeps_both(commands, pool, seen):
    assert save(commands, pool, calculator("one", "theirs"), based_on=seen)["ok"]
    reply = save(commands, pool, calculator("two", "yours"), based_on=seen)
    assert reply["ok"] and "changed one" in reply["message"], "it says what of others is in it, too"
    assert read_descriptions(commands, pool) == {"one": "theirs", "two": "yours"}


def test_a_stale_tab_that_edits_the_same_worker_is_told_both(commands, pool, seen):
    assert save(commands, pool, calculator("one", "theirs"), based_on=seen)["ok"]
    reply = save(commands, pool, calculator("one", "yours"), based_on=seen)
    assert not reply["ok"] and "theirs" in reply["problems"][0][1] and "yours" in reply["problems"][0][1]
    assert read_descriptions(commands, pool)["one"] == "theirs"
    lines = reply["conflict"]["lines"]
    assert lines == [{"worker": "one", "field": "description", "theirs": "theirs", "yours": "yours"}]
    again = save(commands, pool, calculator("one", "yours"), based_on=reply["conflict"]["based_on"])
    assert again["ok"] and read_descriptions(commands, pool)["one"] == "yours"


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("remove_worker", {"name": "one"}),
        ("set_enabled", {"name": "one", "enabled": False}),
        ("set_description", {"name": "one", "description": "yours"}),
        ("save_limits", {"limits": {"max_steps": 9}}),
        ("save_mode", {"mode": {"name": "review"}}),
        ("set_memory", {"memory": "rule"}),
        ("restore", {"version": 1}),
    ],
)
def test_every_edit_from_a_stale_tab_is_refused_or_merged(commands, pool, seen, action, fields):
    assert save(commands, pool, calculator("one", "theirs"), based_on=seen)["ok"]
    limits = {"pool": pool, "limits": {"max_steps": 5}, "based_on": seen}
    assert commands.run("save_limits", limits)["ok"]
    reply = commands.run(action, {"pool": pool, "based_on": seen, **fields})
    clashes = action not in ("save_mode", "set_memory")
    assert reply["ok"] is not clashes and ("conflict" in reply) is clashes, reply["problems"]
    shown = commands.run("show", {"pool": pool})["state"]["pool"]
    assert read_descriptions(commands, pool)["one"] == "theirs" and shown["limits"]["max_steps"] == 5


def test_a_client_that_names_no_version_touches_its_own_worker_alone(commands, pool):
    assert save(commands, pool, calculator("one", "theirs"))["ok"]
    assert save(commands, pool, calculator("two", "yours"))["ok"]
    assert save(commands, pool, calculator("one", "later"))["ok"], "nothing says what it has seen"
    assert read_descriptions(commands, pool) == {"one": "later", "two": "yours"}


def test_a_worker_that_was_removed_meanwhile_does_not_come_back_by_itself(commands, pool, seen):
    assert commands.run("remove_worker", {"pool": pool, "name": "one", "based_on": seen})["ok"]
    reply = save(commands, pool, calculator("one", "yours"), based_on=seen)
    assert reply["conflict"]["lines"][0]["theirs"] is None and "one" not in read_descriptions(commands, pool)


def test_templates_added_at_once_get_names_of_their_own(commands, pool, seen):
    fields = {"pool": pool, "template": "calculator", "based_on": seen}
    first, second = (commands.run("add_template", fields)["added"] for _ in range(2))
    assert first != second and {first, second} <= set(read_descriptions(commands, pool))


def test_of_two_pools_created_under_one_name_the_second_is_refused(commands, pool):
    refused = commands.run("create", {"name": pool})
    assert refused["problems"][0][0] == "name" and list(read_descriptions(commands, pool)) == ["one", "two"]
