"""The second try that a person's verdict starts: what becomes of its lesson, however the verdicts come and go."""

from __future__ import annotations

import json
import subprocess
import threading
import time

import pytest

from orchestrator.engine.events import Retried
from orchestrator.engine.process_identity import process_of
from orchestrator.failure_memory.lessons import PoolMemory
from orchestrator.traces.store import TraceFilter
from pool_registry.deployment_mode import DeploymentMode
from pool_registry.errors import InvalidPool
from studio.episode_documents.trace import build_trace_document, describe_second_try
from studio.pages.pool.commands import PoolCommands
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from trainer.demonstrations.episode_task import Judgement, judge_run
from trainer.demonstrations.second_try import mark_interrupted_tries, take_verdict

__all__ = ["endpoint"]
QUERY = "How much is a ticket for two?"


def answer_with(first: str, second: str) -> None:
    """A model that answers `first`, and `second` once it reads a lesson."""
    Endpoint.reply = staticmethod(
        lambda messages: json.dumps({"answer": second if "which is wrong" in messages[-1]["content"] else first})
    )


def wait(done) -> None:
    deadline = time.monotonic() + 30
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert done()


class Page:
    """A pool with retries on, asked by the routes of the page."""

    def __init__(self, runtime, client, url: str, **limits) -> None:
        self.runtime, self.client, self.store = runtime, client, runtime.store
        self.pool = f"v{time.time_ns()}"
        pool = pool_of(url, "boss", memory="rule", memory_retry=True, **limits)
        self.store.pools.save(pool.model_copy(update={"name": self.pool}))

    def ask(self, user: str = "ada") -> str:
        episode = self.runtime.start_episode(self.pool, "model:boss:plan", QUERY, user=user)
        wait(lambda: self.store.traces.row(episode).state not in ("running", "waiting"))
        return episode

    def judge(self, episode: str, **judged) -> None:
        reply = self.client.post(f"/api/episodes/{episode}/verdict", json=judged).json()
        assert reply["problem"] == ""

    def retried(self, episode: str) -> Retried | None:
        self.store.traces.flush()
        return self.store.traces.episode(episode).retried

    def settled(self, episode: str) -> Retried:
        wait(lambda: (found := self.retried(episode)) is not None and found.state not in ("preparing", "running"))
        return self.retried(episode)

    def memory(self):
        commands = PoolCommands(self.runtime)
        return commands.run("memory", {"pool": self.pool})["memory"]["lessons"]

    def usable(self) -> int:
        return len(PoolMemory(self.store.lessons, self.pool).lessons())

    def count_runs(self) -> int:
        return len(self.store.traces.search(TraceFilter(pool=self.pool, limit=50)))


@pytest.fixture
def page(runtime, client, endpoint, monkeypatch) -> Page:
    monkeypatch.setenv("PODIUM_HOME", str(runtime.store.home.root))
    answer_with("12", "24")
    return Page(runtime, client, endpoint)


def test_the_typed_answer_says_whether_the_second_try_is_right(page):
    failed = page.ask()
    page.judge(failed, answer="24")
    second = page.settled(failed)
    assert (second.state, second.correct) == ("judged", True)
    retry = page.store.traces.episode(second.episode)
    assert (retry.started.retry_of, retry.started.user, retry.started.source) == (failed, "ada", "mine")
    assert retry.graded.correct and page.store.traces.row(second.episode).correct
    (lesson,) = page.memory()
    assert lesson["retry"] == second.episode and not lesson["awaits"] and page.usable() == 1
    assert "24" not in lesson["sentence"], "the right answer is not in the lesson"
    document = build_trace_document(page.store, page.store.traces.row(failed))
    assert describe_second_try(document) == [
        f"Tried again with its lesson: right, so the lesson is kept. That run is {second.episode}."
    ]


def test_a_second_try_that_is_wrong_again_leaves_no_lesson_and_is_not_made_twice(page):
    answer_with("12", "13")
    failed = page.ask()
    page.judge(failed, answer="24")
    assert page.settled(failed).correct is False and page.memory() == []
    runs = page.count_runs()
    page.judge(failed, right=False)
    page.judge(page.settled(failed).episode, right=False)
    time.sleep(0.3)
    assert page.count_runs() == runs and page.memory() == [], "once"
    assert "0 recorded" in PoolCommands(page.runtime).run("learn", {"pool": page.pool})["message"], "nor learnt later"


def test_without_the_right_answer_the_lesson_waits_for_the_verdict_on_the_second_try(page):
    failed = page.ask()
    page.judge(failed, right=False)
    second = page.settled(failed)
    assert (second.state, second.correct) == ("waiting", None)
    (lesson,) = page.memory()
    assert (lesson["awaits"], lesson["is_tried"]) == (second.episode, False) and page.usable() == 0
    third = page.store.traces.episode(page.ask())
    assert not (third.recalled and third.recalled.lessons), "shown to nobody"
    page.judge(second.episode, right=True)
    assert page.retried(failed).correct is True and page.usable() == 1
    page.judge(second.episode, right=False)
    assert page.retried(failed).correct is False and page.memory() == []
    page.judge(second.episode, right=True)
    assert page.usable() == 1 and page.memory()[0]["retry"] == second.episode, "the last verdict counts"


def test_an_answer_that_is_typed_later_judges_the_second_try(page):
    failed = page.ask()
    page.judge(failed, right=False)
    second = page.settled(failed)
    page.judge(failed, answer="24")
    assert page.retried(failed).correct is True and page.usable() == 1
    page.judge(failed, answer="25")
    assert page.retried(failed).correct is False and page.usable() == 0
    page.judge(second.episode, right=True)
    page.judge(failed, answer="26")
    assert page.retried(failed).correct is True, "who judged the second try itself is not overruled"


@pytest.mark.parametrize("judged", [{"right": False}, {"answer": "24"}])
def test_a_verdict_that_is_taken_back_takes_the_lesson_along(page, judged):
    failed = page.ask()
    page.judge(failed, **judged)
    page.settled(failed)
    page.judge(failed, right=True)
    assert page.retried(failed).state == "taken back" and page.memory() == []


def test_a_verdict_that_is_taken_back_while_the_second_try_runs_keeps_nothing(page):
    go_on = threading.Event()

    def reply(messages) -> str:
        lesson = "which is wrong" in messages[-1]["content"]
        if lesson:
            go_on.wait(20)
        return json.dumps({"answer": "24" if lesson else "12"})

    Endpoint.reply = staticmethod(reply)
    failed = page.ask()
    page.judge(failed, right=False)
    wait(lambda: page.retried(failed).state == "running")
    page.judge(failed, answer="24")  # a double verdict
    page.judge(failed, right=True)
    go_on.set()
    assert page.settled(failed).state == "taken back"
    assert page.memory() == [] and page.count_runs() == 2


def test_a_second_try_that_is_stopped_is_marked_and_a_new_verdict_makes_it_anew(page):
    go_on = threading.Event()

    def reply(messages) -> str:
        if "which is wrong" in messages[-1]["content"]:
            go_on.wait(20)
            return '{"answer": "24"}'
        return '{"answer": "12"}'

    Endpoint.reply = staticmethod(reply)
    failed = page.ask()
    page.judge(failed, answer="24")
    wait(lambda: page.retried(failed).state == "running")
    assert page.runtime.stop_episode(page.retried(failed).episode)
    assert page.settled(failed).state == "interrupted" and page.memory() == []
    go_on.set()
    page.judge(failed, answer="24")
    wait(lambda: page.retried(failed).correct is True)


@pytest.mark.parametrize("begun", [False, True])
def test_a_studio_that_died_meanwhile_leaves_a_mark_and_no_lesson(page, monkeypatch, begun):
    child = subprocess.Popen(["sleep", "60"])
    owner = process_of(child.pid)
    child.kill()
    child.wait()
    monkeypatch.setattr("trainer.demonstrations.second_try.this_process", lambda: owner)
    failed = page.ask()
    judge_run(page.store, failed, Judgement(answer="24"))
    second = take_verdict(page.store, failed)
    assert second is not None and page.retried(failed).state == "preparing"
    if begun:  # its process died when the run had ended, and nothing was concluded yet
        answered = page.ask()
        page.store.lessons.change(failed, awaits=answered)
        page.store.traces.append(failed, Retried(answered, None, 0.0, "running"))
        page.store.traces.flush()
    mark_interrupted_tries(page.store)
    retried = page.retried(failed)
    assert (retried.state, retried.correct) == (("judged", False) if begun else ("interrupted", None))
    assert page.memory() == []


def test_only_one_of_two_verdicts_at_a_time_starts_a_second_try(page):
    failed = page.ask()
    judge_run(page.store, failed, Judgement())
    seconds = []
    threads = [threading.Thread(target=lambda: seconds.append(take_verdict(page.store, failed))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([second for second in seconds if second is not None]) == 1


def test_a_run_that_is_kept_with_another_answer_is_tried_again_too(page):
    failed = page.ask()
    reply = page.client.post(f"/api/episodes/{failed}/task", json={"answer": "24"}).json()
    assert reply["problem"] == "" and page.settled(failed).correct is True


def test_nothing_is_tried_where_the_pool_does_not_want_it_or_plans_wait(page):
    for change in ({"memory_retry": False}, {"memory": "off"}):
        pool = page.store.pools.latest(page.pool).pool
        limits = pool.limits.model_copy(update=change)
        failed = page.ask()
        page.store.pools.save(pool.model_copy(update={"limits": limits}))
        page.judge(failed, answer="24")
        page.store.pools.save(pool)
        assert page.retried(failed) is None
    page.store.pools.save(pool.model_copy(update={"mode": DeploymentMode(name="review")}))
    page.judge(failed, answer="25")
    assert page.retried(failed) is None and page.memory() == []


def test_why_nothing_was_tried_is_said(page):
    failed = page.ask()
    pool = page.store.pools.latest(page.pool).pool
    tight = pool.limits.model_copy(update={"max_tokens": 10})
    page.store.pools.save(pool.model_copy(update={"limits": tight}))
    spent = page.ask()
    page.judge(spent, answer="24")
    assert page.settled(spent).state == "no budget"
    page.judge(failed, answer="24")
    assert page.settled(failed).correct, "the limits are those of the failed run"
    direct = page.runtime.start_episode(page.pool, "direct:boss", QUERY)
    wait(lambda: page.store.traces.row(direct).state == "answered")
    page.judge(direct, answer="77")
    assert page.settled(direct).state == "no reader" and len(page.memory()) == 1


def test_a_bad_verdict_starts_nothing(page):
    failed = page.ask()
    for wrong in ({"answer": "[1, "}, {"answer": 7}, {"right": "perhaps"}):
        page.client.post(f"/api/episodes/{failed}/verdict", json=wrong)
    assert page.retried(failed) is None
    assert page.client.post("/api/episodes/none/verdict", json={"right": False}).status_code == 404


def test_a_pool_that_does_not_open_is_said_in_the_trace_and_the_try_made_anew(page, monkeypatch):
    answer_with("12", "24")
    failed = page.ask()

    def refuse(*_: object) -> None:
        raise InvalidPool("the agent is gone")

    with monkeypatch.context() as patch:
        patch.setattr("studio.runtime.Runtime._open", refuse)
        page.judge(failed, correct=False)
        assert page.settled(failed).state == "interrupted" and page.usable() == 0
    page.judge(failed, correct=False, answer="24")
    assert page.settled(failed).state == "judged" and page.usable() == 1
