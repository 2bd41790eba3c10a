"""`what-if` and `memory`: the pages' commands from a shell, with their errors in words."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, TaskRef, TurnStarted, TurnTaken
from orchestrator.errors import EpisodeNotFound, InvalidEdits
from orchestrator.plan import Turn
from orchestrator.traces.store import open_store
from pool_registry.errors import InvalidPool, PoolError
from pool_registry.storage.data_folder import choose_home
from studio.__main__ import app
from studio.cli.runs.what_if import read_edits
from studio.prepare import prepare_store
from tests.studio.support.recorded import record_run

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def episode(home) -> str:
    """A run of four sandboxed snippets and a sum of them, recorded as anybody's."""
    store = prepare_store(home)
    try:
        return record_run(store, "boss", "forge", 3, 2)
    finally:
        store.close()


@pytest.fixture
def studio(home, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", home)

    def done(*arguments: str):
        result = CliRunner().invoke(app, [*arguments, "--home", home])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return done


CHANGE = '{"edit": "change", "step": 1, "arguments": {"code": "print(7)"}}'


def test_without_edits_the_plan_is_shown_by_its_numbers(studio, episode):
    shown = studio("what-if", episode).output
    assert "next free number is 6" in shown and "sees 1, 2, 3, 4" in shown and shown.endswith("answer: $5\n")
    told = json.loads(studio("what-if", episode, "--json").output)
    assert [step["id"] for step in told["steps"]] == [1, 2, 3, 4, 5] and told["answer"] == "$5"


def test_a_check_calls_nothing(studio, episode, home):
    assert studio("what-if", episode, "--edit", CHANGE, "--check").output == "called: 1, 5; kept: 2, 3, 4\n"
    told = json.loads(studio("what-if", episode, "--edit", CHANGE, "--check", "--json").output)
    assert told == {"rerun": [1, 5], "kept": [2, 3, 4], "dropped": 0, "effectful": []}


def test_an_edited_run_is_a_trace_of_its_own_with_the_difference(studio, episode, home):
    told = json.loads(studio("what-if", episode, "--edit", CHANGE, "--star", "--json").output)
    assert (told["kept"], told["rerun"], told["differences"]["arguments"]) == (3, 2, 1)
    assert told["origin"]["id"] == episode and told["origin"]["correct"] and told["result"]["correct"] is False
    store = open_store(choose_home(home))
    try:
        row = store.traces.row(told["episode"])
        assert row.what_if_of == episode and store.traces.list_starred() == [told["episode"]]
    finally:
        store.close()
    plain = studio("what-if", episode, "--edit", CHANGE).output
    assert "3 outputs kept, 2 steps called" in plain and "-> 'print(7)'" in plain and "(right)" in plain
    assert "4 the same, 1 with other arguments" in plain


def test_an_added_step_is_told_without_a_before(studio, episode):
    add = '{"edit": "add", "step": 6, "worker": "calculator", "arguments": {"expression": "$5+1"}, "access": [5]}'
    said = studio("what-if", episode, "--edit", add, "--edit", '{"edit": "answer", "answer": "$6"}').output
    assert "5 outputs kept, 1 step called\nadd step 6 (calculator)\n  worker: 'calculator'\n" in said
    assert "\nanswer: '$5' -> '$6'\n" in said and "5 the same, 1 added" in said


def test_an_edited_run_without_an_answer_is_exit_code_1(studio, episode):
    done = studio("what-if", episode, "--edit", '{"edit": "answer", "answer": null}')
    assert done.exit_code == 1 and "no answer" in done.output


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        (("{oops",), "no JSON"),
        (("[]",), "an edit is an object"),
        (('{"edit": "swap", "step": 1}',), "one of change, add, remove, again, answer"),
        (('{"edit": "remove"}',), "step: "),
        (('{"edit": "change", "step": 99}',), "worker: "),
        (('{"edit": "change", "step": 1, "worker": "nobody"}',), "no worker"),
        (('{"edit": "answer", "answer": "$99"}',), "$99"),
        (('{"edit": "remove", "step": 1}',), "step 5: it may see step 1"),
        (("{", "}"), "--edit {: this is no JSON"),
    ],
)
def test_what_is_wrong_with_edits_is_said_and_nothing_runs(studio, episode, home, edits, said):
    typed = [word for edit in edits for word in ("--edit", edit)]
    with pytest.raises(InvalidEdits) as refused:
        studio("what-if", episode, *typed)
    assert said in str(refused.value)


def test_a_run_or_a_round_that_is_not_there(studio, episode):
    with pytest.raises(EpisodeNotFound):
        studio("what-if", "nowhere")
    with pytest.raises(InvalidEdits, match="no round 7; it has 1"):
        studio("what-if", episode, "--round", "7")


def test_errors_are_one_line_without_a_traceback(home):
    command = [sys.executable, "-m", "studio", "what-if", "nowhere", "--home", home]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and done.stderr == "podium: there is no episode 'nowhere' in this data folder\n"


@pytest.fixture(scope="module")
def recorded(home, episode):
    store = prepare_store(home)
    try:
        yield store.traces.episode(episode)
    finally:
        store.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
EDIT = st.fixed_dictionaries(
    {},
    optional={
        "edit": st.sampled_from(["change", "add", "remove", "again", "answer", "?"]),
        "step": st.integers(-1, 9) | JSON,
        "worker": JSON,
        "arguments": JSON,
        "access": JSON,
        "answer": JSON,
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.text(max_size=30) | EDIT.map(json.dumps) | JSON.map(json.dumps), max_size=3))
def test_any_text_is_edits_or_an_error_in_words(recorded, texts):
    try:
        assert len(read_edits(texts, recorded)) == len(texts)
    except InvalidEdits as refused:
        assert all(what.startswith("--edit ") for _, what in refused.problems)


# The memory


def failed(home: str, split: str) -> str:
    """A run of the starter pool that was answered by nobody."""
    store = prepare_store(home)
    try:
        pool, key = store.pools.latest("starter").pool, f"failed-{split}"
        task, at = TaskRef("forge", 1, split, 3), "2026-01-01T00:00:00+00:00"
        started = EpisodeStarted(f"A question ({split})", pool.name, pool.hash, "model:solver:plan", {}, at, task=task)
        turn = TurnTaken(1, Turn(error="no JSON in the reply"), 0.5)
        ended = EpisodeEnded("max_rounds", 1.0, None, "it ran out of rounds")
        for event in (started, TurnStarted(1, 0.1), turn, ended):
            store.traces.append(key, event)
        store.traces.flush()
        return key
    finally:
        store.close()


def test_a_memory_is_switched_on_learns_is_listed_and_forgets(studio, home):
    with pytest.raises(InvalidPool, match="memory is off"):
        studio("memory", "learn", "starter")
    assert "on, written by rule; 0 lessons" in studio("memory", "set", "starter", "rule").output
    train, _ = failed(home, "train"), failed(home, "test")
    learnt = studio("memory", "learn", "starter").output
    assert "Learnt from 1 recorded failure; 1 on test tasks left out" in learnt and f"run {train}" in learnt
    (lesson,) = json.loads(studio("memory", "list", "starter", "--json").output)["lessons"]
    assert lesson["episode"] == train and "no JSON in the reply" in lesson["sentence"]
    for wrong, said in (
        ((), "say which lesson"),
        ((str(lesson["id"]), "--all"), "say which"),
        (("99",), "no lesson 99"),
    ):
        with pytest.raises(InvalidPool, match=said):
            studio("memory", "forget", "starter", *wrong)
    assert "Forgot 1 lesson" in studio("memory", "forget", "starter", str(lesson["id"])).output
    studio("memory", "learn", "starter")
    assert "Forgot 1 lesson\nmemory: on, written by rule; 0" in studio("memory", "forget", "starter", "--all").output
    assert "memory: off" in studio("memory", "set", "starter", "off").output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("set", "starter", "nobody"), "no enabled agent"), (("list", "nope"), "no pool 'nope'")],
)
def test_what_cannot_be_done_is_said(studio, home, arguments, said):
    prepare_store(home).close()
    with pytest.raises(PoolError, match=said):
        studio("memory", *arguments)
