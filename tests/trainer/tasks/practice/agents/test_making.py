"""Making tasks is followed from elsewhere, stopped and gone on with, one at a time."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engine.process_identity import process_of
from orchestrator.traces.store import Store
from tests.trainer.support.experts import AUTHOR, Script, build_experts, serve_script
from trainer.errors import UnusableTasks
from trainer.tasks.practice.agents.panel import PanelOptions
from trainer.tasks.practice.make_tasks import PracticeOptions
from trainer.tasks.practice.making import BUSY, INTERRUPTED, Making, read_making, record_making
from trainer.tasks.practice.progress import ASKING, CALLING, Progress, Watch
from trainer.tasks.practice.stored import find_making, find_practice_file, list_own_tasks, make_and_save

pytestmark = pytest.mark.medium
PRICED = {"price_in": 10.0, "price_out": 1000.0}  # 100 tokens in and 10 out are 0.011 dollars
CALL_COST = 0.011


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def experts(script, store, monkeypatch) -> Iterator[Store]:
    """A data folder with a pool of agents that have prices."""
    monkeypatch.setenv("PODIUM_HOME", str(store.home.root))
    with serve_script(script) as url:
        pool = build_experts(url)
        pool = pool.model_copy(update={"workers": tuple(spec.model_copy(update=PRICED) for spec in pool.workers)})
        store.pools.save(pool)
        yield store


def build_options(count: int = 8, max_cost: float | None = None) -> PracticeOptions:
    return PracticeOptions(count=count, panel=PanelOptions(AUTHOR, max_cost=max_cost))


def make(store: Store, options: PracticeOptions, watch: Watch | None = None) -> None:
    asyncio.run(make_and_save(store, "experts", options, watch=watch))


def list_calls(script: Script) -> list[tuple[str, str]]:
    return [(model, text) for model, text in script.calls if model != AUTHOR]


def test_progress_counts_what_is_written_answered_settled_kept_and_spent(experts, script):
    reports: list[Progress] = []
    make(experts, build_options(max_cost=50.0), Watch(reports.append))
    last = reports[-1]
    assert reports[0].stage == CALLING and last.stage == ASKING
    assert last.kept == last.count == 8 and last.written >= last.answered >= last.settled >= last.kept
    assert last.cost == pytest.approx(CALL_COST * len(script.calls)) and last.max_cost == 50.0
    assert all(after.cost >= before.cost for before, after in itertools.pairwise(reports))
    assert "8 of 8 kept: " in last.describe() and " of $50.00 spent" in last.describe()


def test_others_see_how_it_goes_while_it_runs_and_what_came_of_it(experts, script):
    states: list[Making | None] = []
    script.before = lambda _model, _text: states.append(find_making("experts"))
    make(experts, build_options())
    assert states and {making.state for making in states if making} == {"running"} and None not in states
    making = find_making("experts")
    assert making is not None and making.state == "done" and not making.can_go_on
    assert making.outcome.startswith("Made 8 tasks; 8 questions of agents kept") and making.progress.kept == 8


def test_a_stop_keeps_what_is_done_and_what_goes_on_asks_nothing_again(experts, script):
    watch = Watch()

    def stop(_model: str, _text: str) -> None:
        if len(script.calls) == 40:
            watch.stop()

    script.before = stop
    make(experts, build_options(20, max_cost=50.0), watch)
    calls = len(script.calls)
    assert calls < 40 + 6 * 4, "only what was in flight has ended"
    making = find_making("experts")
    assert making is not None and making.state == "stopped" and making.can_go_on
    assert "stopped early: you stopped it" in making.outcome
    kept = len(list_own_tasks("experts"))
    assert 0 < kept < 20 and making.progress.kept <= kept

    options, rest = making.plan_rest()
    assert options.panel.max_cost == pytest.approx(50.0 - CALL_COST * calls), "one cap for both"
    before = set(list_calls(script))
    script.calls.clear()
    make(experts, options, rest)
    assert not before & set(list_calls(script)), "nothing is paid twice"
    making = find_making("experts")
    assert making is not None and making.state == "done" and len(list_own_tasks("experts")) == 20
    assert making.progress.cost == pytest.approx(CALL_COST * (calls + len(script.calls)))
    assert making.options.panel.max_cost == pytest.approx(50.0)


def test_a_stop_before_there_is_a_task_says_so_and_leaves_the_earlier_ones(experts, script):
    make(experts, build_options())
    watch = Watch()
    watch.stop()
    script.calls.clear()
    with pytest.raises(UnusableTasks, match="those from before stay"):
        make(experts, build_options(12), watch)
    making = find_making("experts")
    assert making is not None and (making.state, making.can_go_on) == ("stopped", True)
    assert len(list_own_tasks("experts")) == 8 and not script.calls


def test_a_second_one_is_refused_at_once_and_harms_the_first_in_nothing(experts, script):
    refusals: list[str] = []

    def start_second(_model: str, _text: str) -> None:
        if len(script.calls) == 5:
            with pytest.raises(UnusableTasks) as refusal:
                make(experts, build_options())
            refusals.append(str(refusal.value))

    script.before = start_second
    make(experts, build_options())
    making = find_making("experts")
    assert refusals == [BUSY] and making is not None and making.state == "done"


def test_what_a_process_that_ended_was_making_counts_as_interrupted(experts):
    file = find_practice_file("experts").with_suffix(".making")
    with record_making(file, build_options(max_cost=2.0), watch := Watch()):
        watch.update(cost=0.5, kept=3, count=8)
        running = json.loads(file.read_text())
    with subprocess.Popen(["sleep", "60"]) as process:
        dead = process_of(process.pid)
        process.kill()
    file.write_text(json.dumps(running | {"process": dead, "progress": {**running["progress"], "cost": 0.5}}))
    making = read_making(file)
    assert making is not None and (making.state, making.outcome) == ("interrupted", INTERRUPTED)
    options, watch = making.plan_rest()
    assert options.panel.max_cost == 1.5 and watch.progress.cost == 0.5


def test_a_cap_that_is_used_up_leaves_nothing_to_go_on_with(experts):
    file = find_practice_file("experts").with_suffix(".making")
    with record_making(file, build_options(max_cost=2.0), watch := Watch()):
        watch.update(cost=2.0)
        watch.stop()
    making = read_making(file)
    assert making is not None and making.state == "stopped" and not making.can_go_on
    with pytest.raises(UnusableTasks, match="a higher cap"):
        making.plan_rest()


def test_a_failure_is_recorded_with_its_sentence(experts, script):
    script.status = 500
    with pytest.raises(UnusableTasks):
        make(experts, build_options())
    making = find_making("experts")
    assert making is not None and making.state == "failed" and "8 calls in a row have failed" in making.outcome


@pytest.mark.parametrize("content", ["", "{", '{"state": "running"}', "\x00"])
def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, content: str):
    (tmp_path / "a.making").write_text(content)
    assert read_making(tmp_path / "a.making") is None and read_making(tmp_path / "b.making") is None
